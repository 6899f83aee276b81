package healthsync

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/workload"
)

func TestObserve(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		container workload.Container
		observed  observation
		status    string
		output    string
	}{
		"healthy": {
			workload.Container{Name: "app", KnownStatus: "RUNNING", Health: &workload.Health{Status: "HEALTHY"}},
			"HEALTHY", "passing", `container "app" is HEALTHY in ECS`,
		},
		"unhealthy": {
			workload.Container{Name: "app", KnownStatus: "RUNNING", Health: &workload.Health{Status: "UNHEALTHY"}},
			"UNHEALTHY", "critical", `container "app" is UNHEALTHY in ECS`,
		},
		"unknown": {
			workload.Container{Name: "app", KnownStatus: "RUNNING", Health: &workload.Health{Status: "UNKNOWN"}},
			"UNKNOWN", "critical", `container "app" is UNKNOWN in ECS`,
		},
		"no result yet": {
			workload.Container{Name: "app", KnownStatus: "RUNNING", Health: &workload.Health{}},
			"", "critical", `container "app" has no ECS health status`,
		},
		"no health check": {
			workload.Container{Name: "app", KnownStatus: "RUNNING"},
			"UNCHECKED", "critical",
			`container "app" has no ECS health check: add healthCheck to its container definition ` +
				`(ECS ignores the image's HEALTHCHECK), or name it in healthSync.startup`,
		},
		"a status that is ours": {
			workload.Container{Name: "app", KnownStatus: "RUNNING", Health: &workload.Health{Status: "UNCHECKED"}},
			"", "critical", `container "app" has no ECS health status`,
		},
		"a word ECS does not have": {
			workload.Container{Name: "app", Health: &workload.Health{Status: "healthy"}},
			"healthy", "critical", `container "app" is healthy in ECS`,
		},
		"not pulled yet": {
			workload.Container{Name: "app", DesiredStatus: "RUNNING", KnownStatus: "PULLED"},
			"", "critical", `container "app" has no ECS health status`,
		},
		"stopped with its last health": {
			workload.Container{Name: "app", DesiredStatus: "STOPPED", KnownStatus: "STOPPED",
				Health: &workload.Health{Status: "HEALTHY"}},
			"STOPPED", "critical", `container "app" is STOPPED in ECS`,
		},
		"crashed": {
			workload.Container{Name: "app", DesiredStatus: "RUNNING", KnownStatus: "STOPPED",
				Health: &workload.Health{Status: "HEALTHY"}},
			"STOPPED", "critical", `container "app" is STOPPED in ECS`,
		},
		"about to be stopped": {
			workload.Container{Name: "app", DesiredStatus: "STOPPED", KnownStatus: "RUNNING",
				Health: &workload.Health{Status: "HEALTHY"}},
			"STOPPED", "critical", `container "app" is STOPPED in ECS`,
		},
		"another container": {
			workload.Container{Name: "app2", KnownStatus: "RUNNING", Health: &workload.Health{Status: "HEALTHY"}},
			"MISSING", "critical", `container "app" is not in the task metadata`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			observed := observe([]workload.Container{tc.container}, "app", nil)
			got := []string{string(observed), observed.status(), observed.output("app")}
			if want := []string{string(tc.observed), tc.status, tc.output}; !slices.Equal(got, want) {
				t.Errorf("observation, status and output are %q, want %q", got, want)
			}
		})
	}
	if stopping.status() != "critical" ||
		stopping.output("app") != `container "app" belongs to a task that is stopping` {
		t.Errorf("stopping: %q, %q", stopping.status(), stopping.output("app"))
	}
}

