package lane_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/picture/history"
	"github.com/meshtask/consul-ecs/localecs/picture/lane"
)

// meshed is a task of the mesh from its start to its end.
func meshed() history.Task {
	last := 41.5
	t := history.Task{Name: "api-1", Application: "api", LastServed: &last, Containers: []history.Container{
		{Name: "consul-client"}, {Name: "consul-ecs-mesh-init"}, {Name: "sidecar-proxy", HealthCheck: true}, {Name: "api", HealthCheck: true},
	}}
	t.Events = []history.Event{
		status(1, "consul-client", "RUNNING", ""), status(1.1, "consul-ecs-mesh-init", "RUNNING", ""),
		{At: 1.3, Kind: history.Token, Method: "services", Accessor: "t1", Status: "login"},
		status(2, "consul-ecs-mesh-init", "STOPPED", "exit code 0"), status(2.1, "sidecar-proxy", "RUNNING", ""),
		{At: 7, Kind: history.Health, Container: "sidecar-proxy", Status: "HEALTHY"},
		status(7.1, "api", "RUNNING", ""), {At: 7.1, Kind: history.Status, Status: "RUNNING"},
		{At: 12, Kind: history.Health, Container: "api", Status: "HEALTHY"}, {At: 12.2, Kind: history.InTraffic, Status: "in"},
		{At: 40, Kind: history.Desired, Status: "STOPPED", Detail: "Task stopped by user"},
		{At: 40.1, Kind: history.InTraffic, Status: "out"},
		status(42, "api", "STOPPED", "exit code 0"), status(42.2, "sidecar-proxy", "STOPPED", "exit code 0"),
		{At: 42.3, Kind: history.Token, Method: "services", Accessor: "t1", Status: "logout"},
		status(45, "consul-client", "STOPPED", "exit code 0"), {At: 45, Kind: history.Status, Status: "STOPPED", Detail: "UserInitiated"},
		{At: 45.5, Kind: history.Cleared},
	}
	return t
}

func TestMomentsAreThoseOfTheTwoDiagrams(t *testing.T) {
	t.Parallel()
	task := meshed()
	lanes := lane.Of(task, 50)
	start, _ := lane.Start(task, lanes, 50)
	stop, _ := lane.Stop(task, lanes, 50)
	for _, c := range []struct {
		what      string
		got, want lane.Phase
	}{
		{"start", start, lane.Phase{From: 0.552, To: 12.648, Zero: 1, Moments: []lane.Moment{
			{"T0", "the first container runs", 1}, {"T1", "mesh-init is done", 2}, {"", "the proxy is healthy", 7},
			{"T2", "the application starts", 7.1}, {"", "the application is healthy", 12}, {"", "in traffic", 12.2},
		}, Facts: []lane.Fact{
			{"mesh-init", 0.9}, {"log-in after T0", 0.3}, {"proxy healthy after its start", 4.9},
			{"application healthy after its start", 4.9}, {"in traffic after T0", 11.2},
		}}},
		{"stop", stop, lane.Phase{From: 39.78, To: 45.72, Zero: 40, Moments: []lane.Moment{
			{"T0", "the task is asked to stop", 40}, {"T1", "critical in Consul", 40.1}, {"", "the application is gone", 42},
			{"", "the proxy is gone", 42.2}, {"T2", "the agent is gone", 45}, {"T3", "the task is STOPPED", 45}, {"T4", "nothing is left of it in Consul", 45.5},
		}, Facts: []lane.Fact{
			{"TERM to critical in Consul", 0.1}, {"TERM to its last answer", 1.5}, {"TERM to the application's end", 2},
			{"TERM to STOPPED", 5}, {"TERM to nothing left", 5.5},
		}}},
	} {
		if d := cmp.Diff(c.want, c.got, about()); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, d)
		}
	}
}

// about compares seconds to the microsecond.
func about() cmp.Option {
	return cmp.Comparer(func(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 })
}

