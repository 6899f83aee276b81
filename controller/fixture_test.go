package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/consulutil"
)

// fakeECS answers as a test sets it.
type fakeECS struct {
	running, stopped []string
	described        map[string]awsutil.ECSTask
	failures         map[string]string // reasons; MISSING for all that is in no other field
	silent           map[string]bool   // neither described nor failed

	listErr, stoppedErr, describeErr error
	calls                            []string
}

// List implements ECS.
func (f *fakeECS) List(_ context.Context, cluster, desired string, each func(string)) error {
	f.calls = append(f.calls, "list "+desired)
	ids, err := f.running, f.listErr
	if desired == awsutil.TaskStopped {
		ids, err = f.stopped, f.stoppedErr
	}
	for _, id := range ids {
		each(id)
	}
	return err
}

// Describe implements ECS.
func (f *fakeECS) Describe(_ context.Context, cluster string, ids []string) (awsutil.DescribedTasks, error) {
	f.calls = append(f.calls, fmt.Sprintf("describe %d", len(ids)))
	var a awsutil.DescribedTasks
	for _, id := range ids {
		t, ok := f.described[id]
		reason, failed := f.failures[id]
		switch {
		case f.silent[id]:
		case ok:
			t.ID = id
			if t.ClusterARN == "" {
				t.ClusterARN = cluster
			}
			a.Tasks = append(a.Tasks, t)
		case failed:
			a.Failures = append(a.Failures, awsutil.TaskFailure{ID: id, Reason: reason})
		default:
			a.Failures = append(a.Failures, awsutil.TaskFailure{ID: id, Reason: awsutil.TaskMissing})
		}
	}
	return a, f.describeErr
}

// Counts implements ECS.
func (f *fakeECS) Counts() awsutil.CallCounts { return awsutil.CallCounts{Calls: len(f.calls)} }

// stop stops a task.
func (f *fakeECS) stop(id string) {
	f.running = slices.DeleteFunc(f.running, func(r string) bool { return r == id })
	if f.described == nil {
		f.described = map[string]awsutil.ECSTask{}
	}
	f.described[id] = awsutil.ECSTask{LastStatus: awsutil.TaskStopped, DesiredStatus: awsutil.TaskStopped}
}

// requests counts what goes to Consul.
type requests struct {
	next http.RoundTripper
	mu   sync.Mutex
	seen []string
}

// RoundTrip implements http.RoundTripper.
func (r *requests) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.seen = append(r.seen, req.Method+" "+req.URL.Path)
	r.mu.Unlock()
	return r.next.RoundTrip(req)
}

// take returns and forgets what was seen.
func (r *requests) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen
	r.seen = nil
	return seen
}

// writes returns the seen requests that change something.
func writes(seen []string) []string {
	return slices.DeleteFunc(slices.Clone(seen), func(s string) bool { return strings.HasPrefix(s, "GET ") })
}

// fixture is a separate cluster in the one Consul, so that tests do not meet.
type fixture struct {
	*Cleaner
	server   secured
	t        *testing.T
	ecs      *fakeECS
	requests *requests
	log      *strings.Builder
}

func newFixture(t *testing.T, change func(o *CleanerOptions)) *fixture {
	t.Helper()
	w := &fixture{server: require(t), t: t, ecs: &fakeECS{}, requests: &requests{}, log: &strings.Builder{}}
	w.server.awaitRemoval(t)
	o := CleanerOptions{
		ECS: w.ecs, Cluster: clusterOf(t, t.Name()), Leftovers: agent(),
		Log: hclog.New(&hclog.LoggerOptions{Output: w.log}),
	}
	o.Consul = w.client(w.server.Token)
	if change != nil {
		change(&o)
	}
	w.Cleaner = NewCleaner(o)
	return w
}

