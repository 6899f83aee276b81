package observe

import (
	"context"
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
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/chaos/invariant"
	"github.com/meshtask/consul-ecs/localecs/scenario/progress"
	"github.com/meshtask/consul-ecs/localecs/scenario/screen"
	"github.com/meshtask/consul-ecs/localecs/scenario/traffic"
)

// at is a moment n seconds after the traffic began.
func at(n int) time.Time { return time.Unix(1_800_000_000+int64(n), 0) }

// passedOn is a Progress that keeps events.
type passedOn struct{ events []progress.Event }

func (p *passedOn) Event(e progress.Event)                  { p.events = append(p.events, e) }
func (p *passedOn) Follow(func() screen.State) (end func()) { return func() {} }

// consul is a server that holds what a test puts there.
type consul struct {
	mu      sync.Mutex
	tokens  []api.ACLTokenListEntry
	service []api.CatalogService
	members []api.AgentMember
	checks  []api.HealthCheck
}

func (c *consul) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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

func (c *consul) set(change func(*consul)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

func world(t *testing.T) (*Recorder, *passedOn, *consul, *api.Client) {
	t.Helper()
	out, c := &passedOn{}, &consul{}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	client, err := consulutil.NewClient(consulutil.Options{Address: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return New(out, Options{
		Methods:  map[string]invariant.What{"services": invariant.ServiceToken, "agents": invariant.ClientToken},
		Services: []string{"api"},
		Serving:  map[string][]string{"api-1": {"api", "sidecar-proxy"}},
		Healthy:  map[string][]string{"api-1": {"api"}},
		Stays:    func(_ string, what invariant.What) bool { return what == invariant.AgentFails },
	}), out, c, client
}

func TestEventsAreRecordedAndPassedOn(t *testing.T) {
	t.Parallel()
	r, out, _, _ := world(t)
	for _, e := range []progress.Event{
		{Time: at(-10), Kind: progress.Task, Task: "api-1", TaskID: "1234", Address: "10.0.0.4"},
		{Time: at(0), Kind: progress.TrafficBegin, Task: "web"},
		{Time: at(1), Kind: progress.Health, Task: "api-1", Container: "sidecar-proxy", Status: "UNHEALTHY"}, // not mirrored
		{Time: at(2), Kind: progress.Health, Task: "api-1", Container: "api", Status: "UNHEALTHY"},
		{Time: at(3), Kind: progress.Health, Task: "api-1", Container: "api", Status: "HEALTHY"},
		{Time: at(4), Kind: progress.Status, Task: "api-1", Container: "sidecar-proxy", Status: "STOPPED"},
		{Time: at(4), Kind: progress.Status, Task: "api-1", Container: "consul-ecs-install", Status: "STOPPED"},
		{Time: at(5), Kind: progress.Desired, Task: "api-1", Status: "STOPPED"},
		{Time: at(9), Kind: progress.Status, Task: "api-1", Status: "STOPPED"},
		{Time: at(12), Kind: progress.TrafficEnd},
	} {
		r.Event(e)
	}
	r.Request(traffic.Request{Start: at(6), End: at(7)})
	r.Request(traffic.Request{Start: at(7), End: at(8), Err: errors.New("503")})
	s := time.Second
	want := invariant.Observed{
		Requests: []invariant.Request{{Start: 6 * s, End: 7 * s}, {Start: 7 * s, End: 8 * s, Error: "503"}},
		Tasks:    []invariant.Life{{Task: "api-1", Started: -10 * s, Term: 5 * s, Stopped: 9 * s}},
		States: []invariant.State{
			{At: 2 * s, Task: "api-1", Container: "api", Unable: true, Why: "is UNHEALTHY"},
			{At: 3 * s, Task: "api-1", Container: "api", Why: "is HEALTHY"},
			{At: 4 * s, Task: "api-1", Container: "sidecar-proxy", Unable: true, Why: "is STOPPED"},
		},
		Healed: 12 * s, Ended: 20 * s,
	}
	if d := cmp.Diff(want, r.Observed(at(20))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if len(out.events) != 10 {
		t.Errorf("%d events passed on, want 10", len(out.events))
	}
}

func TestARunWithoutTrafficShowsNothing(t *testing.T) {
	t.Parallel()
	r, _, _, _ := world(t)
	r.Event(progress.Event{Time: at(-10), Kind: progress.Task, Task: "api-1", TaskID: "1234"})
	if d := cmp.Diff(invariant.Observed{}, r.Observed(at(20))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestWhatIsLeftIsSeenToGo(t *testing.T) {
	t.Parallel()
	r, _, c, client := world(t)
	r.Event(progress.Event{Time: at(0), Kind: progress.TrafficBegin})
	r.Event(progress.Event{Time: at(-10), Kind: progress.Task, Task: "api-1", TaskID: "1234", Address: "10.0.0.4"})
	c.set(func(c *consul) {
		c.tokens = []api.ACLTokenListEntry{{AccessorID: "t1", AuthMethod: "services", Description: "task 1234"}, {AccessorID: "t2", AuthMethod: "agents", Description: "task 1234"}, {AccessorID: "t3", AuthMethod: "agents", Description: "task 5678"}}
		c.service = []api.CatalogService{{ServiceID: "api-1234"}}
		c.members = []api.AgentMember{{Name: "n", Addr: "10.0.0.4", Status: 4}}
	})
	r.look(t.Context(), client)
	if got := r.Observed(at(1)).Left; len(got) != 0 {
		t.Errorf("of a task that runs: %v", got)
	}
	r.Event(progress.Event{Time: at(2), Kind: progress.Status, Task: "api-1", Status: "STOPPED"})
	r.look(t.Context(), client)
	if got := r.patience(); got != invariant.ServiceBound+2*lookEvery {
		t.Errorf("patience %s", got)
	}
	c.set(func(c *consul) { c.tokens, c.service = c.tokens[1:], nil })
	r.look(t.Context(), client)
	got := map[string]string{}
	for _, l := range r.Observed(at(9)).Left {
		got[l.Name] = string(l.What)
		if left := l.Gone == invariant.Never; left != (l.Name == "token t2 of agents" || l.What == invariant.AgentFails) {
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
	c.set(func(c *consul) { c.tokens = nil })
	r.look(t.Context(), client)
	if got := r.patience(); got != 0 { // the agent stays
		t.Errorf("patience %s with nothing left but what stays", got)
	}
}

func TestTrafficIsSeenToTurn(t *testing.T) {
	t.Parallel()
	r, _, c, client := world(t)
	r.Event(progress.Event{Time: time.Now(), Kind: progress.TrafficBegin})
	r.Event(progress.Event{Time: time.Now(), Kind: progress.Task, Task: "api-1", TaskID: "1234"})
	c.set(func(c *consul) {
		c.checks = []api.HealthCheck{{Node: "n", CheckID: "x", ServiceID: "api-1234-sidecar-proxy", Status: "passing"}}
	})
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	var watching sync.WaitGroup
	watching.Go(func() { r.Watch(ctx, client) })
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for turned := func() int { return len(r.Observed(time.Now()).Traffic) }; turned() < 2 && ctx.Err() == nil; <-tick.C {
		if turned() == 1 {
			c.set(func(c *consul) { c.checks[0].Status = "critical" })
		}
	}
	got := r.Observed(time.Now()).Traffic
	if len(got) < 2 || !got[0].In || got[1].In || got[1].At < got[0].At {
		t.Errorf("turns %+v, want in and out", got)
	}
	cancel()
	watching.Wait()
}
