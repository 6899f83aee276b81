package controller

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/awsutil/awstest"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// onECS makes the fixture ask the ECS API through AWS's SDK. The tasks are those of
// the cluster named like the test.
func onECS(t *testing.T, change func(*awstest.ECSOptions)) (*fixture, *awstest.ECS) {
	t.Helper()
	var o awstest.ECSOptions
	if change != nil {
		change(&o)
	}
	ecs := awstest.NewECS(t, o)
	reader := awsutil.NewECSReader(ecs.Config(), awsutil.ECSReaderOptions{CallsPerSecond: 1000})
	w := newFixture(t, func(o *CleanerOptions) {
		o.ECS = reader
	})
	return w, ecs
}

// run runs tasks of the fixture's cluster, and returns their IDs.
func (w *fixture) run(ecs *awstest.ECS, g awstest.TaskGroup) (ids []string) {
	g.Cluster = w.Cluster.Name
	for _, arn := range ecs.Run(g) {
		ids = append(ids, arn[strings.LastIndexByte(arn, '/')+1:])
	}
	return ids
}

// tokensOf makes one token for each task.
func (w *fixture) tokensOf(ids []string) (accessors []string) {
	for _, id := range ids {
		accessors = append(accessors, w.login("iam-ecs-service-token", id, w.Cluster.ARN))
	}
	return accessors
}

// TestPassOnTheECSAPI: of 250 tasks, two stop; ECS is asked for three pages
// and one description.
func TestPassOnTheECSAPI(t *testing.T) {
	t.Parallel()
	w, ecs := onECS(t, nil)
	ids := w.run(ecs, awstest.TaskGroup{Family: "web", Count: 250})
	tokens := w.tokensOf(ids)
	w.register(ids[7], "api-7", "critical")
	r := w.pass()
	testkit.Equal(t, "first pass: deletions, tasks and calls", []int{len(r.Deleted), r.Running, r.AWS.Calls},
		[]int{0, 250, 3})
	ecs.Stop(ids[7], ids[200])
	r = w.pass()
	testkit.Equal(t, "tokens of the stopped tasks", len(w.alive(tokens[7], tokens[200])), 0)
	testkit.Equal(t, "tokens and calls", []int{len(w.alive(tokens...)), r.AWS.Calls}, []int{248, 4})
	if _, there := w.onNode("api-7"); there {
		t.Error("the node is left")
	}
	for _, d := range r.Deleted {
		if !strings.HasPrefix(d.Evidence, "ECS shows the task as STOPPED since 20") ||
			!strings.Contains(d.Evidence, "UserInitiated") {
			t.Errorf("evidence %q", d.Evidence)
		}
	}
}

// TestDrainingTaskKeepsItsTokens: a task that is
// asked to stop leaves ECS's default list while its containers still run.
func TestDrainingTaskKeepsItsTokens(t *testing.T) {
	t.Parallel()
	w, ecs := onECS(t, func(o *awstest.ECSOptions) { o.Timing.Stop = time.Hour })
	ids := w.run(ecs, awstest.TaskGroup{Family: "web", Count: 1})
	tokens := w.tokensOf(ids)
	w.register(ids[0], "draining", "passing")
	w.drain(ecs, ids[0])
	r := w.pass()
	if left := w.alive(tokens...); len(left) != 1 || len(r.Deleted) != 0 {
		t.Errorf("left %v, deleted %v", left, r.Deleted)
	}
	if len(r.Kept) != 1 || r.Kept[0].Reason != KeepStopping {
		t.Errorf("kept %+v", r.Kept)
	}
}

// TestUntaggedTaskIsAlive: tags of a service that
// were not passed on prove nothing about the task.
func TestUntaggedTaskIsAlive(t *testing.T) {
	t.Parallel()
	w, ecs := onECS(t, nil)
	ids := w.run(ecs, awstest.TaskGroup{Family: "web", Count: 2})
	ids = append(ids,
		w.run(ecs,
			awstest.TaskGroup{Family: "half", Count: 2,
				Tags: map[string]string{"consul.hashicorp.com/partition": "p"}})...)
	tokens := w.tokensOf(ids)
	if r := w.pass(); len(r.Delete) != 0 || len(w.alive(tokens...)) != 4 {
		t.Errorf("deleted %v", r.Delete)
	}
}

// TestFailuresAreNoDeath: what ECS could not look up is not dead, nor is
// what it did not answer for, or shows in another cluster.
func TestFailuresAreNoDeath(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	w.limits = limits{time.Nanosecond, time.Nanosecond}
	tokens := []string{}
	for i := range 4 {
		tokens = append(tokens,
			w.login("iam-ecs-service-token", strings.Repeat(string(rune('a'+i)), 32), w.Cluster.ARN))
	}
	w.ecs.failures = map[string]string{strings.Repeat("a", 32): "INTERNAL"}
	w.ecs.silent = map[string]bool{strings.Repeat("b", 32): true}
	w.ecs.described = map[string]awsutil.ECSTask{strings.Repeat("c",
		32): {ClusterARN: clusterARN, LastStatus: "STOPPED"}}
	w.ecs.stopped = []string{strings.Repeat("d", 32)} // listed, and its ID is unknown
	for range 2 {
		r := w.pass()
		testkit.Equal(t, "deletions and retained tasks", []int{len(r.Delete), len(r.Kept)}, []int{0, 4})
		for _, k := range r.Kept {
			testkit.Equal(t, "reason of a retained task", k.Reason, KeepUnknown)
		}
	}
	if left := w.alive(tokens...); len(left) != 4 {
		t.Errorf("left: %v", left)
	}
}

