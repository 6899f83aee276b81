package scenario

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// watchedAt returns a moment n seconds into a run.
func watchedAt(n int) time.Time { return time.Unix(1_800_000_000+int64(n), 0) }

func TestInTraffic(t *testing.T) {
	t.Parallel()
	check := func(service, status string) *api.HealthCheck {
		return &api.HealthCheck{ServiceID: service, Status: status}
	}
	for _, c := range []struct {
		name   string
		checks allChecks
		want   bool
	}{
		{"nothing known", nil, false},
		{"no proxy yet", allChecks{"a": check("api-1234", "passing")}, false},
		{"all passing", allChecks{"a": check("api-1234", "passing"), "b": check("api-1234-sidecar-proxy", "passing")},
			true},
		{"service critical", allChecks{"a": check("api-1234", "critical"),
			"b": check("api-1234-sidecar-proxy", "passing")}, false},
		{"proxy critical", allChecks{"a": check("api-1234", "passing"),
			"b": check("api-1234-sidecar-proxy", "critical")}, false},
		{"its node is critical", allChecks{
			"a": {Node: "n", ServiceID: "api-1234-sidecar-proxy", Status: "passing"},
			"b": {Node: "n", CheckID: "serfHealth", Status: "critical"},
		}, false},
		{"another node is critical", allChecks{
			"a": {Node: "n", ServiceID: "api-1234-sidecar-proxy", Status: "passing"},
			"b": {Node: "n", CheckID: "serfHealth", Status: "passing"},
			"c": {Node: "m", CheckID: "serfHealth", Status: "critical"},
		}, true},
		{"a gateway without an agent",
			allChecks{"a": {ServiceID: "edge-1234", CheckID: "edge-1234-consul-dataplane", Status: "passing"},
				"b": {ServiceID: "edge-1234", CheckID: "edge-1234:session", Status: "passing"}}, true},
		{"a critical gateway without an agent",
			allChecks{"a": {ServiceID: "edge-1234", CheckID: "edge-1234-consul-dataplane", Status: "critical"}}, false},
		{"a gateway with an agent",
			allChecks{"a": {ServiceID: "edge-1234", CheckID: "service:edge-1234", Name: "mesh-gateway listener",
				Status: "passing"}}, true},
		{"a gateway in maintenance", allChecks{
			"a": {ServiceID: "edge-1234", CheckID: "service:edge-1234", Name: "mesh-gateway listener",
				Status: "passing"},
			"b": {ServiceID: "edge-1234", CheckID: "_service_maintenance:edge-1234", Status: "critical"},
		}, false},
		{"a service without an agent that has lost its proxy", allChecks{
			"a": {ServiceID: "api-1234", CheckID: "api-1234-consul-dataplane", Status: "passing"},
			"b": {ServiceID: "api-1234", CheckID: "api-1234-api", Status: "passing"},
		}, false},
		{"another task is critical",
			allChecks{"a": check("api-5678", "critical"), "b": check("api-1234-sidecar-proxy", "passing")}, true},
	} {
		if got := c.checks.InTraffic("1234"); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

func TestStatusOfAContainersCheck(t *testing.T) {
	t.Parallel()
	checks := allChecks{
		"a": {CheckID: "api-1234-api-consul-ecs", Status: "passing"},
		"b": {CheckID: "api-1234-log-consul-ecs", Status: "critical"},
		"c": {CheckID: "service:api-1234-sidecar-proxy:1", Status: "warning"},
		"d": {CheckID: "edge-5678-consul-dataplane", Status: "passing"},
	}
	for _, c := range []struct{ task, container, want string }{
		{"1234", "api", "passing"},
		{"1234", "log", "critical"},
		{"5678", "sidecar-proxy", "passing"},
		{"5678", "consul-dataplane", "passing"},
		{"1234", "web", ""},
		{"5678", "api", ""},
	} {
		if got := checks.Status(c.task, c.container); got != c.want {
			t.Errorf("container %s of %s: %q, want %q", c.container, c.task, got, c.want)
		}
	}
}

func TestWatcherReportsChangesOnly(t *testing.T) {
	t.Parallel()
	var reported []string
	w := newWatcher(nil, func(_ time.Time, c *api.HealthCheck, status string) {
		reported = append(reported, c.CheckID+" "+status)
	})
	w.update(watchedAt(0), api.HealthChecks{{Node: "n", CheckID: "a", Status: "critical"}}, false)
	w.update(watchedAt(1), api.HealthChecks{{Node: "n", CheckID: "a", Status: "critical"}}, false)
	w.update(watchedAt(2), api.HealthChecks{{Node: "n", CheckID: "a", Status: "passing"}}, false)
	w.update(watchedAt(3), nil, false)
	want := "a critical, a passing, a gone"
	if got := strings.Join(reported, ", "); got != want {
		t.Errorf("reported %q, want %q", got, want)
	}
}

// consul answers as a server whose catalog has the nodes, and whose gossip the
// members; while it is down it answers nothing.
type consul struct {
	mu             sync.Mutex
	down           bool
	nodes, members []string
	asked          int
}

func (c *consul) change(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
	c.asked = 0
}

// seen reports whether the watcher has seen what there is now.
func (c *consul) seen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked > 1
}

func (c *consul) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if c.down {
		http.Error(w, "No cluster leader", http.StatusInternalServerError)
		return
	}
	var answer any
	switch r.URL.Path {
	case "/v1/agent/members":
		members := []*api.AgentMember{}
		for _, name := range c.members {
			members = append(members, &api.AgentMember{Name: name})
		}
		answer = members
	case "/v1/health/state/any":
		// The node of tasks without agents is in no gossip.
		checks := api.HealthChecks{{Node: "mesh", CheckID: "web", Status: api.HealthPassing}}
		for _, name := range c.nodes {
			checks = append(checks, &api.HealthCheck{Node: name, CheckID: "serfHealth", Status: api.HealthPassing})
		}
		answer = checks
	}
	w.Header().Set("X-Consul-Index", "0") // it has always changed
	_ = json.NewEncoder(w).Encode(answer)
}

