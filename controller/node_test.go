package controller

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// withoutAgents makes the fixture's tasks have their services on the cluster's node.
func withoutAgents(o *CleanerOptions) {
	o.Leftovers = Leftovers{Methods: []string{"iam-ecs-service-token"}, ClusterNode: true}
}

// join registers what a task has on the cluster's node: a service and its proxy.
func (w *fixture) join(task string) (ids []string) {
	w.t.Helper()
	meta := map[string]string{"source": "consul-ecs", "task-id": task, "task-arn": w.Cluster.TaskARN(task)}
	for _, suffix := range []string{"", "-sidecar-proxy"} {
		ids = append(ids, w.joinAs("web-"+task+suffix, "web"+suffix, meta))
	}
	return ids
}

func (w *fixture) joinAs(id, name string, meta map[string]string) string {
	w.t.Helper()
	w.put(&api.CatalogRegistration{
		Node: w.Cluster.ARN, Address: "10.0.0.1", NodeMeta: map[string]string{"synthetic-node": "true"},
		SkipNodeUpdate: true,
		Service:        &api.AgentService{ID: id, Service: name, Address: "10.0.0.2", Port: 8080, Meta: meta},
		Check: &api.AgentCheck{Node: w.Cluster.ARN, CheckID: id + "-ready",
			Name: "ready", ServiceID: id, Status: api.HealthPassing},
	})
	return id
}

// TestOnlyDeadTasksLeaveTheClusterNode: of all tasks whose services are on it, one is
// dead. Those that run, with tags or without, or stop, or cannot be known keep theirs,
// as do services of others.
func TestOnlyDeadTasksLeaveTheClusterNode(t *testing.T) {
	t.Parallel()
	var slow awstest.ECSOptions
	slow.Timing.Stop = time.Hour
	ecs := awstest.NewECS(t, slow)
	w := newFixture(t, func(o *CleanerOptions) {
		withoutAgents(o)
		o.ECS = awsutil.NewECSReader(ecs.Config(), awsutil.ECSReaderOptions{CallsPerSecond: 1000})
	})
	mesh := map[string]string{"consul.hashicorp.com/mesh": "true"}
	tagged := w.run(ecs, awstest.TaskGroup{Family: "web", Count: 2, Tags: mesh})
	ecs.Register(`{"family": "quick", "requiresCompatibilities": ["FARGATE"], "networkMode": "awsvpc", "cpu": "256", ` +
		`"memory": "512", "containerDefinitions": [{"name": "app", "image": "app", "memory": 64, "environment": ` +
		`[{"name": "LOCALECS_SIMULATE", "value": "stop=0"}]}]}`)
	tagged = append(tagged, w.run(ecs, awstest.TaskGroup{Family: "quick", Count: 1, Tags: mesh})...)
	untagged := w.run(ecs, awstest.TaskGroup{Family: "web", Count: 1})
	stopping, dead, unknown := tagged[0], tagged[2], strings.Repeat("9", 32)
	tokens := map[string]string{}
	var kept []string
	for _, id := range slices.Concat(tagged, untagged, []string{unknown}) {
		ids := w.join(id)
		tokens[id] = w.login("iam-ecs-service-token", id, w.Cluster.ARN)
		if id != dead {
			kept = append(kept, ids...)
		}
	}
	short := w.login("iam-ecs-service-token", dead, w.Cluster.Name)
	arn := w.Cluster.TaskARN(dead)
	kept = append(kept,
		w.joinAs("no-meta-"+dead, "foreign", nil),
		w.joinAs("no-task-"+dead, "foreign", map[string]string{"source": "consul-ecs", "task-arn": arn}),
		w.joinAs("other-source-"+dead, "foreign",
			map[string]string{"source": "nomad", "task-id": dead, "task-arn": arn}),
		w.joinAs("other-task-"+dead, "foreign",
			map[string]string{"source": "consul-ecs", "task-id": unknown, "task-arn": arn}),
		w.joinAs("other-id", "foreign", map[string]string{"source": "consul-ecs", "task-id": dead, "task-arn": arn}),
	)
	w.drain(ecs, stopping)
	ecs.Stop(dead)
	w.requests.take()
	r := w.pass()
	slices.Sort(kept)
	if ids, there := w.onNode(w.Cluster.ARN); !there || !slices.Equal(ids, kept) {
		t.Errorf("on the node: %q, want %q", ids, kept)
	}
	if left := w.alive(tokens[dead], short); len(left) != 0 {
		t.Errorf("tokens of the dead task are left: %q", left)
	}
	delete(tokens, dead)
	for id, token := range tokens {
		if len(w.alive(token)) != 1 {
			t.Errorf("task %s has lost its token", id)
		}
	}
	testkit.Equal(t, "deleted, foreign and retained", []int{len(r.Deleted), r.Foreign, len(r.Kept)}, []int{4, 3, 2})
	log := w.log.String()
	if n := strings.Count(log, "token deleted successfully: "); n != 2 {
		t.Errorf("%d lines of deleted tokens in\n%s", n, log)
	}
	if n := strings.Count(log, "deregistered a dead task's service: "); n != 2 {
		t.Errorf("%d lines of services in\n%s", n, log)
	}
}

