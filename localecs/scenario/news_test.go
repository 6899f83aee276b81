package scenario

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/view"
	"github.com/meshtask/consul-ecs/taskdef"
)

// at is a moment n seconds into a run.
func newsAt(n int) time.Time { return time.Unix(1_800_000_000+int64(n), 0) }

func newsWorld() (*News, *Recording, *[]Event) {
	var told []Event
	tasks, record := NewRoster(), NewRecording()
	record.Start("hello", "reverse", newsAt(0))
	tasks.Add(Task{Name: "api-1", Definition: &taskdef.TaskDefinition{ContainerDefinitions: []taskdef.Container{{Name: "api"}}}})
	return NewNews(tasks, record, func(e Event) { told = append(told, e) }), record, &told
}

func TestWhatTheClusterShowsIsTold(t *testing.T) {
	t.Parallel()
	n, record, told := newsWorld()
	for _, e := range []cluster.Event{
		{At: newsAt(1), Task: "api-1", Container: "api", What: "status", Value: "PULLED"},
		{At: newsAt(2), Task: "api-1", Container: "api", What: "status", Value: "RUNNING"},
		{At: newsAt(3), Task: "api-1", Container: "api", What: "restart", Value: "2"},
		{At: newsAt(4), Task: "api-1", What: "desired", Value: "STOPPED", Detail: "why"},
		{At: newsAt(5), Task: "api-1", Container: "api", What: "signal", Value: "KILL", Detail: "late"},
	} {
		n.ClusterChanged(e)
	}
	want := []Event{
		{Time: newsAt(2), Kind: view.KindStatus, Task: "api-1", Container: "api", Status: "RUNNING", Text: "RUNNING"},
		{Time: newsAt(3), Kind: view.KindRestart, Task: "api-1", Container: "api", Status: "2", Text: "started again, 2 so far"},
		{Time: newsAt(4), Kind: view.KindDesired, Task: "api-1", Status: "STOPPED", Detail: "why", Text: "asked to stop (why)"},
		{Time: newsAt(5), Kind: view.KindSignal, Task: "api-1", Container: "api", Status: "KILL", Detail: "late", Text: "KILL (late)"},
	}
	if d := cmp.Diff(want, *told); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := record.Run(newsAt(9)).Tasks; len(got) != 1 || len(got[0].Events) != 1 || got[0].Events[0].Status != "PULLED" {
		t.Errorf("only in the record: %+v", got)
	}
}

func TestChecksAndTokensOfNobodyAreNoNews(t *testing.T) {
	t.Parallel()
	n, _, told := newsWorld()
	check := &api.HealthCheck{ServiceID: "other-1", ServiceName: "other", Name: "x"}
	n.CheckChanged(newsAt(1), check, "passing", Checks{"x": check})
	n.TokenChanged(newsAt(2), Token{Accessor: "t1", Method: "m"}, false)
	if len(*told) != 0 {
		t.Errorf("told %v", *told)
	}
}