// A server that is back takes the nodes that its gossip has not found again out of
// the catalog: until it knows all that it has, nothing of what it says is awaited.
func TestChecksOfALostServerAreNotCurrent(t *testing.T) {
	t.Parallel()
	c := &consul{nodes: []string{"Web", "api"}, members: []string{"web", "api"}}
	fake := httptest.NewServer(c)
	defer fake.Close()
	client, err := api.NewClient(&api.Config{Address: fake.URL})
	if err != nil {
		t.Fatal(err)
	}
	w := newWatcher(client, func(time.Time, *api.HealthCheck, string) {})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	defer running.Wait()
	defer cancel()
	all := func() (bool, error) {
		checks, current := w.Now()
		return current && len(checks) == 3, nil
	}
	if err := pollUntil(ctx, all); err != nil {
		t.Fatal(err)
	}
	for _, lost := range []struct {
		why string
		do  func()
	}{
		{"it is down", func() { c.down = true }},
		{"its gossip knows one of two", func() { c.down, c.members = false, []string{"web"} }},
	} {
		c.change(lost.do)
		testkit.Eventually(t, "the watcher looks", c.seen)
		if trusted, _ := all(); trusted {
			t.Errorf("%s: trusted", lost.why)
		}
	}
	c.change(func() { c.members = []string{"web", "api"} })
	if err := pollUntil(ctx, all); err != nil {
		t.Error(err)
	}
}

func TestCountIsOfOneTask(t *testing.T) {
	t.Parallel()
	checks := allChecks{
		"a": {ServiceID: "api-1234", Status: "passing"},
		"b": {ServiceID: "api-1234-sidecar-proxy", Status: "passing"},
		"c": {ServiceID: "api-1234-sidecar-proxy", Status: "critical"},
		"d": {ServiceID: "api-5678", Status: "warning"},
	}
	got := checks.Count("1234")
	if len(got) != 2 {
		t.Fatalf("got %v", got)
	}
	testkit.Equal(t, `got["passing"]`, got["passing"], 2)
	testkit.Equal(t, `got["critical"]`, got["critical"], 1)
}
