package scenario_test

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/scenario"
	"github.com/meshtask/consul-ecs/taskdef"
)

func definition(family string, containers ...string) *taskdef.TaskDefinition {
	def := &taskdef.TaskDefinition{Family: family}
	for _, name := range containers {
		def.ContainerDefinitions = append(def.ContainerDefinitions, taskdef.Container{Name: name})
	}
	return def
}

func TestTasksAreInTheOrderOfTheirStart(t *testing.T) {
	t.Parallel()
	r := scenario.NewTaskSet()
	for _, name := range []string{"a", "b", "c"} {
		r.Add(scenario.Task{Name: name, Definition: definition(name, name)})
	}
	testkit.Equal(t, "before they begin: len(r.Started())", len(r.Started()), 0)
	if r.Task("a").Task != nil {
		t.Errorf("before they begin: %+v", r.Started())
	}
	testkit.Equal(t, "before they begin: Task(\"d\").Name", r.Task("d").Name, "")
	r.Begin("c", &cluster.Task{})
	r.Begin("a", &cluster.Task{})
	var names []string
	for _, task := range r.Started() {
		names = append(names, task.Name)
	}
	if d := cmp.Diff([]string{"c", "a"}, names); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestApplicationIsNoContainerOfAWS(t *testing.T) {
	t.Parallel()
	for want, def := range map[string]*taskdef.TaskDefinition{
		"web": definition("web", "web", "sidecar", "ecs-service-connect-oRK9o"),
		"api": definition("other", "sidecar", "api", "ecs-service-connect-oRK9o", "aws-guardduty-agent-mfjGL"),
		"":    definition("none", "ecs-service-connect-oRK9o"),
	} {
		if got := (scenario.Task{Definition: def}).Application(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A copy does not change with the task.
func TestCopiesAreIndependent(t *testing.T) {
	t.Parallel()
	r := scenario.NewTaskSet()
	r.Add(scenario.Task{Name: "a", Definition: definition("a", "x")})
	r.Change("unknown", func(*scenario.Task) { t.Error("there is no such task") })
	before := r.Task("a")
	var changing sync.WaitGroup
	for range 10 {
		changing.Go(func() {
			r.Change("a", func(task *scenario.Task) { task.Killed, task.MayEnd = append(task.Killed, "x"), true })
			_ = append(r.Task("a").Killed, "y")
		})
	}
	changing.Wait()
	after := r.Task("a")
	testkit.Equal(t, "len(before.Killed)", len(before.Killed), 0)
	if before.MayEnd {
		t.Errorf("before %+v, after %+v", before, after)
	}
	testkit.Equal(t, "len(after.Killed)", len(after.Killed), 10)
	if !after.MayEnd {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

func TestApplicationAndAgentOfATask(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		def         *taskdef.TaskDefinition
		application string
		agent       bool
	}{
		{definition("web", "consul-client", "web", "log"), "web", true},
		{definition("shop", "sidecar-proxy", "app"), "app", false},
	} {
		task := scenario.Task{Definition: tt.def}
		if task.Application() != tt.application || task.HasAgent() != tt.agent {
			t.Errorf("%s: application %s, agent %v", tt.def.Family, task.Application(), task.HasAgent())
		}
		alive := task.Dead()
		task.Killed = []string{"app", "consul-client", "web", "log", "sidecar-proxy"}
		if alive || !task.Dead() {
			t.Errorf("%s: dead %v before it was killed, %v afterwards", tt.def.Family, alive, task.Dead())
		}
	}
}