// clusterOf returns a cluster of that name, as far as ECS allows it.
func clusterOf(t *testing.T, name string) awsutil.Cluster {
	t.Helper()
	c, err := awsutil.ParseCluster("arn:aws:ecs:us-east-1:123456789012:cluster/" +
		strings.NewReplacer("/", "-", " ", "-").Replace(name))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (w *fixture) client(token string) *api.Client {
	w.t.Helper()
	c, err := consulutil.NewClient(consulutil.Options{
		Address: w.server.HTTPAddr, Token: token,
		Wrap: func(next http.RoundTripper) http.RoundTripper { w.requests.next = next; return w.requests },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// login makes a task's token and returns its accessor.
func (w *fixture) login(method, task, cluster string) string {
	w.t.Helper()
	accessor, _, err := w.server.logins.Login(method, map[string]string{
		"consul.hashicorp.com/task-id": task, "consul.hashicorp.com/cluster": cluster, "team": "blue",
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return accessor
}

// tokens makes a task's two tokens.
func (w *fixture) tokens(task string) (client, service string) {
	w.t.Helper()
	return w.login("iam-ecs-client-token", task, w.Cluster.ARN), w.login("iam-ecs-service-token", task, w.Cluster.ARN)
}

// register puts a task's service and proxy on a node, which has a serf check of
// this status.
func (w *fixture) register(task, node, serf string) {
	w.t.Helper()
	meta := map[string]string{"source": "consul-ecs", "task-id": task, "task-arn": w.Cluster.TaskARN(task)}
	for _, s := range []*api.AgentService{
		{ID: "web-" + task, Service: "web", Meta: meta},
		{ID: "web-" + task + "-sidecar-proxy", Service: "web-sidecar-proxy",
			Kind: api.ServiceKindConnectProxy, Port: 20000, Meta: meta,
			Proxy: &api.AgentServiceConnectProxyConfig{DestinationServiceName: "web"}},
	} {
		w.put(&api.CatalogRegistration{Node: node, Address: "10.0.0.1", Service: s, SkipNodeUpdate: true,
			Check: &api.AgentCheck{Node: node, CheckID: s.ID + "-check",
				Name: "ready", ServiceID: s.ID, Status: api.HealthPassing}})
	}
	w.serf(node, serf)
}

func (w *fixture) serf(node, status string) {
	w.t.Helper()
	w.put(&api.CatalogRegistration{Node: node, Address: "10.0.0.1", SkipNodeUpdate: true,
		Check: &api.AgentCheck{Node: node, CheckID: "serfHealth", Name: "Serf Health Status", Status: status}})
}

func (w *fixture) put(r *api.CatalogRegistration) {
	w.t.Helper()
	if _, err := w.Consul.Catalog().Register(r, nil); err != nil {
		w.t.Fatal(err)
	}
}

// alive returns the tokens that exist.
func (w *fixture) alive(accessors ...string) (left []string) {
	w.t.Helper()
	for _, a := range accessors {
		if _, _, err := w.Consul.ACL().TokenRead(a, nil); err == nil {
			left = append(left, a)
		} else if !strings.Contains(err.Error(), "not found") {
			w.t.Fatal(err)
		}
	}
	return left
}

// onNode returns the IDs of a node's services, and whether there is a node.
func (w *fixture) onNode(node string) (ids []string, there bool) {
	w.t.Helper()
	n, _, err := w.Consul.Catalog().Node(node, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if n == nil {
		return nil, false
	}
	for id := range n.Services {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids, true
}

// once runs a pass as acl-controller does: it deletes what is proven, also beside
// an error of the look.
func once(t *testing.T, c *Cleaner) (Report, error) {
	t.Helper()
	r, err := c.Look(t.Context())
	err = errors.Join(err, c.Apply(t.Context(), &r))
	return r, err
}

// pass runs one that must succeed.
func (w *fixture) pass() Report {
	w.t.Helper()
	r, err := once(w.t, w.Cleaner)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// otherService returns a service of another owner on a node.
func otherService(node, id string, meta map[string]string) *api.CatalogRegistration {
	return &api.CatalogRegistration{Node: node, Address: "10.0.0.1",
		SkipNodeUpdate: true, Service: &api.AgentService{ID: id, Service: id, Meta: meta}}
}

// drain asks ECS to stop a task, and does not wait for it.
func (w *fixture) drain(ecs *awstest.ECS, id string) {
	w.t.Helper()
	client := awsecs.NewFromConfig(ecs.Config())
	if _, err := client.StopTask(w.t.Context(),
		&awsecs.StopTaskInput{Cluster: &w.Cluster.Name, Task: &id}); err != nil {
		w.t.Fatal(err)
	}
}
