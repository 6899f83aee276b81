package scenario

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/view"
	"github.com/meshtask/consul-ecs/taskdef"
)

// notifierAt returns a moment n seconds into a run.
func notifierAt(n int) time.Time { return time.Unix(1_800_000_000+int64(n), 0) }

func newConsulView() (*consulView, *[]Event) {
	var reported []Event
	r := &consulView{tasks: NewTaskSet(), progress: &progress{record: NewRecording(), out: func(e Event) {
		e.Seconds = 0
		reported = append(reported, e)
	}}}
	r.progress.record.Start("hello", "reverse", notifierAt(0))
	r.tasks.Add(Task{Name: "api-1",
		Definition: &taskdef.TaskDefinition{ContainerDefinitions: []taskdef.Container{{Name: "api"}}}})
	return r, &reported
}

func TestClusterChangesAreReported(t *testing.T) {
	t.Parallel()
	n, reported := newConsulView()
	for _, e := range []cluster.Event{
		{At: notifierAt(1), Task: "api-1", Container: "api", What: "status", Value: "PULLED"},
		{At: notifierAt(2), Task: "api-1", Container: "api", What: "status", Value: "RUNNING"},
		{At: notifierAt(3), Task: "api-1", Container: "api", What: "restart", Value: "2"},
		{At: notifierAt(4), Task: "api-1", What: "desired", Value: "STOPPED", Detail: "why"},
		{At: notifierAt(5), Task: "api-1", Container: "api", What: "signal", Value: "KILL", Detail: "late"},
	} {
		n.progress.clusterChanged(e)
	}
	want := []Event{
		{Time: notifierAt(2), Kind: view.KindStatus, Task: "api-1", Container: "api", Status: "RUNNING",
			Text: "RUNNING"},
		{Time: notifierAt(3), Kind: view.KindRestart, Task: "api-1", Container: "api", Status: "2",
			Text: "started again, 2 so far"},
		{Time: notifierAt(4), Kind: view.KindDesired, Task: "api-1", Status: "STOPPED", Detail: "why",
			Text: "asked to stop (why)"},
		{Time: notifierAt(5), Kind: view.KindSignal, Task: "api-1", Container: "api", Status: "KILL", Detail: "late",
			Text: "KILL (late)"},
	}
	if d := cmp.Diff(want, *reported); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	got := n.progress.record.snapshot(notifierAt(9)).Tasks
	if len(got) != 1 || len(got[0].Events) != 5 {
		t.Fatalf("recorded %+v", got)
	}
	testkit.Equal(t, "got[0].Events[0].Status", got[0].Events[0].Status, "PULLED")
}

func TestForeignChecksAndTokensAreIgnored(t *testing.T) {
	t.Parallel()
	n, reported := newConsulView()
	check := &api.HealthCheck{ServiceID: "other-1", ServiceName: "other", Name: "x"}
	n.checkChanged(notifierAt(1), check, "passing", allChecks{"x": check})
	n.tokenChanged(notifierAt(2), loginToken{Accessor: "t1", Method: "m"}, false)
	if len(*reported) != 0 {
		t.Errorf("reported %v", *reported)
	}
}
