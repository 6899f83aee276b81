package view_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/view"
)

func event(at float64, kind view.Kind, container, status string) view.RecordedEvent {
	return view.RecordedEvent{At: at, Kind: kind, Container: container, Status: status}
}

func TestLifeShowsTheHealthOfEssentialContainers(t *testing.T) {
	t.Parallel()
	task := view.RecordedTask{Name: "web",
		Containers: []view.RecordedContainer{{Name: "web", Essential: true, HealthCheck: true}},
		Events: []view.RecordedEvent{
			event(0, "status", "web", "PULLED"), event(4, "status", "web", "RUNNING"),
			event(4, "status", "", "RUNNING"),
			event(8, "health", "web", "HEALTHY"), event(14, "health", "web", "UNHEALTHY"),
			event(18, "restart", "web", "1"),
			event(20, "health", "web", "HEALTHY"), event(24, "desired", "", "STOPPED"),
			event(24, "signal", "web", "TERM"),
			event(28, "signal", "web", "KILL"),
			{At: 30, Kind: "status", Container: "web", Status: "STOPPED", Detail: "exit code 137"},
			event(30, "status", "", "STOPPED"),
		}}
	life := view.LifeLane(task, view.LanesOf(task, 32), 32)
	segments, marks := shape(life)
	wantSegments := []segment{
		{0, 8, view.LaneUnknown, false}, {8, 14, view.LaneHealthy, false}, {14, 18, view.LaneUnhealthy, false},
		{18, 20, view.LaneUnknown, false}, {20, 24, view.LaneHealthy, false}, {24, 30, view.LaneHealthy, true},
	}
	wantMarks := []mark{
		{24, view.GlyphTerm}, {30, view.GlyphExit}, {18, view.GlyphAgain}, {28, view.GlyphKill},
		{30, view.GlyphBadExit}, {14, view.GlyphSick},
	}
	if d := cmp.Diff(wantSegments, segments) + cmp.Diff(wantMarks, marks); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	testkit.Equal(t, "Note", life.Annotation, "stopped in 6.00 s")
}

// fullDisk refuses every write.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestWriterErrorIsReturned(t *testing.T) {
	t.Parallel()
	if err := view.WriteHTML(fullDisk{}, view.RecordedRun{}); err == nil || err.Error() != "no space" {
		t.Errorf("got %v", err)
	}
}
