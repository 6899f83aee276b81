package command

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every endpoint misbehaves in every way, processes and the server are frozen,
// killed and taken down, and no request is lost, unless an agent starts again.
func TestEndToEndFaults(t *testing.T) {
	t.Parallel()
	code, report, events := runReport(t, append(programs(t), "-seed", "8"), example("faults"))
	if code != 0 || report.Answered < 400 || len(report.Failures) != 0 {
		t.Errorf("exit %d, report %+v; want 400 requests and more, and no failure", code, report)
	}
	report.losesOnlyIn(t, "agent restarted")
	started, over := map[string]int{}, map[string]int{}
	for _, e := range events {
		switch e.Kind {
		case "fault":
			what, _, _ := strings.Cut(e.Text, " for ")
			started[what]++
		case "fault_over":
			over[strings.TrimPrefix(e.Text, "over: ")]++
		}
	}
	for what := range started {
		if strings.HasPrefix(what, "kill") || strings.HasPrefix(what, "spot") {
			delete(started, what) // over in a moment
		}
	}
	if diff := cmp.Diff(started, over); diff != "" || len(started) < 20 {
		t.Errorf("faults that began and that were over (-began +over):\n%s", diff)
	}
}
