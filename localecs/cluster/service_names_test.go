package cluster

import (
	"slices"
	"testing"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/taskdef"
)

// A task is found by its name, its family, and its service; by that only when it is
// healthy.
func TestNamesOfServiceTasks(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	one, minute, retries := 1, 60, 1
	start := func(name, check string) *Task {
		app := shell("app", "sleep 1000")
		if check != "" {
			app.HealthCheck = &taskdef.HealthCheck{Command: []string{"CMD-SHELL", check}, Interval: &one, Timeout: &minute, Retries: &retries}
		}
		task, err := w.runFor("shop", name, &taskdef.TaskDefinition{
			Family: "api", NetworkMode: "awsvpc", CPU: "256", Memory: "512", ContainerDefinitions: []taskdef.Container{app},
		})
		if err != nil {
			t.Fatal(err)
		}
		return task
	}
	plain, good, ill := start("Shop-1", ""), start("shop-2", "true"), start("shop-3", "false")
	until(t, plain, "running", running)
	health := func(status string) func(scheduler.View) bool {
		return func(v scheduler.View) bool { return v.HealthStatus() == status }
	}
	until(t, good, "healthy", health(scheduler.HealthHealthy))
	until(t, ill, "unhealthy", health(scheduler.HealthUnhealthy))
	for name, want := range map[string][]string{
		"shop-1.test.local": {plain.IP()},
		"shop-3.test.local": {ill.IP()},
		"shop.test.local":   {plain.IP(), good.IP()},
		"api.test.local":    {plain.IP(), good.IP(), ill.IP()},
	} {
		found, exists := w.resolve(name)
		var got []string
		for _, a := range found {
			got = append(got, a.String())
		}
		if !exists || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", name, got, exists, want)
		}
	}
	if _, exists := w.resolve("shop.other.local"); exists {
		t.Error("another cluster's name exists")
	}
}