// TestPartialAnswersDeleteNothing: a failed page of a list ends the pass, a failed
// description spares its tasks, and a list of those that are to stop that cannot be
// read spares all that are missing.
func TestPartialAnswersDeleteNothing(t *testing.T) {
	t.Parallel()
	fault := errors.New("Rate exceeded")
	tests := map[string]func(*fakeECS){
		"running": func(f *fakeECS) { f.listErr = fault },
		"stopped": func(f *fakeECS) { f.stoppedErr = fault },
		"describe": func(f *fakeECS) {
			f.describeErr, f.silent = fault, map[string]bool{task1: true}
		},
	}
	for name, fail := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, nil)
			w.limits = limits{time.Nanosecond, time.Nanosecond}
			w.register(task1, "partial-"+name, "passing")
			w.pass() // the first look
			fail(w.ecs)
			r, err := once(t, w.Cleaner)
			if !errors.Is(err, fault) || len(r.Delete) != 0 {
				t.Errorf("deleted %v, %v", r.Delete, err)
			}
			*w.ecs = fakeECS{}
			if r = w.pass(); len(r.Deleted) != 0 {
				t.Errorf("deleted after one look: %v", r.Deleted)
			}
			if r = w.pass(); len(r.Deleted) != 2 {
				t.Errorf("the dead task's services are left: %+v", r)
			}
		})
	}
}

// TestForget: a task that was missing when this controller led before is not
// missing "since then": another one led, and may have seen it.
func TestForget(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	w.limits = limits{time.Nanosecond, time.Nanosecond}
	w.register(task1, "forget", "passing")
	w.pass()
	w.Forget()
	if r := w.pass(); len(r.Deleted) != 0 {
		t.Errorf("deleted by the first look of a new lead: %v", r.Deleted)
	}
	if r := w.pass(); len(r.Deleted) != 2 {
		t.Errorf("the dead task's services are left: %+v", r)
	}
}

// TestNothingToLookUp: a cluster without tasks is no error, and costs one
// call: AWS refuses to describe no task.
func TestNothingToLookUp(t *testing.T) {
	t.Parallel()
	w, ecs := onECS(t, nil)
	w.run(ecs, awstest.TaskGroup{Family: "web"})
	if r := w.pass(); r.AWS.Calls != 1 || ecs.Calls("DescribeTasks") != 0 {
		t.Errorf("report = %+v", r)
	}
}

// failingTransport answers some writes with an error.
type failingTransport struct {
	next http.RoundTripper
	mu   sync.Mutex
	fail func(*http.Request) bool
}

// RoundTrip implements http.RoundTripper.
func (f *failingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	fail := f.fail(r)
	f.mu.Unlock()
	if fail {
		return nil, errors.New("connection reset by peer")
	}
	return f.next.RoundTrip(r)
}

// TestOneFailureStopsNoOther: all that went wrong is
// in the report and in the error.
func TestOneFailureStopsNoOther(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	client, service := w.tokens(task1)
	w.register(task1, "failures", "critical")
	w.ecs.stop(task1)
	w.requests.next = &failingTransport{next: w.requests.next, fail: func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, client) || r.URL.Path == "/v1/catalog/deregister"
	}}
	r, err := once(t, w.Cleaner)
	testkit.ErrorContains(t, err, "3 of the deletions failed: ")
	testkit.Equal(t, "failures and errors of Consul", []int{len(r.Failed), r.ConsulErrors}, []int{3, 3})
	w.requests.next = w.requests.next.(*failingTransport).next
	if left := w.alive(client, service); !slices.Equal(left, []string{client}) {
		t.Errorf("left: %v", left)
	}
	if r := w.pass(); len(r.Deleted) != 4 {
		t.Errorf("the next pass: %+v", r)
	}
}

// TestBrokenReadsOfConsul: a service that cannot be read stops no other.
func TestBrokenReadsOfConsul(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	client, service := w.tokens(task1)
	w.register(task1, "broken", "critical")
	w.ecs.stop(task1)
	next := w.requests.next
	for _, path := range []string{"/v1/catalog/service/web", "/v1/catalog/services"} {
		w.requests.next = &failingTransport{next: next, fail: func(r *http.Request) bool { return r.URL.Path == path }}
		if r, err := once(t, w.Cleaner); err == nil || r.ConsulErrors == 0 {
			t.Errorf("%s: %+v, %v", path, r, err)
		}
	}
	if left := w.alive(client, service); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	w.requests.next = next
	w.pass()
	if _, there := w.onNode("broken"); there {
		t.Error("the node is left")
	}
}

// TestDeletedCluster: what is left of a cluster that is gone can be removed, which
// its own controller cannot do. It takes two looks as ever.
func TestDeletedCluster(t *testing.T) {
	t.Parallel()
	w, ecs := onECS(t, nil)
	w.limits = limits{time.Nanosecond, time.Nanosecond}
	ids := w.run(ecs, awstest.TaskGroup{Family: "web", Count: 1})
	w.register(ids[0], "deleted", "critical")
	ecs.Stop(ids...)
	client := awsecs.NewFromConfig(ecs.Config())
	if _, err := client.DeleteCluster(t.Context(), &awsecs.DeleteClusterInput{Cluster: &w.Cluster.Name}); err != nil {
		t.Fatal(err)
	}
	if r := w.pass(); len(r.Deleted) != 0 || len(r.Kept) != 1 {
		t.Errorf("first look: %+v", r)
	}
	if r := w.pass(); len(r.Deleted) != 3 ||
		!strings.HasSuffix(r.Deleted[0].Evidence, " ago; the cluster was deleted") {
		t.Errorf("second look: %+v", r)
	}
}
