package news

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/localecs"
	"github.com/meshtask/consul-ecs/localecs/scenario/progress"
	"github.com/meshtask/consul-ecs/localecs/scenario/recording"
	"github.com/meshtask/consul-ecs/localecs/scenario/roster"
	"github.com/meshtask/consul-ecs/localecs/scenario/server"
	"github.com/meshtask/consul-ecs/taskdef"
)

// at is a moment n seconds into a run.
func at(n int) time.Time { return time.Unix(1_800_000_000+int64(n), 0) }

func world() (*News, *recording.Recording, *[]progress.Event) {
	var told []progress.Event
	tasks, record := roster.New(), recording.New()
	record.Start("hello", "reverse", at(0))
	tasks.Add(roster.Task{Name: "api-1", Definition: &taskdef.TaskDefinition{ContainerDefinitions: []taskdef.Container{{Name: "api"}}}})
	return New(tasks, record, func(e progress.Event) { told = append(told, e) }), record, &told
}

func TestWhatTheClusterShowsIsTold(t *testing.T) {
	t.Parallel()
	n, record, told := world()
	for _, e := range []localecs.Event{
		{At: at(1), Task: "api-1", Container: "api", What: "status", Value: "PULLED"},
		{At: at(2), Task: "api-1", Container: "api", What: "status", Value: "RUNNING"},
		{At: at(3), Task: "api-1", Container: "api", What: "restart", Value: "2"},
		{At: at(4), Task: "api-1", What: "desired", Value: "STOPPED", Detail: "why"},
		{At: at(5), Task: "api-1", Container: "api", What: "signal", Value: "KILL", Detail: "late"},
	} {
		n.ClusterChanged(e)
	}
	want := []progress.Event{
		{Time: at(2), Kind: progress.Status, Task: "api-1", Container: "api", Status: "RUNNING", Text: "RUNNING"},
		{Time: at(3), Kind: progress.Restart, Task: "api-1", Container: "api", Status: "2", Text: "started again, 2 so far"},
		{Time: at(4), Kind: progress.Desired, Task: "api-1", Status: "STOPPED", Detail: "why", Text: "asked to stop (why)"},
		{Time: at(5), Kind: progress.Signal, Task: "api-1", Container: "api", Status: "KILL", Detail: "late", Text: "KILL (late)"},
	}
	if d := cmp.Diff(want, *told); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := record.Run(at(9)).Tasks; len(got) != 1 || len(got[0].Events) != 1 || got[0].Events[0].Status != "PULLED" {
		t.Errorf("only in the record: %+v", got)
	}
}

func TestChecksAndTokensOfNobodyAreNoNews(t *testing.T) {
	t.Parallel()
	n, _, told := world()
	check := &api.HealthCheck{ServiceID: "other-1", ServiceName: "other", Name: "x"}
	n.CheckChanged(at(1), check, "passing", server.Checks{"x": check})
	n.TokenChanged(at(2), server.Token{Accessor: "t1", Method: "m"}, false)
	if len(*told) != 0 {
		t.Errorf("told %v", *told)
	}
}
