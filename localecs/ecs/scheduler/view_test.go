package scheduler

import (
	"slices"
	"testing"

	"github.com/meshtask/consul-ecs/taskdef"
)

// A view has the conditions that do not hold yet, and of a container that never
// started, what it waited for at the end.
func TestWaitsForHasTheUnmetConditions(t *testing.T) {
	t.Parallel()
	const script = `
		web{run}
		db{run hc[F P] interval=5}
		~setup{exit(0,3)}
		web→db:HEALTHY
		web→setup:SUCCESS`
	w := newWorld(t, Options{}, script)
	want := func(want ...taskdef.Dependency) {
		t.Helper()
		web, _ := w.task.View().Container("web")
		if !slices.Equal(web.WaitsFor, want) {
			t.Errorf("at %s: web waits for %v, want %v", w.now.Sub(w.zero), web.WaitsFor, want)
		}
	}
	db, setup := taskdef.Dependency{ContainerName: "db", Condition: "HEALTHY"}, taskdef.Dependency{ContainerName: "setup", Condition: "SUCCESS"}
	w.to(1)
	want(db, setup)
	w.to(4)
	want(db)
	w.to(11)
	want()
	w = newWorld(t, Options{}, script)
	w.to(4)
	w.apply(StopRequested{})
	w.to(60)
	want(db)
}
