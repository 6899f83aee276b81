package controller

import (
	"strings"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
)

// TestUnclaimedTokens: what a login declares of its cluster is its client's word. Tokens of clusters
// without a controller are counted and logged once, and stay.
func TestUnclaimedTokens(t *testing.T) {
	t.Parallel()
	consul := newFakeConsul()
	record := func(controller string) api.ACLBindingRule {
		return api.ACLBindingRule{Description: `Record of a consul-ecs controller, binds nothing: {"controller":"` +
			controller + `","trust":[]}`}
	}
	consul.rules = []api.ACLBindingRule{record(clusterARN), record(clusterARN + "2/agentless"), {Description: "any"}}
	const method = "iam-ecs-service-token"
	for _, cluster := range []string{clusterARN, clusterARN + "2", "shop2", clusterARN + "-gone", "gone"} {
		consul.login(method, loginText(task1, cluster))
	}
	consul.login("kubernetes", loginText(task1, clusterARN+"-gone"))
	var log strings.Builder
	c := inMemory(t, consul, &fakeECS{running: []string{task1}})
	c.Log = hclog.New(&hclog.LoggerOptions{Output: &log})
	for range 2 {
		r, err := once(t, c)
		if err != nil {
			t.Fatal(err)
		}
		if r.Unclaimed != 2 {
			t.Errorf("%d unclaimed tokens, want 2", r.Unclaimed)
		}
	}
	if n := strings.Count(log.String(), "clusters without a controller"); n != 1 {
		t.Errorf("%d lines, want 1, in\n%s", n, &log)
	}
	if left := len(consul.accessors()); left != 6 {
		t.Errorf("%d tokens are left, want 6", left)
	}
}