// TestPortTakesThePlaceOfAHealthCheck: also while the container does not serve yet.
func TestPortTakesThePlaceOfAHealthCheck(t *testing.T) {
	t.Parallel()
	containers := []workload.Container{{Name: "app", KnownStatus: "RUNNING"}}
	for serves, want := range map[bool]observation{true: listening, false: none} {
		if got := observe(containers, "app", map[string]bool{"app": serves}); got != want {
			t.Errorf("serves %v: got %q, want %q", serves, got, want)
		}
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 17, 0, 0, 0, time.UTC)
	a := workload.SyncCheck{ID: "web-1-a-consul-ecs", Container: "a"}
	b := workload.SyncCheck{ID: "web-1-b-consul-ecs", Container: "b"}
	in := func(name, health string) workload.Container {
		return workload.Container{Name: name, KnownStatus: "RUNNING", Health: &workload.Health{Status: health}}
	}
	ago := func(container string, observed observation, d time.Duration) written {
		return written{container: container, observed: observed, at: now.Add(-d)}
	}

	for name, tc := range map[string]struct {
		containers []workload.Container
		last       map[string]written
		want       []change
	}{
		"nothing written yet": {
			[]workload.Container{in("b", "HEALTHY"), in("a", "")},
			nil,
			[]change{{check: a, container: "a", observed: "", first: true},
				{check: b, container: "b", observed: "HEALTHY", first: true}},
		},
		"nothing new": {
			[]workload.Container{in("a", "HEALTHY"), in("b", "UNHEALTHY")},
			map[string]written{a.ID: ago("a", "HEALTHY", 9*time.Second), b.ID: ago("b", "UNHEALTHY", time.Second)},
			nil,
		},
		"one changed": {
			[]workload.Container{in("a", "HEALTHY"), in("b", "HEALTHY")},
			map[string]written{a.ID: ago("a", "HEALTHY", time.Second), b.ID: ago("b", "UNHEALTHY", time.Second)},
			[]change{{check: b, container: "b", observed: "HEALTHY", previous: "UNHEALTHY"}},
		},
		"one disappeared": {
			[]workload.Container{in("b", "HEALTHY")},
			map[string]written{a.ID: ago("a", "HEALTHY", time.Second), b.ID: ago("b", "HEALTHY", time.Second)},
			[]change{{check: a, container: "a", observed: "MISSING", previous: "HEALTHY"}},
		},
		"still missing": {
			nil,
			map[string]written{a.ID: ago("a", "MISSING", time.Second), b.ID: ago("b", "MISSING", 9*time.Second)},
			nil,
		},
		"one due for a refresh, a moment early": {
			[]workload.Container{in("a", "HEALTHY"), in("b", "HEALTHY")},
			map[string]written{a.ID: ago("a", "HEALTHY", 9999*time.Millisecond),
				b.ID: ago("b", "HEALTHY", 9*time.Second)},
			[]change{{check: a, container: "a", observed: "HEALTHY", previous: "HEALTHY", refresh: true}},
		},
		"critical wants its refresh too": {
			nil,
			map[string]written{a.ID: ago("a", "MISSING", 10*time.Second), b.ID: ago("b", "MISSING", 0)},
			[]change{{check: a, container: "a", observed: "MISSING", previous: "MISSING", refresh: true}},
		},
		"a change is no refresh, however late": {
			[]workload.Container{in("a", "UNHEALTHY"), in("b", "HEALTHY")},
			map[string]written{a.ID: ago("a", "HEALTHY", time.Hour), b.ID: ago("b", "HEALTHY", 0)},
			[]change{{check: a, container: "a", observed: "UNHEALTHY", previous: "HEALTHY"}},
		},
		"another reason for the same status waits": {
			[]workload.Container{in("a", "UNHEALTHY"), in("b", "HEALTHY")},
			map[string]written{a.ID: ago("a", "MISSING", 9*time.Second), b.ID: ago("b", "LISTENING", time.Second)},
			nil,
		},
		"another reason is in the refresh": {
			[]workload.Container{in("a", "UNHEALTHY"), in("b", "HEALTHY")},
			map[string]written{a.ID: ago("a", "MISSING", 10*time.Second), b.ID: ago("b", "HEALTHY", 0)},
			[]change{{check: a, container: "a", observed: "UNHEALTHY", previous: "MISSING", refresh: true}},
		},
		"unlisted containers are not synchronized": {
			[]workload.Container{in("a", "HEALTHY"), in("b", "HEALTHY"), in("log-router", "UNHEALTHY")},
			map[string]written{a.ID: ago("a", "HEALTHY", 0), b.ID: ago("b", "HEALTHY", 0)},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := diff(now, 10*time.Second, []workload.SyncCheck{a, b}, tc.containers, nil, tc.last)
			if d := cmp.Diff(tc.want, got, cmp.AllowUnexported(change{})); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestDiffAllocatesNothingOnAQuietTick(t *testing.T) {
	now := time.Now()
	check := workload.SyncCheck{ID: "id", Container: "app"}
	containers := []workload.Container{{Name: "app", Health: &workload.Health{Status: "HEALTHY"}}}
	last := map[string]written{"id": {container: "app", observed: healthy, at: now}}
	allocs := testing.AllocsPerRun(100, func() {
		if diff(now, 10*time.Second, []workload.SyncCheck{check}, containers, nil, last) != nil {
			t.Fatal("a quiet tick wants a write")
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// TestAggregate: the check of a service is as bad as its proxy, or as the first of the
// other containers that is not healthy.
func TestAggregate(t *testing.T) {
	t.Parallel()
	aggregate := workload.SyncCheck{ID: "web-1-consul-dataplane", Container: "consul-dataplane", Aggregate: true}
	checks := []workload.SyncCheck{
		{ID: "web-1-app", Container: "app"}, {ID: "web-1-side", Container: "side"},
		aggregate, {ID: "web-1-sidecar-proxy-consul-dataplane", Container: "consul-dataplane", Aggregate: true},
	}
	for name, tc := range map[string]struct {
		health    map[string]string
		serving   map[string]bool
		container string
		observed  observation
	}{
		"all healthy": {map[string]string{"consul-dataplane": "HEALTHY", "app": "HEALTHY", "side": "HEALTHY"}, nil,
			"consul-dataplane", "HEALTHY"},
		"an unhealthy container": {map[string]string{"consul-dataplane": "HEALTHY",
			"app": "HEALTHY", "side": "UNHEALTHY"}, nil, "side", "UNHEALTHY"},
		"the first of two": {map[string]string{"consul-dataplane": "HEALTHY", "app": "", "side": "UNHEALTHY"}, nil,
			"app", ""},
		"a missing container": {map[string]string{"consul-dataplane": "HEALTHY", "side": "HEALTHY"}, nil, "app",
			"MISSING"},
		"the proxy comes first": {map[string]string{"consul-dataplane": "UNHEALTHY",
			"app": "UNHEALTHY", "side": "HEALTHY"}, nil, "consul-dataplane", "UNHEALTHY"},
		"no proxy": {map[string]string{"app": "HEALTHY", "side": "HEALTHY"}, nil, "consul-dataplane",
			"MISSING"},
		"no container": {nil, nil, "consul-dataplane", "MISSING"},
		"the other proxy": {map[string]string{"sidecar-proxy": "HEALTHY", "app": "HEALTHY", "side": "HEALTHY"}, nil,
			"sidecar-proxy", "HEALTHY"},
		"a proxy without a result": {map[string]string{"sidecar-proxy": "", "app": "HEALTHY", "side": "HEALTHY"}, nil,
			"sidecar-proxy", ""},
		"one that serves": {map[string]string{"sidecar-proxy": "", "app": "HEALTHY", "side": "HEALTHY"},
			map[string]bool{"sidecar-proxy": true}, "sidecar-proxy", "LISTENING"},
		"a result counts, not the port": {map[string]string{"sidecar-proxy": "UNHEALTHY",
			"app": "HEALTHY", "side": "HEALTHY"}, map[string]bool{"sidecar-proxy": true}, "sidecar-proxy", "UNHEALTHY"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var containers []workload.Container
			for name, health := range tc.health {
				containers = append(containers,
					workload.Container{Name: name, KnownStatus: "RUNNING", Health: &workload.Health{Status: health}})
			}
			if container, observed := decisive(aggregate, checks, containers, tc.serving); container != tc.container ||
				observed != tc.observed {
				t.Errorf("judged by %s: %q", container, observed)
			}
		})
	}
}
