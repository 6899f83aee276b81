package scenario

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/localecs"
)

// at is a moment n seconds into a run.
func at(n int) time.Time { return time.Unix(1_800_000_000+int64(n), 0) }

func TestPhasesAreTheFirstOfTheirKind(t *testing.T) {
	t.Parallel()
	var p phases
	for _, e := range []localecs.Event{
		{At: at(0), Container: "consul-client", What: "status", Value: "RUNNING"},
		{At: at(1), Container: "consul-ecs-mesh-init", What: "status", Value: "RUNNING"},
		{At: at(2), Container: "consul-ecs-mesh-init", What: "status", Value: "STOPPED"},
		{At: at(3), Container: "sidecar-proxy", What: "status", Value: "RUNNING"},
		{At: at(4), Container: "sidecar-proxy", What: "health", Value: "HEALTHY"},
		{At: at(5), Container: "api", What: "status", Value: "RUNNING"},
		{At: at(6), Container: "api", What: "health", Value: "HEALTHY"},
		{At: at(7), Container: "api", What: "health", Value: "UNHEALTHY"},
		{At: at(8), Container: "api", What: "health", Value: "HEALTHY"},
		{At: at(10), What: "desired", Value: "STOPPED"},
		{At: at(12), Container: "api", What: "status", Value: "STOPPED"},
		{At: at(13), Container: "sidecar-proxy", What: "status", Value: "STOPPED"},
		{At: at(14), Container: "consul-client", What: "status", Value: "STOPPED"},
		{At: at(15), What: "status", Value: "STOPPED"},
	} {
		p.observe(e, "api")
	}
	want := phases{
		started: at(0), meshInit: at(2), proxyUp: at(3), proxyHealthy: at(4), application: at(5), healthy: at(6),
		term: at(10), applicationGone: at(12), proxyGone: at(13), clientGone: at(14), stopped: at(15),
	}
	if p != want {
		t.Errorf("got %+v, want %+v", p, want)
	}
}

func TestTableShowsSecondsSinceT0(t *testing.T) {
	t.Parallel()
	tasks := map[string]*taskRun{
		"web":   {phases: phases{started: at(10), meshInit: at(11), inTraffic: at(25)}},
		"never": {},
	}
	got := table("Start", []string{"web", "never"}, tasks, func(p *phases) time.Time { return p.started }, []column{
		{"T1 mesh-init done", func(p *phases) time.Time { return p.meshInit }},
		{"app healthy", func(p *phases) time.Time { return p.healthy }},
		{"in traffic", func(p *phases) time.Time { return p.inTraffic }},
	})
	want := "\nStart\n" +
		"  task        T1 mesh-init done  app healthy  in traffic\n" +
		"  web                      1.00            -       15.00\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestInTraffic(t *testing.T) {
	t.Parallel()
	check := func(service, status string) *api.HealthCheck {
		return &api.HealthCheck{ServiceID: service, Status: status}
	}
	for _, c := range []struct {
		name   string
		checks checkMap
		want   bool
	}{
		{"nothing known", nil, false},
		{"no proxy yet", checkMap{"a": check("api-1234", "passing")}, false},
		{"all passing", checkMap{"a": check("api-1234", "passing"), "b": check("api-1234-sidecar-proxy", "passing")}, true},
		{"service critical", checkMap{"a": check("api-1234", "critical"), "b": check("api-1234-sidecar-proxy", "passing")}, false},
		{"proxy critical", checkMap{"a": check("api-1234", "passing"), "b": check("api-1234-sidecar-proxy", "critical")}, false},
		{"another task is critical", checkMap{"a": check("api-5678", "critical"), "b": check("api-1234-sidecar-proxy", "passing")}, true},
	} {
		if got := inTraffic(c.checks, "1234"); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

func TestWatcherTellsChangesOnly(t *testing.T) {
	t.Parallel()
	var told []string
	w := newWatcher(nil, func(_ time.Time, c *api.HealthCheck, status string) { told = append(told, c.CheckID+" "+status) })
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
	w := newWatcher(nil, func(time.Time, *api.HealthCheck, string) {})
	looks := make(chan int, 10)
	done := make(chan error)
	go func() {
		done <- w.until(t.Context(), func(c checkMap) bool { looks <- len(c); return len(c) == 1 })
	}()
	if n := <-looks; n != 0 {
		t.Errorf("first look saw %d checks", n)
	}
	w.update(at(0), api.HealthChecks{{Node: "n", CheckID: "a"}})
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestPrinterWritesLinesOrObjects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		json bool
		want string
	}{
		{false, "   2.00s  web      sidecar-proxy          RUNNING\n"},
		{true, `"seconds":2,"task":"web","part":"sidecar-proxy","text":"RUNNING"}` + "\n"},
	} {
		var b bytes.Buffer
		newPrinter(&b, c.json, at(0)).event(at(2), "web", "sidecar-proxy", "RUNNING")
		if !strings.HasSuffix(b.String(), c.want) {
			t.Errorf("json %t: got %q, want %q", c.json, b.String(), c.want)
		}
	}
}
