package command

import "testing"

// The definitions of the example are plain ones that consul-ecs admit has put into the
// mesh; nothing is added by hand.
func TestEndToEndAdmittedTasksJoinTheMesh(t *testing.T) {
	t.Parallel()
	code, report, events := runReport(t, programs(t), example("admit"))
	if code != 0 || report.Failed != 0 || report.Answered < 40 || len(report.Failures) != 0 {
		t.Errorf("exit %d, report %+v, want no failure and 40 requests", code, report)
	}
	for _, task := range []string{"web", "api"} {
		if cleared := (event{Kind: "cleared", Task: task, Text: "nothing left of the task"}); !happened(events, cleared) {
			t.Errorf("%s is left in Consul", task)
		}
	}
}
