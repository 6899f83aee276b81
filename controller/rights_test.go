package controller

import (
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// TestMissingPermissionsAreNamed: what the token may not see, or not delete, is said,
// with the rule that it lacks; the rest goes.
func TestMissingPermissionsAreNamed(t *testing.T) {
	t.Parallel()
	const (
		acl      = `acl = "write"`
		nodes    = `node_prefix "" { policy = "write" }`
		services = `service_prefix "" { policy = "write" }`
		read     = `service_prefix "" { policy = "read" } node_prefix "" { policy = "read" }`
	)
	for name, tc := range map[string]struct {
		rules, want string
		left        int // services
	}{
		"all":            {acl + nodes + services, "", 0},
		"no services":    {acl + nodes, "results are filtered by ACLs", 2},
		"no nodes":       {acl + services, "results are filtered by ACLs", 2},
		"nothing at all": {acl, "results are filtered by ACLs", 2},
		"no deletion":    {acl + read, "lacks permission 'service:write' on \"web\")", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, nil)
			token := w.login("iam-ecs-service-token", task1, w.Cluster.ARN)
			node := "rights-" + strings.ReplaceAll(name, " ", "-")
			w.register(task1, node, "critical")
			w.ecs.stop(task1)
			admin := w.Cleaner.Consul
			w.Cleaner.Consul = w.client(testkit.Grant(w.t, w.Cleaner.Consul, tc.rules))
			r, err := once(t, w.Cleaner)
			w.Cleaner.Consul = admin
			switch {
			case tc.want == "" && err != nil,
				tc.want != "" &&
					(err == nil ||
						!strings.Contains(err.Error(),
							tc.want+": give the token of CONSUL_HTTP_TOKEN a policy with: "+nodes+" "+services)):
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
			if left := w.alive(token); len(left) != 0 {
				t.Error("the token is left")
			}
			if ids, _ := w.onNode(node); len(ids) != tc.left {
				t.Errorf("%d services are left, want %d; report %+v", len(ids), tc.left, r)
			}
		})
	}
}

// TestHiddenServiceKeepsItsNode: a node is not empty because the token does not
// see what is on it.
func TestHiddenServiceKeepsItsNode(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	w.register(task1, "hides", "critical")
	w.put(otherService("hides", "dns", nil))
	w.ecs.stop(task1)
	admin := w.Cleaner.Consul
	w.Cleaner.Consul = w.client(testkit.Grant(w.t, w.Cleaner.Consul, `acl = "write" node_prefix "" { policy = `+
		`"write" } service_prefix "web" { policy = "write" }`))
	r, err := once(t, w.Cleaner)
	w.Cleaner.Consul = admin
	if ids, there := w.onNode("hides"); !there || len(ids) != 1 {
		t.Errorf("on the node: %v, %v", ids, there)
	}
	testkit.Equal(t, "deletions", len(r.Deleted), 2)
	testkit.ErrorContains(t, err, "read services of node: results are filtered by ACLs")
}
