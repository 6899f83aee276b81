package scenario

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/chaos"
	"github.com/meshtask/consul-ecs/taskdef"
)

// What a fault does to a container is no surprise, and to an essential one its
// task's end is not, either.
func TestEffectsOfFaultsAreExpected(t *testing.T) {
	t.Parallel()
	no := false
	def := &taskdef.TaskDefinition{
		ContainerDefinitions: []taskdef.Container{{Name: "app"}, {Name: "sync", Essential: &no}},
	}
	of := func(container string) *chaos.Process { return &chaos.Process{Task: "web", Container: container} }
	for _, c := range []struct {
		fault  chaos.Fault
		mayEnd bool
		killed []string
	}{
		{chaos.Fault{Kill: &chaos.Kill{Task: "web", Container: "app"}}, true, []string{"app"}},
		{chaos.Fault{Kill: &chaos.Kill{Task: "web", Container: "sync", Signal: "HUP"}}, false, []string{"sync"}},
		{chaos.Fault{Kill: &chaos.Kill{Task: "web"}}, true, []string{"app", "sync"}},
		{chaos.Fault{OOM: of("app")}, true, []string{"app"}},
		{chaos.Fault{Freeze: of("app")}, true, []string{"app"}},
		{chaos.Fault{Slow: of("app")}, false, nil},
		{chaos.Fault{Spot: &chaos.SpotInterruption{Task: "web"}}, true, nil},
		{chaos.Fault{Server: chaos.Down}, false, nil},
		{chaos.Fault{Endpoint: &chaos.Endpoint{Name: chaos.Metadata, Task: "web", Hang: true}}, false, nil},
	} {
		tasks := NewTaskSet()
		tasks.Add(Task{Name: "web", Definition: def})
		(&faultInjector{tasks: tasks}).expectEffects(c.fault)
		web := tasks.Task("web")
		if diff := cmp.Diff(c.killed, web.Killed); diff != "" || web.MayEnd != c.mayEnd {
			t.Errorf("%s: may end %v, killed (-want +got):\n%s", c.fault, web.MayEnd, diff)
		}
	}
}

// fakeServer notes what is done to it.
type fakeServer struct{ done []string }

func (s *fakeServer) do(what string) (func() error, error) {
	s.done = append(s.done, what)
	return func() error { s.done = append(s.done, "end of "+what); return nil }, nil
}

func (s *fakeServer) Down() (func() error, error)   { return s.do("down") }
func (s *fakeServer) Freeze() (func() error, error) { return s.do("freeze") }
func (s *fakeServer) Slow() (func() error, error)   { return s.do("slow") }

func TestFaultsOfTheServer(t *testing.T) {
	t.Parallel()
	var s fakeServer
	for _, state := range []string{chaos.Down, chaos.Frozen, chaos.Slowed} {
		end, err := (&faultInjector{server: &s}).begin(chaos.Fault{Server: state})
		if err != nil {
			t.Fatal(err)
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"down", "end of down", "freeze", "end of freeze", "slow", "end of slow"},
		s.done); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTaskThatHasNotStartedCountsAsMissing(t *testing.T) {
	t.Parallel()
	tasks := NewTaskSet()
	tasks.Add(Task{Name: "web", Definition: &taskdef.TaskDefinition{}})
	web := &chaos.Process{Task: "web", Container: "app"}
	for _, f := range []chaos.Fault{
		{Kill: &chaos.Kill{Task: "web"}}, {OOM: web}, {Freeze: web}, {Slow: web},
		{Spot: &chaos.SpotInterruption{Task: "web"}},
		{Partition: &chaos.Partition{Task: "web", From: chaos.All}}, {Link: &chaos.Link{Task: "web", KBits: 8}},
	} {
		if end, err := (&faultInjector{tasks: tasks}).begin(f); !errors.Is(err, errMissed) || end != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}
