package lane_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/picture/history"
	"github.com/meshtask/consul-ecs/localecs/picture/lane"
)

// segments and marks are a lane without words.
type segment struct {
	From, To float64
	State    lane.State
	Stopping bool
}

type mark struct {
	At    float64
	Glyph lane.Glyph
}

func shape(l lane.Lane) (segments []segment, marks []mark) {
	for _, s := range l.Segments {
		segments = append(segments, segment{s.From, s.To, s.State, s.Stopping})
	}
	for _, m := range l.Marks {
		marks = append(marks, mark{m.At, m.Glyph})
	}
	return segments, marks
}

// status is the new one of a container.
func status(at float64, container, status, detail string) history.Event {
	return history.Event{At: at, Kind: history.Status, Container: container, Status: status, Detail: detail}
}

func TestContainerIsALane(t *testing.T) {
	t.Parallel()
	app := history.Container{Name: "app", HealthCheck: true}
	for _, c := range []struct {
		name     string
		of       history.Container
		events   []history.Event
		segments []segment
		marks    []mark
	}{
		{"an orderly life", app, []history.Event{
			status(1, "app", "PULLED", ""), status(2, "app", "RUNNING", ""),
			{At: 4, Kind: history.Health, Container: "app", Status: "HEALTHY"},
			{At: 6, Kind: history.Signal, Container: "app", Status: "TERM"},
			status(7, "app", "STOPPED", "exit code 0"),
		}, []segment{{1, 2, lane.Waiting, false}, {2, 4, lane.Unknown, false}, {4, 6, lane.Healthy, false}, {6, 7, lane.Healthy, true}},
			[]mark{{6, lane.Term}, {7, lane.Exit}}},
		{"no health check", history.Container{Name: "app"}, []history.Event{status(2, "app", "RUNNING", "")},
			[]segment{{2, 20, lane.Up, false}}, nil},
		{"restarted", app, []history.Event{
			status(2, "app", "RUNNING", ""), {At: 3, Kind: history.Health, Container: "app", Status: "UNHEALTHY"},
			{At: 5, Kind: history.Restart, Container: "app", Status: "1"},
		}, []segment{{2, 3, lane.Unknown, false}, {3, 5, lane.Unhealthy, false}, {5, 20, lane.Unknown, false}}, []mark{{5, lane.Again}}},
		{"killed by a step", app, []history.Event{
			status(2, "app", "RUNNING", ""), {At: 5, Kind: history.Kill, Container: "app", Detail: "SIGKILL"}, status(5.1, "app", "STOPPED", "exit code 137"),
		}, []segment{{2, 5.1, lane.Unknown, false}}, []mark{{5, lane.Kill}, {5.1, lane.BadExit}}},
		{"signalled by a step", app, []history.Event{{At: 5, Kind: history.Kill, Container: "app", Detail: "SIGHUP"}}, nil, []mark{{5, lane.Term}}},
		{"killed by ECS", app, []history.Event{
			status(2, "app", "RUNNING", ""), {At: 3, Kind: history.Signal, Container: "app", Status: "TERM"}, {At: 9, Kind: history.Signal, Container: "app", Status: "KILL"},
		}, []segment{{2, 3, lane.Unknown, false}, {3, 20, lane.Unknown, true}}, []mark{{3, lane.Term}, {9, lane.Kill}}},
		{"never ran", app, []history.Event{status(2, "app", "STOPPED", "CannotStartContainerError: no")}, nil, []mark{{2, lane.BadExit}}},
	} {
		lanes := lane.Of(history.Task{Containers: []history.Container{c.of}, Events: c.events}, 20)
		if len(lanes) != 1 {
			t.Fatalf("%s: %d lanes", c.name, len(lanes))
		}
		segments, marks := shape(lanes[0])
		if d := cmp.Diff(c.segments, segments) + cmp.Diff(c.marks, marks); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

func TestConsulIsSeenInLanes(t *testing.T) {
	t.Parallel()
	lanes := lane.Of(history.Task{Events: []history.Event{
		{At: 1, Kind: history.Check, Service: "api", Check: "synced", Status: "critical"},
		{At: 1, Kind: history.Check, Service: "api", Check: "alias", Status: "passing"},
		{At: 1, Kind: history.Check, Service: "api-sidecar-proxy", Check: "alias", Status: "warning"},
		{At: 1.5, Kind: history.Token, Method: "services", Accessor: "t1", Status: "login"},
		{At: 2, Kind: history.Check, Service: "api", Check: "synced", Status: "passing"},
		{At: 2, Kind: history.InTraffic, Status: "in"},
		{At: 5, Kind: history.InTraffic, Status: "out"},
		{At: 6, Kind: history.Check, Service: "api", Check: "synced", Status: "gone"},
		{At: 7, Kind: history.Token, Method: "services", Accessor: "t1", Status: "logout"},
	}}, 9)
	type flat struct {
		Name     string
		Segments []segment
	}
	var got []flat
	for _, l := range lanes {
		segments, _ := shape(l)
		got = append(got, flat{l.Name, segments})
	}
	want := []flat{
		{"synced", []segment{{1, 2, lane.Unhealthy, false}, {2, 6, lane.Healthy, false}}},
		{"alias (api)", []segment{{1, 9, lane.Healthy, false}}},
		{"alias (api-sidecar-proxy)", []segment{{1, 9, lane.Warning, false}}},
		{"in traffic", []segment{{2, 5, lane.Healthy, false}}},
		{"token services", []segment{{1.5, 7, lane.Held, false}}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
