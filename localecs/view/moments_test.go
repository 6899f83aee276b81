package view_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/view"
)

// meshedLanes returns a task of the mesh from its start to its end.
func meshedLanes() view.RecordedTask {
	last := 41.5
	t := view.RecordedTask{Name: "api-1", LastServed: &last, Containers: []view.RecordedContainer{
		{Name: "consul-client"}, {Name: "consul-ecs-mesh-init"}, {Name: "sidecar-proxy", HealthCheck: true},
		{Name: "api", HealthCheck: true},
	}}
	t.Events = []view.RecordedEvent{
		status(1, "consul-client", "RUNNING", ""), status(1.1, "consul-ecs-mesh-init", "RUNNING", ""),
		{At: 1.3, Kind: view.KindToken, Method: "services", Accessor: "t1", Status: "login"},
		status(2, "consul-ecs-mesh-init", "STOPPED", "exit code 0"), status(2.1, "sidecar-proxy", "RUNNING", ""),
		{At: 7, Kind: view.KindHealth, Container: "sidecar-proxy", Status: "HEALTHY"},
		status(7.1, "api", "RUNNING", ""), {At: 7.1, Kind: view.KindStatus, Status: "RUNNING"},
		{At: 12, Kind: view.KindHealth, Container: "api", Status: "HEALTHY"},
		{At: 12.2, Kind: view.KindInTraffic, Status: "in"},
		{At: 40, Kind: view.KindDesired, Status: "STOPPED", Detail: "Task stopped by user"},
		{At: 40.1, Kind: view.KindInTraffic, Status: "out"},
		status(42, "api", "STOPPED", "exit code 0"), status(42.2, "sidecar-proxy", "STOPPED", "exit code 0"),
		{At: 42.3, Kind: view.KindToken, Method: "services", Accessor: "t1", Status: "logout"},
		status(45, "consul-client", "STOPPED", "exit code 0"),
		{At: 45, Kind: view.KindStatus, Status: "STOPPED", Detail: "UserInitiated"},
		{At: 45.5, Kind: view.KindCleared},
	}
	return t
}

func TestMomentsOfStartAndStop(t *testing.T) {
	t.Parallel()
	task := meshedLanes()
	want := []view.Moment{
		{"consul-client runs", 1, 0}, {"consul-ecs-mesh-init runs", 1.1, 0.1}, {"the first login to Consul", 1.3, 0.3},
		{"consul-ecs-mesh-init is STOPPED", 2, 1}, {"sidecar-proxy runs", 2.1, 1.1}, {"sidecar-proxy is HEALTHY", 7, 6},
		{"api runs", 7.1, 6.1}, {"api is HEALTHY", 12, 11}, {"in traffic", 12.2, 11.2},
		{"the task is asked to stop", 40, 0}, {"out of traffic", 40.1, 0.1}, {"its last answer", 41.5, 1.5},
		{"api is STOPPED", 42, 2}, {"sidecar-proxy is STOPPED", 42.2, 2.2}, {"the task is STOPPED", 45, 5},
		{"consul-client is STOPPED", 45, 5}, {"nothing is left of it in Consul", 45.5, 5.5},
	}
	if d := cmp.Diff(want, view.Moments(task, view.LanesOf(task, 50)), about()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// about compares seconds to the microsecond.
func about() cmp.Option {
	return cmp.Comparer(func(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 })
}

func TestTaskThatExitsBeforeTheStopRequest(t *testing.T) {
	t.Parallel()
	task := view.RecordedTask{Events: []view.RecordedEvent{
		status(1, "app", "RUNNING", ""), {At: 2, Kind: view.KindInTraffic, Status: "in"},
		status(3, "setup", "STOPPED", ""), status(5, "app", "STOPPED", "exit code 1"),
		{At: 5.05, Kind: view.KindInTraffic, Status: "out"},
		{At: 5.1, Kind: view.KindDesired, Status: "STOPPED"},
	}}
	want := []view.Moment{
		{"app runs", 1, 0}, {"in traffic", 2, 1}, {"setup is STOPPED", 3, 2},
		{"app is STOPPED", 5, -0.1}, {"out of traffic", 5.05, -0.05}, {"the task is asked to stop", 5.1, 0},
	}
	if d := cmp.Diff(want, view.Moments(task, view.LanesOf(task, 6)), about()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := view.Moments(view.RecordedTask{}, nil); got != nil {
		t.Errorf("a task that has never run has %v", got)
	}
}

func TestContainerRunIsOneLane(t *testing.T) {
	t.Parallel()
	task := meshedLanes()
	task.Events = append(task.Events[:10:10], append([]view.RecordedEvent{
		{At: 20, Kind: view.KindHealth, Container: "api", Status: "UNHEALTHY"},
		{At: 20.5, Kind: view.KindInTraffic, Status: "out"}, {At: 30, Kind: view.KindInTraffic, Status: "in"},
	}, task.Events[10:]...)...)
	life := view.LifeLane(task, view.LanesOf(task, 50), 50)
	segments, marks := shape(life)
	wantSegments := []segment{
		{1, 12.2, view.LaneUnknown, false}, {12.2, 20.5, view.LaneHealthy, false}, {20.5, 30, view.LaneOut, false},
		{30, 40, view.LaneHealthy, false}, {40, 40.1, view.LaneHealthy, true}, {40.1, 45, view.LaneOut, true},
	}
	// RUNNING before it serves is a separate state.
	wantSegments = append([]segment{{1, 7.1, view.LaneUnknown, false}, {7.1, 12.2, view.LaneOut, false}},
		wantSegments[1:]...)
	if d := cmp.Diff(wantSegments, segments) +
		cmp.Diff([]mark{{40, view.GlyphTerm}, {45, view.GlyphExit}, {20, view.GlyphSick}}, marks); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	testkit.Equal(t, "Note", life.Annotation, "stopped in 5.00 s")
}

func TestLaneOutsideTheMeshShowsHealth(t *testing.T) {
	t.Parallel()
	task := view.RecordedTask{Name: "blog",
		Containers: []view.RecordedContainer{{Name: "mysql", HealthCheck: true, Essential: true}, {Name: "blog"},
			{Name: "agent", HealthCheck: true}}, Events: []view.RecordedEvent{
			status(1, "mysql", "RUNNING", ""), status(2, "blog", "RUNNING", ""),
			{At: 2, Kind: view.KindStatus, Status: "RUNNING"},
			{At: 4, Kind: view.KindHealth, Container: "mysql", Status: "HEALTHY"},
			{At: 6, Kind: view.KindHealth, Container: "agent", Status: "UNHEALTHY"},
			{At: 8, Kind: view.KindHealth, Container: "mysql", Status: "UNHEALTHY"},
			{At: 8.1, Kind: view.KindDesired, Status: "STOPPED"}, {At: 9, Kind: view.KindStatus, Status: "STOPPED"},
			status(9.5, "mysql", "STOPPED", ""),
		}}
	segments, _ := shape(view.LifeLane(task, view.LanesOf(task, 10), 10))
	want := []segment{
		{1, 4, view.LaneUnknown, false}, {4, 8, view.LaneHealthy, false}, {8, 8.1, view.LaneUnhealthy, false},
		{8.1, 9, view.LaneUnhealthy, true},
	}
	if d := cmp.Diff(want, segments); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
