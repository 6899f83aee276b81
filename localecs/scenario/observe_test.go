package scenario

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/localecs/chaos"
	"github.com/meshtask/consul-ecs/localecs/view"
)

// observedAt returns a moment n seconds after the traffic began.
func observedAt(n int) time.Time { return time.Unix(1_800_000_000+int64(n), 0) }

// passedOn keeps events.
type passedOn struct{ events []Event }

func (p *passedOn) Event(e Event) { p.events = append(p.events, e) }

// consul is a server that holds what a test puts there.
type observedConsul struct {
	mu      sync.Mutex
	tokens  []api.ACLTokenListEntry
	service []api.CatalogService
	members []api.AgentMember
	checks  []api.HealthCheck
}

func (c *observedConsul) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Header().Set("X-Consul-Index", "1")
	var answer any
	switch r.URL.Path {
	case "/v1/acl/tokens":
		answer = c.tokens
	case "/v1/catalog/service/api":
		answer = c.service
	case "/v1/agent/members":
		answer = c.members
	case "/v1/health/state/any":
		answer = c.checks
	default:
		http.NotFound(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (c *observedConsul) set(change func(*observedConsul)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

func observedFixture(t *testing.T) (*runRecorder, *passedOn, *observedConsul, *api.Client) {
	t.Helper()
	out, c := &passedOn{}, &observedConsul{}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	client, err := consulutil.NewClient(consulutil.Options{Address: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return newRecorder(out.Event, recorderOptions{
		Methods:  map[string]chaos.What{"services": chaos.ServiceToken, "agents": chaos.ClientToken},
		Services: []string{"api"},
		Serving:  map[string][]string{"api-1": {"api", "sidecar-proxy"}},
		Healthy:  map[string][]string{"api-1": {"api"}},
		Stays:    func(_ string, what chaos.What) bool { return what == chaos.AgentFails },
	}), out, c, client
}

func TestEventsAreRecordedAndPassedOn(t *testing.T) {
	t.Parallel()
	r, out, _, _ := observedFixture(t)
	for _, e := range []Event{
		{Time: observedAt(-10), Kind: KindTask, Task: "api-1", TaskID: "1234", Address: "10.0.0.4"},
		{Time: observedAt(0), Kind: KindTrafficBegin, Task: "web"},
		// not mirrored
		{Time: observedAt(1), Kind: view.KindHealth, Task: "api-1", Container: "sidecar-proxy", Status: "UNHEALTHY"},
		{Time: observedAt(2), Kind: view.KindHealth, Task: "api-1", Container: "api", Status: "UNHEALTHY"},
		{Time: observedAt(3), Kind: view.KindHealth, Task: "api-1", Container: "api", Status: "HEALTHY"},
		{Time: observedAt(4), Kind: view.KindStatus, Task: "api-1", Container: "sidecar-proxy", Status: "STOPPED"},
		{Time: observedAt(4), Kind: view.KindStatus, Task: "api-1", Container: "consul-ecs-install", Status: "STOPPED"},
		{Time: observedAt(5), Kind: view.KindDesired, Task: "api-1", Status: "STOPPED"},
		{Time: observedAt(9), Kind: view.KindStatus, Task: "api-1", Status: "STOPPED"},
		{Time: observedAt(12), Kind: KindTrafficEnd},
	} {
		r.Event(e)
	}
	r.Request(trafficRequest{Start: observedAt(6), End: observedAt(7)})
	r.Request(trafficRequest{Start: observedAt(7), End: observedAt(8), Err: errors.New("503")})
	s := time.Second
	want := chaos.Observed{
		Requests: []chaos.Request{{Start: 6 * s, End: 7 * s}, {Start: 7 * s, End: 8 * s, Error: "503"}},
		Tasks:    []chaos.TaskLifetime{{Task: "api-1", Started: -10 * s, Term: 5 * s, Stopped: 9 * s}},
		States: []chaos.State{
			{At: 2 * s, Task: "api-1", Container: "api", Unable: true, Why: "is UNHEALTHY"},
			{At: 3 * s, Task: "api-1", Container: "api", Why: "is HEALTHY"},
			{At: 4 * s, Task: "api-1", Container: "sidecar-proxy", Unable: true, Why: "is STOPPED"},
		},
		Healed: 12 * s, Ended: 20 * s,
	}
	if d := cmp.Diff(want, r.Observed(observedAt(20))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if len(out.events) != 10 {
		t.Errorf("%d events passed on, want 10", len(out.events))
	}
}

func TestARunWithoutTrafficShowsNothing(t *testing.T) {
	t.Parallel()
	r, _, _, _ := observedFixture(t)
	r.Event(Event{Time: observedAt(-10), Kind: KindTask, Task: "api-1", TaskID: "1234"})
	if d := cmp.Diff(chaos.Observed{}, r.Observed(observedAt(20))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestLeftoversAreSeenToDisappear(t *testing.T) {
	t.Parallel()
	r, _, c, client := observedFixture(t)
	r.Event(Event{Time: observedAt(0), Kind: KindTrafficBegin})
	r.Event(Event{Time: observedAt(-10), Kind: KindTask, Task: "api-1", TaskID: "1234", Address: "10.0.0.4"})
	c.set(func(c *observedConsul) {
		c.tokens = []api.ACLTokenListEntry{
			{AccessorID: "t1", AuthMethod: "services", Description: "task 1234"},
			{AccessorID: "t2", AuthMethod: "agents", Description: "task 1234"},
			{AccessorID: "t3", AuthMethod: "agents", Description: "task 5678"},
		}
		c.service = []api.CatalogService{{ServiceID: "api-1234"}}
		c.members = []api.AgentMember{{Name: "n", Addr: "10.0.0.4", Status: 4}}
	})
	r.look(t.Context(), client)
	if got := r.Observed(observedAt(1)).Left; len(got) != 0 {
		t.Errorf("of a task that runs: %v", got)
	}
	r.Event(Event{Time: observedAt(2), Kind: view.KindStatus, Task: "api-1", Status: "STOPPED"})
	r.look(t.Context(), client)
	if got := r.patience(); got != chaos.ServiceBound+2*lookEvery {
		t.Errorf("patience %s", got)
	}
	c.set(func(c *observedConsul) { c.tokens, c.service = c.tokens[1:], nil })
	r.look(t.Context(), client)
	got := map[string]string{}
	for _, l := range r.Observed(observedAt(9)).Left {
		got[l.Name] = string(l.What)
		if left := l.Gone == chaos.Never; left != (l.Name == "token t2 of agents" || l.What == chaos.AgentFails) {
			t.Errorf("%s: gone at %s", l.Name, l.Gone)
		}
	}
	want := map[string]string{
		"token t1 of services": "its services' token stays", "token t2 of agents": "its agent's token stays",
		"service api-1234": "its services stay", "agent n, which is failed": "its agent is failed",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	c.set(func(c *observedConsul) { c.tokens = nil })
	r.look(t.Context(), client)
	if got := r.patience(); got != 0 { // the agent stays
		t.Errorf("patience %s with nothing left but what stays", got)
	}
}

func TestTrafficTurnsAreRecorded(t *testing.T) {
	t.Parallel()
	r, _, _, _ := observedFixture(t)
	r.Event(Event{Time: observedAt(-1), Kind: KindTask, Task: "api-1", TaskID: "1234"})
	r.Event(Event{Time: observedAt(0), Kind: KindTrafficBegin})
	r.Event(Event{Time: observedAt(1), Kind: view.KindInTraffic, Task: "api-1", Status: "in"})
	r.Event(Event{Time: observedAt(3), Kind: view.KindInTraffic, Task: "api-1", Status: "out"})
	want := []chaos.TrafficChange{{At: time.Second, Task: "api-1", In: true}, {At: 3 * time.Second, Task: "api-1"}}
	if d := cmp.Diff(want, r.Observed(observedAt(9)).Traffic); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
