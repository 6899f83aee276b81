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

func TestAgentAndDeathOfATask(t *testing.T) {
	t.Parallel()
	for agent, def := range map[bool]*taskdef.TaskDefinition{
		true: definition("web", "consul-client", "web", "log"), false: definition("shop", "sidecar-proxy", "app"),
	} {
		task := scenario.Task{Definition: def}
		testkit.Equal(t, "HasAgent() of "+def.Family, task.HasAgent(), agent)
		testkit.Equal(t, "Dead() of "+def.Family+" before it was killed", task.Dead(), false)
		task.Killed = []string{"app", "consul-client", "web", "log", "sidecar-proxy"}
		testkit.Equal(t, "Dead() of "+def.Family+" afterwards", task.Dead(), true)
	}
}
