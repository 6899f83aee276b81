package compose

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

func TestHealthKeepsTheLastChange(t *testing.T) {
	t.Parallel()
	w := running(t)
	for n, step := range []struct {
		name string
		said *Health
		want scheduler.HealthView
	}{
		{"no word yet", nil, scheduler.HealthView{}},
		{"starting", &Health{Status: "starting", At: at(10), ExitCode: 1}, scheduler.HealthView{}},
		{"healthy", &Health{Status: "healthy", At: at(11), Output: "fine"}, scheduler.HealthView{Status: "HEALTHY", Since: at(11), Output: "fine"}},
		{"healthy still", &Health{Status: "healthy", At: at(12), Output: "still"}, scheduler.HealthView{Status: "HEALTHY", Since: at(11), Output: "fine"}},
		{"one failure", &Health{Status: "healthy", At: at(13), ExitCode: 1, Output: "bad"}, scheduler.HealthView{Status: "HEALTHY", Since: at(11), Output: "fine"}},
		{"unhealthy", &Health{Status: "unhealthy", At: at(14), ExitCode: 7, Output: strings.Repeat("x", 2000)}, scheduler.HealthView{Status: "UNHEALTHY", Since: at(14), ExitCode: 7, Output: strings.Repeat("x", 1024)}},
		{"healthy again, and the code stays", &Health{Status: "healthy", At: at(15)}, scheduler.HealthView{Status: "HEALTHY", Since: at(15), ExitCode: 7}},
	} {
		w.set("app", func(c *Container) { c.Health = step.said })
		c, _ := w.look(20 + n).View.Container("app")
		if c.Health == nil || *c.Health != step.want {
			t.Errorf("%s: %s", step.name, cmp.Diff(&step.want, c.Health))
		}
	}
	w.end("app", 30, 0)
	w.set("app", func(c *Container) { c.Health = &Health{Status: "unhealthy", At: at(30)} })
	if c, _ := w.look(31).View.Container("app"); c.Health.Status != "HEALTHY" {
		t.Errorf("after its end it is %s", c.Health.Status)
	}
}

// The agent stops what nothing needs any more, and the network at last.
func TestStopOrderIsReversed(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.set("app", func(c *Container) { c.OutOfMemory = true })
	w.end("logs", 6, 0)
	w.start("logs", 6)
	w.end("app", 7, 137)
	v := w.look(7).View
	if c, _ := v.Container("app"); !strings.HasPrefix(c.Reason, "OutOfMemoryError") {
		t.Errorf("reason %q", c.Reason)
	}
	for _, step := range []struct {
		name string
		do   func()
		want []string
	}{
		{"app has ended", func() {}, []string{"id-envoy", "id-logs"}},
		{"asked", func() { w.asked("web", "envoy", at(8)); w.asked("web", "logs", at(8)) }, nil},
		{"one is gone", func() { w.end("envoy", 9, 0) }, nil},
		{"both are", func() { w.end("logs", 10, 0) }, []string{"id-"}},
		{"the network, too", func() { w.asked("web", "", at(11)); w.end("", 11, 0) }, nil},
	} {
		step.do()
		w.look(12)
		if got := w.toStop(); !cmp.Equal(got, step.want) {
			t.Errorf("%s: stop %v, want %v", step.name, got, step.want)
		}
	}
}

func TestToStopWaitsForThoseThatDepend(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.start("init", 1)
	w.start("envoy", 2)
	w.start("app", 3)
	w.start("logs", 3)
	w.look(4)
	w.set("app", func(c *Container) { c.Status = "exited" })
	w.look(5)
	if got := w.toStop(); !cmp.Equal(got, []string{"id-envoy", "id-logs"}) { // init is needed by envoy
		t.Errorf("stop %v", got)
	}
}

