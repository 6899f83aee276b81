package localecs

import (
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"
	"weak"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/taskdef"
)

// A cluster that lives for days has run many tasks. Of one that is over nothing
// is held in memory; its log stays, and its family's name exists.
func TestTasksThatAreOverAreForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
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
	if addresses, exists := w.resolve("short.test.local"); !exists || len(addresses) > 0 {
		t.Errorf("its name: %v, exists %t", addresses, exists)
	}
	if _, exists := w.resolve("never.test.local"); exists {
		t.Error("a family that has never been has a name")
	}
}