// TestUnchangedClusterNodeTakesTwoReads: a pass in which nothing has changed is two reads of Consul, and
// none of the node's services.
func TestUnchangedClusterNodeTakesTwoReads(t *testing.T) {
	t.Parallel()
	w := newFixture(t, withoutAgents)
	w.ecs.running = []string{task1}
	want := w.join(task1)
	w.login("iam-ecs-service-token", task1, w.Cluster.ARN)
	w.requests.take()
	node := "GET /v1/catalog/node-services/" + w.Cluster.ARN
	if r := w.pass(); r.Services != 2 || r.Tokens != 1 {
		t.Fatalf("report %+v", r)
	}
	if seen := w.requests.take(); !slices.Equal(seen,
		[]string{"GET /v1/acl/tokens", "GET /v1/acl/binding-rules", "GET /v1/acl/tokens", node, node}) {
		t.Errorf("the first pass: %q", seen)
	}
	// Other tests log tasks in, which changes the index of tokens.
	cheap := func() bool {
		if r := w.pass(); r.Services != 2 {
			t.Fatalf("report %+v", r)
		}
		seen := w.requests.take()
		if slices.Index(seen, node) != len(seen)-1 || len(writes(seen)) > 0 {
			t.Fatalf("a pass at rest: %q", seen)
		}
		return slices.Equal(seen, []string{"GET /v1/acl/tokens", node})
	}
	if !slices.ContainsFunc(make([]int, 100), func(int) bool { return cheap() }) {
		t.Error("no pass was cheap")
	}
	// A health update changes no service; another service does.
	w.put(&api.CatalogRegistration{Node: w.Cluster.ARN, SkipNodeUpdate: true,
		Check: &api.AgentCheck{Node: w.Cluster.ARN, CheckID: want[0] + "-ready",
			Name: "ready", ServiceID: want[0], Status: api.HealthCritical}})
	w.requests.take()
	cheap()
	w.joinAs("gateway-"+task1, "gateway",
		map[string]string{"source": "consul-ecs", "task-id": task1, "task-arn": w.Cluster.TaskARN(task1)})
	if r := w.pass(); r.Services != 3 {
		t.Errorf("report %+v", r)
	}
}

// TestClusterNodeStays: the node of no service is not read for removal, and the next
// task finds it.
func TestClusterNodeStays(t *testing.T) {
	t.Parallel()
	w := newFixture(t, withoutAgents)
	if r := w.pass(); r.Services != 0 || !r.NodeMissing {
		t.Errorf("without a node: %+v", r)
	}
	w.join(task1)
	w.ecs.stop(task1)
	w.requests.take()
	r := w.pass()
	if len(r.Deleted) != 2 || r.NodeMissing {
		t.Fatalf("report %+v, want two deletions and the node", r)
	}
	testkit.Equal(t, "evidence", r.Deleted[0].Evidence, "ECS shows the task as STOPPED")
	seen := w.requests.take()
	if n := len(writes(seen)); n != 2 || slices.Contains(seen, "GET /v1/health/node/"+w.Cluster.ARN) {
		t.Errorf("%d writes of %q", n, seen)
	}
	if ids, there := w.onNode(w.Cluster.ARN); !there || len(ids) != 0 {
		t.Errorf("on the node: %q, %v", ids, there)
	}
}

// TestOneTasksErrorHidesNoOther: each task whose deletion fails is named, the rest goes,
// and the next pass completes it.
func TestOneTasksErrorHidesNoOther(t *testing.T) {
	t.Parallel()
	w := newFixture(t, withoutAgents)
	tasks := []string{strings.Repeat("a", 32), strings.Repeat("b", 32), strings.Repeat("c", 32)}
	for _, id := range tasks {
		w.join(id)
		w.ecs.stop(id)
	}
	next := w.requests.next
	var failed atomic.Int32
	w.requests.next = testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/v1/catalog/deregister" {
			if n := failed.Add(1); n <= 2 {
				return nil, fmt.Errorf("broken pipe %d", n)
			}
		}
		return next.RoundTrip(r)
	})
	r, err := once(t, w.Cleaner)
	testkit.ErrorContains(t, err, "broken pipe 1")
	testkit.ErrorContains(t, err, "broken pipe 2")
	testkit.Equal(t, "failed and deleted", []int{len(r.Failed), len(r.Deleted)}, []int{2, 4})
	if r := w.pass(); len(r.Deleted) != 2 {
		t.Errorf("the next pass: %+v", r)
	}
}

// TestHiddenClusterNode: a token that may not see all of the node's services is an
// error, with the rule that it lacks.
func TestHiddenClusterNode(t *testing.T) {
	t.Parallel()
	for name, rules := range map[string]string{
		"no node": `acl = "write" service_prefix "" { policy = "write" }`,
		"not all services": `acl = "write" node_prefix "" { policy = "write" } service_prefix "web-" { policy = ` +
			`"write" }`,
	} {
		w := newFixture(t, withoutAgents)
		w.join(task1)
		w.ecs.stop(task1)
		admin := w.Cleaner.Consul
		w.Cleaner.Consul = w.client(testkit.Grant(w.t, w.Cleaner.Consul, rules))
		_, err := once(t, w.Cleaner)
		w.Cleaner.Consul = admin
		want := "read services of node " + w.Cluster.ARN +
			": results are filtered by ACLs: give the token of CONSUL_HTTP_TOKEN a policy with: " + rights
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
		if ids, _ := w.onNode(w.Cluster.ARN); !slices.Contains(ids, "web-"+task1) {
			t.Errorf("%s: on the node %q", name, ids)
		}
		w.pass()
	}
}
