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
	w := newFixture(t, Options{}, script)
	want := func(want ...taskdef.Dependency) {
		t.Helper()
		web, _ := w.task.View().Container("web")
		if !slices.Equal(web.WaitsFor, want) {
			t.Errorf("at %s: web waits for %v, want %v", w.now.Sub(w.zero), web.WaitsFor, want)
		}
	}
	db, setup := taskdef.Dependency{ContainerName: "db", Condition: "HEALTHY"}, taskdef.Dependency{
		ContainerName: "setup", Condition: "SUCCESS",
	}
	w.to(1)
	want(db, setup)
	w.to(4)
	want(db)
	w.to(11)
	want()
	w = newFixture(t, Options{}, script)
	w.to(4)
	w.apply(StopRequested{})
	w.to(60)
	want(db)
}

func TestWaitingDescribesWhyAContainerIsNotUp(t *testing.T) {
	t.Parallel()
	on := []taskdef.Dependency{
		{ContainerName: "db", Condition: "HEALTHY"}, {ContainerName: "setup", Condition: "SUCCESS"},
	}
	health := func(status string) *HealthView { return &HealthView{Status: status} }
	for want, v := range map[string]ContainerView{
		"waits for db HEALTHY and setup SUCCESS": {KnownStatus: "PULLED", DesiredStatus: "RUNNING", WaitsFor: on},
		"has not started":                        {KnownStatus: "NONE", DesiredStatus: "RUNNING"},
		"is stopping": {KnownStatus: "RUNNING", DesiredStatus: "STOPPED",
			Health: health("HEALTHY")},
		"has no health yet": {KnownStatus: "RUNNING", DesiredStatus: "RUNNING", Health: health("")},
		"is UNHEALTHY":      {KnownStatus: "RUNNING", DesiredStatus: "RUNNING", Health: health("UNHEALTHY")},
	} {
		if got := v.Waiting(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for _, v := range []ContainerView{
		{KnownStatus: "STOPPED", DesiredStatus: "STOPPED"}, {KnownStatus: "RUNNING", DesiredStatus: "RUNNING"},
		{KnownStatus: "RUNNING", DesiredStatus: "RUNNING", Health: health("HEALTHY")},
	} {
		if got := v.Waiting(); got != "" {
			t.Errorf("%+v: got %q", v, got)
		}
	}
}
