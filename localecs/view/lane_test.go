package view_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/view"
)

// segments and marks are a lane without words.
type segment struct {
	From, To float64
	State    view.LaneState
	Stopping bool
}

type mark struct {
	At    float64
	Glyph view.Glyph
}

func shape(l view.Lane) (segments []segment, marks []mark) {
	for _, s := range l.Segments {
		segments = append(segments, segment{s.From, s.To, s.State, s.Stopping})
	}
	for _, m := range l.Marks {
		marks = append(marks, mark{m.At, m.Glyph})
	}
	return segments, marks
}

// status returns an event with the new status of a container.
func status(at float64, container, status, detail string) view.RecordedEvent {
	return view.RecordedEvent{At: at, Kind: view.KindStatus, Container: container, Status: status, Detail: detail}
}

func TestContainerIsALane(t *testing.T) {
	t.Parallel()
	app := view.RecordedContainer{Name: "app", HealthCheck: true}
	for _, c := range []struct {
		name     string
		of       view.RecordedContainer
		events   []view.RecordedEvent
		segments []segment
		marks    []mark
	}{
		{"an orderly life", app, []view.RecordedEvent{
			status(1, "app", "PULLED", ""), status(2, "app", "RUNNING", ""),
			{At: 4, Kind: view.KindHealth, Container: "app", Status: "HEALTHY"},
			{At: 6, Kind: view.KindSignal, Container: "app", Status: "TERM"},
			status(7, "app", "STOPPED", "exit code 0"),
		}, []segment{{1, 2, view.LaneWaiting, false}, {2, 4, view.LaneUnknown, false}, {4, 6, view.LaneHealthy, false},
			{6, 7, view.LaneHealthy, true}},
			[]mark{{6, view.GlyphTerm}, {7, view.GlyphExit}}},
		{"no health check", view.RecordedContainer{Name: "app"}, []view.RecordedEvent{status(2, "app", "RUNNING", "")},
			[]segment{{2, 20, view.LaneUp, false}}, nil},
		{"restarted", app, []view.RecordedEvent{
			status(2, "app", "RUNNING", ""), {At: 3, Kind: view.KindHealth, Container: "app", Status: "UNHEALTHY"},
			{At: 5, Kind: view.KindRestart, Container: "app", Status: "1"},
		}, []segment{{2, 3, view.LaneUnknown, false}, {3, 5, view.LaneUnhealthy, false},
			{5, 20, view.LaneUnknown, false}}, []mark{{5, view.GlyphAgain}}},
		{"killed by a step", app, []view.RecordedEvent{
			status(2, "app", "RUNNING", ""), {At: 5, Kind: view.KindKill, Container: "app", Detail: "SIGKILL"},
			status(5.1, "app", "STOPPED", "exit code 137"),
		}, []segment{{2, 5.1, view.LaneUnknown, false}}, []mark{{5, view.GlyphKill}, {5.1, view.GlyphBadExit}}},
		{"signalled by a step", app,
			[]view.RecordedEvent{{At: 5, Kind: view.KindKill, Container: "app", Detail: "SIGHUP"}}, nil,
			[]mark{{5, view.GlyphTerm}}},
		{"killed by ECS", app, []view.RecordedEvent{
			status(2, "app", "RUNNING", ""), {At: 3, Kind: view.KindSignal, Container: "app", Status: "TERM"},
			{At: 9, Kind: view.KindSignal, Container: "app", Status: "KILL"},
		}, []segment{{2, 3, view.LaneUnknown, false}, {3, 20, view.LaneUnknown, true}},
			[]mark{{3, view.GlyphTerm}, {9, view.GlyphKill}}},
		{"never ran", app, []view.RecordedEvent{status(2, "app", "STOPPED", "CannotStartContainerError: no")}, nil,
			[]mark{{2, view.GlyphBadExit}}},
		{"stopped at its gate", app, []view.RecordedEvent{status(2, "app", "STOPPED", "")}, nil,
			[]mark{{2, view.GlyphBadExit}}},
	} {
		lanes := view.LanesOf(view.RecordedTask{Containers: []view.RecordedContainer{c.of}, Events: c.events}, 20)
		if len(lanes) != 1 {
			t.Fatalf("%s: %d lanes", c.name, len(lanes))
		}
		segments, marks := shape(lanes[0])
		if d := cmp.Diff(c.segments, segments) + cmp.Diff(c.marks, marks); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

func TestLanesShowChecksOfConsul(t *testing.T) {
	t.Parallel()
	lanes := view.LanesOf(view.RecordedTask{Events: []view.RecordedEvent{
		{At: 1, Kind: view.KindCheck, Service: "api", Check: "synced", Status: "critical"},
		{At: 1, Kind: view.KindCheck, Service: "api", Check: "alias", Status: "passing"},
		{At: 1, Kind: view.KindCheck, Service: "api-sidecar-proxy", Check: "alias", Status: "warning"},
		{At: 1.5, Kind: view.KindToken, Method: "services", Accessor: "t1", Status: "login"},
		{At: 2, Kind: view.KindCheck, Service: "api", Check: "synced", Status: "passing"},
		{At: 2, Kind: view.KindInTraffic, Status: "in"},
		{At: 5, Kind: view.KindInTraffic, Status: "out"},
		{At: 6, Kind: view.KindCheck, Service: "api", Check: "synced", Status: "gone"},
		{At: 7, Kind: view.KindToken, Method: "services", Accessor: "t1", Status: "logout"},
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
		{"synced", []segment{{1, 2, view.LaneUnhealthy, false}, {2, 6, view.LaneHealthy, false}}},
		{"alias (api)", []segment{{1, 9, view.LaneHealthy, false}}},
		{"alias (api-sidecar-proxy)", []segment{{1, 9, view.LaneWarning, false}}},
		{"in traffic", []segment{{2, 5, view.LaneHealthy, false}}},
		{"token services", []segment{{1.5, 7, view.LaneHeld, false}}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
