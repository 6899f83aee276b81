package controller

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// A task that was killed leaves tokens, services and a node; all of it goes, and
// nothing of the others.
func TestPassRemovesWhatADeadTaskLeft(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	client1, service1 := w.tokens(task1)
	client2, service2 := w.tokens(task2)
	w.register(task1, "pass-1", "critical")
	w.register(task2, "pass-2", "passing")
	w.ecs.running = []string{task1, task2}

	w.requests.take()
	r := w.pass()
	testkit.Equal(t, "running, tokens, services, and those to delete or kept, while both run",
		[]int{r.Running, r.Tokens, r.Services, len(r.Delete) + len(r.Kept)}, []int{2, 4, 4, 0})
	if got := writes(w.requests.take()); len(got) > 0 {
		t.Errorf("writes while both run: %v", got)
	}

	w.ecs.stop(task1)
	r = w.pass()
	testkit.Equal(t, "deleted, failed and calls of AWS",
		[]int{len(r.Deleted), len(r.Failed), int(r.AWS.Calls)}, []int{5, 0, 2})
	if left := w.alive(client1, service1, client2, service2); !slices.Equal(left, []string{client2, service2}) {
		t.Errorf("tokens left: %v", left)
	}
	if ids, there := w.onNode("pass-1"); there {
		t.Errorf("node of the dead task is left, with %v", ids)
	}
	if ids, _ := w.onNode("pass-2"); len(ids) != 2 {
		t.Errorf("services of the live task: %v", ids)
	}
	if got := strings.Count(w.log.String(), `evidence="ECS shows the task as STOPPED`); got != 5 {
		t.Errorf("%d deletions with evidence are logged, want 5:\n%s", got, w.log)
	}
	for _, secret := range []string{"SecretID", w.server.Token} {
		if strings.Contains(w.log.String(), secret) {
			t.Errorf("the log has %s", secret)
		}
	}
}

// A pass with nothing to do asks Consul twice and ECS once for 100 tasks.
func TestSteadyPassMakesFewRequests(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	w.tokens(task1)
	w.register(task1, "steady", "passing")
	w.ecs.running = []string{task1}
	w.pass()
	w.ecs.calls = nil
	// Other tests change the same Consul, and a pass that hits such a change reads
	// again: that is right.
	for range 50 {
		w.requests.take()
		w.pass()
		seen := w.requests.take()
		if got := writes(seen); len(got) > 0 {
			t.Fatalf("writes: %v", got)
		}
		if slices.Equal(seen, []string{"GET /v1/acl/tokens", "GET /v1/catalog/services"}) {
			return
		}
	}
	t.Error("no pass was cheap")
}

// TestDeletingAMissingTokenSucceeds: a token that was logged out between the snapshot and
// the deletion is what we want, and does not stop the others.
func TestDeletingAMissingTokenSucceeds(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	client, service := w.tokens(task1)
	w.ecs.stop(task1)
	r, err := w.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Consul.ACL().TokenDelete(client, nil); err != nil {
		t.Fatal(err)
	}
	testkit.ErrorContains(t, w.Apply(t.Context(), &r), "")
	testkit.Equal(t, "deleted and failed", []int{len(r.Deleted), len(r.Failed)}, []int{2, 0})
	if left := w.alive(client, service); left != nil {
		t.Errorf("left: %v", left)
	}
}

// TestUnknownOwnTokenDeletesNothing: Consul answers as for a token that is gone.
func TestUnknownOwnTokenDeletesNothing(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	client, service := w.tokens(task1)
	w.ecs.stop(task1)
	r, err := w.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	known := w.Consul
	w.Consul = w.client("00000000-0000-4000-8000-000000000000")
	if err := w.Apply(t.Context(), &r); err == nil {
		t.Error("no error, want one")
	}
	testkit.Equal(t, "deleted and failed", []int{len(r.Deleted), len(r.Failed)}, []int{0, 2})
	w.Consul = known
	if left := w.alive(client, service); len(left) != 2 {
		t.Errorf("left: %v", left)
	}
}

// TestTokensOfOtherAuthMethodsAreKept: a token is not ours for what its
// description says.
func TestTokensOfOtherAuthMethodsAreKept(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	others := w.login("jwt-of-others", task1, w.Cluster.ARN)
	foreign := w.login("iam-ecs-service-token", task1, w.Cluster.ARN+"2")
	client, service := w.tokens(task1)
	w.ecs.stop(task1)
	w.pass()
	if left := w.alive(others, foreign, client, service); !slices.Equal(left, []string{others, foreign}) {
		t.Errorf("left: %v", left)
	}
}