func TestATaskThatDiesBeforeItIsAskedToStop(t *testing.T) {
	t.Parallel()
	task := history.Task{Application: "app", Events: []history.Event{
		status(1, "app", "RUNNING", ""), status(5, "app", "STOPPED", "exit code 1"), {At: 5.1, Kind: history.Desired, Status: "STOPPED"},
	}}
	lanes := lane.Of(task, 6)
	stop, stopped := lane.Stop(task, lanes, 6)
	if !stopped || stop.From > 5 || stop.Zero != 5.1 || stop.To < 6 {
		t.Errorf("stopped %t: %+v", stopped, stop)
	}
	if got := lane.StopNote(stop)(lanes[0]); got != "gone before, exit 1" {
		t.Errorf("note %q", got)
	}
	if start, began := lane.Start(task, lanes, 6); !began || start.To > 5.5 {
		t.Errorf("the start %+v goes on into the stop", start)
	}
	if _, began := lane.Start(history.Task{}, nil, 6); began {
		t.Error("a task without a container has started")
	}
	if _, stopped := lane.Stop(history.Task{}, nil, 6); stopped {
		t.Error("a task that nobody has asked to stop has stopped")
	}
}

func TestNotesSayWhatIsWorthKnowing(t *testing.T) {
	t.Parallel()
	task := meshed()
	task.Events = append(task.Events, history.Event{At: 2, Kind: history.Check, Check: "synced", Status: "critical"})
	lanes := lane.Of(task, 50)
	start, _ := lane.Start(task, lanes, 50)
	stop, _ := lane.Stop(task, lanes, 50)
	got := map[string][2]string{}
	for _, l := range lanes {
		got[l.Name] = [2]string{lane.StartNote(start)(l), lane.StopNote(stop)(l)}
	}
	want := map[string][2]string{
		"consul-client":        {"runs +0.00 s", "gone +5.00 s, exit 0"},
		"consul-ecs-mesh-init": {"0.90 s, exit 0", "gone before, exit 0"},
		"sidecar-proxy":        {"healthy +6.00 s", "gone +2.20 s, exit 0"},
		"api":                  {"healthy +11.0 s", "gone +2.00 s, exit 0"},
		"synced":               {"not passing", ""},
		"in traffic":           {"+11.2 s", "out +0.10 s"},
		"token services":       {"log-in +0.30 s", "logged out +2.30 s"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestALifeIsOneLane(t *testing.T) {
	t.Parallel()
	task := meshed()
	task.Events = append(task.Events[:10:10], append([]history.Event{
		{At: 20, Kind: history.Health, Container: "api", Status: "UNHEALTHY"}, {At: 20.5, Kind: history.InTraffic, Status: "out"}, {At: 30, Kind: history.InTraffic, Status: "in"},
	}, task.Events[10:]...)...)
	life := lane.Life(task, lane.Of(task, 50), 50)
	segments, marks := shape(life)
	wantSegments := []segment{
		{1, 12.2, lane.Unknown, false}, {12.2, 20.5, lane.Healthy, false}, {20.5, 30, lane.Out, false},
		{30, 40, lane.Healthy, false}, {40, 40.1, lane.Healthy, true}, {40.1, 45, lane.Out, true},
	}
	// RUNNING before it serves is a state of its own.
	wantSegments = append([]segment{{1, 7.1, lane.Unknown, false}, {7.1, 12.2, lane.Out, false}}, wantSegments[1:]...)
	if d := cmp.Diff(wantSegments, segments) + cmp.Diff([]mark{{40, lane.Term}, {45, lane.Exit}, {20, lane.Sick}}, marks); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := lane.LifeNote(life); got != "stopped in 5.00 s" {
		t.Errorf("note %q", got)
	}
}

func TestALifeOutsideOfTheMeshIsItsHealth(t *testing.T) {
	t.Parallel()
	task := history.Task{Name: "blog", Containers: []history.Container{{Name: "mysql", HealthCheck: true, Essential: true}, {Name: "blog"}, {Name: "agent", HealthCheck: true}}, Events: []history.Event{
		status(1, "mysql", "RUNNING", ""), status(2, "blog", "RUNNING", ""), {At: 2, Kind: history.Status, Status: "RUNNING"},
		{At: 4, Kind: history.Health, Container: "mysql", Status: "HEALTHY"},
		{At: 6, Kind: history.Health, Container: "agent", Status: "UNHEALTHY"}, {At: 8, Kind: history.Health, Container: "mysql", Status: "UNHEALTHY"},
		{At: 8.1, Kind: history.Desired, Status: "STOPPED"}, {At: 9, Kind: history.Status, Status: "STOPPED"}, status(9.5, "mysql", "STOPPED", ""),
	}}
	segments, _ := shape(lane.Life(task, lane.Of(task, 10), 10))
	want := []segment{{1, 4, lane.Unknown, false}, {4, 8, lane.Healthy, false}, {8, 8.1, lane.Unhealthy, false}, {8.1, 9, lane.Unhealthy, true}}
	if d := cmp.Diff(want, segments); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
