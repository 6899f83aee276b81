package server

import (
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
)

// at is a moment n seconds into a run.
func at(n int) time.Time { return time.Unix(1_800_000_000+int64(n), 0) }

func TestInTraffic(t *testing.T) {
	t.Parallel()
	check := func(service, status string) *api.HealthCheck {
		return &api.HealthCheck{ServiceID: service, Status: status}
	}
	for _, c := range []struct {
		name   string
		checks Checks
		want   bool
	}{
		{"nothing known", nil, false},
		{"no proxy yet", Checks{"a": check("api-1234", "passing")}, false},
		{"all passing", Checks{"a": check("api-1234", "passing"), "b": check("api-1234-sidecar-proxy", "passing")}, true},
		{"service critical", Checks{"a": check("api-1234", "critical"), "b": check("api-1234-sidecar-proxy", "passing")}, false},
		{"proxy critical", Checks{"a": check("api-1234", "passing"), "b": check("api-1234-sidecar-proxy", "critical")}, false},
		{"its node is critical", Checks{
			"a": {Node: "n", ServiceID: "api-1234-sidecar-proxy", Status: "passing"}, "b": {Node: "n", CheckID: "serfHealth", Status: "critical"},
		}, false},
		{"another node is critical", Checks{
			"a": {Node: "n", ServiceID: "api-1234-sidecar-proxy", Status: "passing"}, "b": {Node: "n", CheckID: "serfHealth", Status: "passing"},
			"c": {Node: "m", CheckID: "serfHealth", Status: "critical"},
		}, true},
		{"another task is critical", Checks{"a": check("api-5678", "critical"), "b": check("api-1234-sidecar-proxy", "passing")}, true},
	} {
		if got := c.checks.InTraffic("1234"); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

func TestStatusOfAContainersCheck(t *testing.T) {
	t.Parallel()
	checks := Checks{
		"a": {CheckID: "api-1234-api-consul-ecs", Status: "passing"},
		"b": {CheckID: "api-1234-log-consul-ecs", Status: "critical"},
		"c": {CheckID: "service:api-1234-sidecar-proxy:1", Status: "warning"},
	}
	for _, c := range []struct{ task, container, want string }{
		{"1234", "api", "passing"},
		{"1234", "log", "critical"},
		{"1234", "web", ""},
		{"5678", "api", ""},
	} {
		if got := checks.Status(c.task, c.container); got != c.want {
			t.Errorf("container %s of %s: %q, want %q", c.container, c.task, got, c.want)
		}
	}
}

func TestWatcherTellsChangesOnly(t *testing.T) {
	t.Parallel()
	var told []string
	w := NewWatcher(nil, func(_ time.Time, c *api.HealthCheck, status string) { told = append(told, c.CheckID+" "+status) })
	w.update(at(0), api.HealthChecks{{Node: "n", CheckID: "a", Status: "critical"}})
	w.update(at(1), api.HealthChecks{{Node: "n", CheckID: "a", Status: "critical"}})
	w.update(at(2), api.HealthChecks{{Node: "n", CheckID: "a", Status: "passing"}})
	w.update(at(3), nil)
	want := "a critical, a passing, a gone"
	if got := strings.Join(told, ", "); got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}

func TestWatcherUntilWakesAtAChange(t *testing.T) {
	t.Parallel()
	w := NewWatcher(nil, func(time.Time, *api.HealthCheck, string) {})
	looks := make(chan int, 10)
	done := make(chan error)
	go func() {
		done <- w.Until(t.Context(), func(c Checks) bool { looks <- len(c); return len(c) == 1 })
	}()
	if n := <-looks; n != 0 {
		t.Errorf("first look saw %d checks", n)
	}
	w.update(at(0), api.HealthChecks{{Node: "n", CheckID: "a"}})
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestCountIsOfOneTask(t *testing.T) {
	t.Parallel()
	checks := Checks{
		"a": {ServiceID: "api-1234", Status: "passing"},
		"b": {ServiceID: "api-1234-sidecar-proxy", Status: "passing"},
		"c": {ServiceID: "api-1234-sidecar-proxy", Status: "critical"},
		"d": {ServiceID: "api-5678", Status: "warning"},
	}
	if got := checks.Count("1234"); len(got) != 2 || got["passing"] != 2 || got["critical"] != 1 {
		t.Errorf("got %v", got)
	}
}