// TestShortClusterName: tokens of EC2 tasks that name the cluster by its
// short name are cleaned up, too, once ECS has shown the task as ours.
func TestShortClusterName(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	short := w.login("iam-ecs-service-token", task1, w.Cluster.Name)
	unknown := w.login("iam-ecs-service-token", task2, w.Cluster.Name)
	w.ecs.stop(task1)
	r := w.pass()
	if left := w.alive(short, unknown); !slices.Equal(left, []string{unknown}) {
		t.Errorf("left: %v", left)
	}
	if len(r.Kept) != 1 || r.Kept[0].Reason != KeepMissingAmbiguous {
		t.Errorf("kept: %+v", r.Kept)
	}
}

// TestForeignServiceOnTheNode: a service of another owner on the node
// stops nothing, and keeps the node.
func TestForeignServiceOnTheNode(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	w.register(task1, "foreign", "critical")
	w.put(otherService("foreign", "dns", nil))
	spoof := map[string]string{"source": "consul-ecs", "task-id": task1, "task-arn": w.Cluster.TaskARN(task1)}
	w.put(otherService("foreign", "spoof", spoof))
	w.ecs.stop(task1)
	r := w.pass()
	if ids, there := w.onNode("foreign"); !there || !slices.Equal(ids, []string{"dns", "spoof"}) {
		t.Errorf("on the node: %v, %v", ids, there)
	}
	if len(r.Deleted) != 2 || r.Foreign < 1 {
		t.Errorf("report = %+v", r)
	}
}

// A node waits for serf to notice that its agent is gone, and is then removed by a
// pass that has nothing else to do.
func TestNodeWaitsForSerf(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	w.register(task1, "waits", "passing")
	w.ecs.stop(task1)
	w.pass()
	if ids, there := w.onNode("waits"); !there || len(ids) != 0 {
		t.Errorf("on the node: %v, %v, want an empty one", ids, there)
	}
	w.serf("waits", "critical")
	if r := w.pass(); len(r.Deleted) != 1 || r.Deleted[0].Kind != KindNode {
		t.Errorf("deleted = %+v", r.Deleted)
	}
	if _, there := w.onNode("waits"); there {
		t.Error("the node is left")
	}
}

// TestRemovedNodeIsNotReadAgain: one that another process has removed.
func TestRemovedNodeIsNotReadAgain(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	w.register(task1, "removed", "passing")
	w.ecs.stop(task1)
	w.pass()
	if _, err := w.Consul.Catalog().Deregister(&api.CatalogDeregistration{Node: "removed"}, nil); err != nil {
		t.Fatal(err)
	}
	w.pass()
	w.requests.take()
	w.pass()
	if asked := w.requests.take(); slices.Contains(asked, "GET /v1/catalog/node-services/removed") {
		t.Errorf("asked %q", asked)
	}
}

// TestNodeThatReturns: its agent is there again, or another one of its name, after
// the node was looked at and before it is removed.
func TestNodeThatReturns(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]*api.CatalogRegistration{
		"agent": {Node: "back-agent", Address: "10.0.0.1", SkipNodeUpdate: true,
			Check: &api.AgentCheck{Node: "back-agent", CheckID: "serfHealth",
				Name: "Serf Health Status", Status: api.HealthPassing}},
		"node": {Node: "back-node", Address: "10.0.0.2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, nil)
			w.register(task1, back.Node, "critical")
			w.ecs.stop(task1)
			other := newFixture(t, nil)
			next, txns := w.requests.next, 0
			w.requests.next = testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
				if r.URL.Path == "/v1/txn" {
					if txns++; txns == 1 {
						other.put(back)
					}
				}
				return next.RoundTrip(r)
			})
			if r := w.pass(); len(r.Deleted) != 2 {
				t.Errorf("deleted = %+v", r.Deleted)
			}
			if _, there := w.onNode(back.Node); !there || txns != 1 {
				t.Errorf("the node that came back is there: %v, after %d attempts to remove it", there, txns)
			}
			w.serf(back.Node, "critical")
			if r := w.pass(); len(r.Deleted) != 1 || r.Deleted[0].Kind != KindNode {
				t.Errorf("then deleted = %+v", r.Deleted)
			}
		})
	}
}

// TestTokensAreReadFirst: what a task logs in for while the pass asks
// ECS is not in the snapshot.
func TestTokensAreReadFirst(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	w.login("iam-ecs-service-token", task2, w.Cluster.ARN)
	var late string
	w.Cleaner.ECS = hooked{w.ecs, func() {
		late = w.login("iam-ecs-service-token", task1, w.Cluster.ARN)
	}}
	w.ecs.stop(task1)
	w.ecs.stop(task2)
	r := w.pass()
	if left := w.alive(late); len(left) != 1 || len(r.Deleted) != 1 {
		t.Errorf("left %v, deleted %+v", left, r.Deleted)
	}
}

// hooked calls a function before each list.
type hooked struct {
	ECS
	before func()
}

// List implements ECS.
func (h hooked) List(ctx context.Context, cluster, desired string, each func(string)) error {
	if desired == awsutil.TaskRunning {
		h.before()
	}
	return h.ECS.List(ctx, cluster, desired, each)
}
