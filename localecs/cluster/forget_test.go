package cluster

import (
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"
	"weak"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/taskdef"
)

// A cluster that runs for days has run many tasks. Nothing of a task that is over
// stays in memory, its DNS names included; its log stays on disk.
func TestEndedTasksAreRemoved(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	over := make([]weak.Pointer[Task], 3)
	for i := range over {
		task, err := w.Run("short", &taskdef.TaskDefinition{
			Family: "short", NetworkMode: "awsvpc", TaskRoleARN: roleARN, ContainerDefinitions: []taskdef.Container{shell("app", "echo done")},
		})
		if err != nil {
			t.Fatal(err)
		}
		over[i] = weak.Make(task)
		<-task.Done()
	}
	for _, task := range over {
		testkit.Eventually(t, "task is forgotten", func() bool {
			goruntime.GC()
			return task.Value() == nil
		})
	}
	if log, err := os.ReadFile(filepath.Join(w.dir, "logs", "short", "app.log")); err != nil || string(log) != "done\ndone\ndone\n" {
		t.Errorf("log %q, %v", log, err)
	}
	if addresses, exists := w.resolve("short.test.local"); exists {
		t.Errorf("the name of its family still exists, with addresses %v", addresses)
	}
}