func TestECSShowsTheTasksOfNowAndBefore(t *testing.T) {
	t.Parallel()
	w := running(t)
	first := w.look(6)
	list := func(in shapes.ListTasksInput) []string {
		t.Helper()
		in.Cluster = "shop"
		out, err := w.listTasks(shapes.Call{}, in)
		if err != nil {
			t.Fatal(err)
		}
		return out.TaskARNs
	}
	if got := list(shapes.ListTasksInput{}); !cmp.Equal(got, []string{first.Facts.TaskARN}) {
		t.Errorf("tasks %v", got)
	}
	if got := list(shapes.ListTasksInput{Family: "other"}); len(got) > 0 {
		t.Errorf("tasks of another family %v", got)
	}
	w.start("", 20)
	second := w.look(20)
	if got := list(shapes.ListTasksInput{DesiredStatus: "STOPPED"}); !cmp.Equal(got, []string{first.Facts.TaskARN}) {
		t.Errorf("stopped tasks %v", got)
	}
	out, err := w.describeTasks(shapes.Call{}, shapes.DescribeTasksInput{Cluster: "arn:aws:ecs:us-east-1:123456789012:cluster/shop", Tasks: []string{first.ID, second.Facts.TaskARN, "abc"}, Include: []string{"TAGS"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Tasks) != 2 || len(out.Failures) != 1 {
		t.Fatalf("%+v, want two tasks and one failure", out)
	}
	got := out.Tasks[0]
	testkit.Equal(t, "last status of the first task", got.LastStatus, "STOPPED")
	testkit.Equal(t, "desired status of the first task", got.DesiredStatus, "STOPPED")
	testkit.Equal(t, "group", got.Group, "family:web")
	const definition = "arn:aws:ecs:us-east-1:123456789012:task-definition/web:1"
	testkit.Equal(t, "task definition", got.TaskDefinitionARN, definition)
	testkit.Equal(t, "number of containers", len(got.Containers), 4)
	testkit.Equal(t, "tag", got.Tags[0].Value, "shop")
	if got.StoppedAt.IsZero() {
		t.Error("the first task has no end")
	}
	waiting := out.Tasks[1]
	testkit.Equal(t, "last status of the second task", waiting.LastStatus, "PENDING")
	testkit.Equal(t, "desired status of the second task", waiting.DesiredStatus, "RUNNING")
	testkit.Equal(t, "status of its container", waiting.Containers[2].LastStatus, "PENDING")
	testkit.Equal(t, "health of its container", waiting.Containers[2].HealthStatus, "UNKNOWN")
	if want := (shapes.Failure{ARN: "arn:aws:ecs:us-east-1:123456789012:task/shop/abc", Reason: "MISSING"}); out.Failures[0] != want {
		t.Errorf("failure %+v", out.Failures[0])
	}
	w.update(w.containers, at(20+3601))
	w.start("", 4000)
	w.look(4000)
	if got := list(shapes.ListTasksInput{DesiredStatus: "STOPPED"}); len(got) != 1 || got[0] != second.Facts.TaskARN {
		t.Errorf("stopped tasks an hour later %v", got)
	}
}

func TestECSRefusesOtherClusters(t *testing.T) {
	t.Parallel()
	w := running(t)
	for _, cluster := range []string{"", "other"} {
		if _, err := w.listTasks(shapes.Call{}, shapes.ListTasksInput{Cluster: cluster}); err == nil || !strings.Contains(err.Error(), "Cluster not found.") {
			t.Errorf("%q: %v", cluster, err)
		}
		if _, err := w.describeTasks(shapes.Call{}, shapes.DescribeTasksInput{Cluster: cluster}); err == nil {
			t.Errorf("%q is described", cluster)
		}
	}
	if _, err := w.describeTasks(shapes.Call{}, shapes.DescribeTasksInput{Cluster: "shop"}); err == nil || !strings.Contains(err.Error(), "Tasks cannot be empty.") {
		t.Errorf("%v", err)
	}
	if len(w.operations()) != 2 {
		t.Error("operations")
	}
}

func TestContainerIDs(t *testing.T) {
	t.Parallel()
	w := running(t)
	for _, c := range []struct{ task, container, want string }{{"web", "app", "id-app"}, {"web", "none", ""}, {"api", "app", ""}} {
		if got := w.containerID(c.task, c.container); got != c.want {
			t.Errorf("%v: %q", c, got)
		}
	}
}
