package disturbance_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/fault"
	"github.com/meshtask/consul-ecs/localecs/scenario/disturbance"
	"github.com/meshtask/consul-ecs/localecs/scenario/roster"
	"github.com/meshtask/consul-ecs/taskdef"
)

// What a fault does to a container is no surprise, and to an essential one its
// task's end is not, either.
func TestFaultsAreForeseen(t *testing.T) {
	t.Parallel()
	no := false
	def := &taskdef.TaskDefinition{ContainerDefinitions: []taskdef.Container{{Name: "app"}, {Name: "sync", Essential: &no}}}
	of := func(container string) *fault.Process { return &fault.Process{Task: "web", Container: container} }
	for _, c := range []struct {
		fault  fault.Fault
		mayEnd bool
		killed []string
	}{
		{fault.Fault{Kill: of("app")}, true, []string{"app"}},
		{fault.Fault{Kill: of("sync")}, false, []string{"sync"}},
		{fault.Fault{OOM: of("app")}, true, []string{"app"}},
		{fault.Fault{Freeze: of("app")}, true, []string{"app"}},
		{fault.Fault{Slow: of("app")}, false, nil},
		{fault.Fault{Spot: &fault.Spot{Task: "web"}}, true, nil},
		{fault.Fault{Server: fault.Down}, false, nil},
		{fault.Fault{Endpoint: &fault.Endpoint{Name: fault.Metadata, Task: "web", Hang: true}}, false, nil},
	} {
		tasks := roster.New()
		tasks.Add(roster.Task{Name: "web", Definition: def})
		disturbance.Acts{Tasks: tasks}.Foresee(c.fault)
		web := tasks.Task("web")
		if diff := cmp.Diff(c.killed, web.Killed); diff != "" || web.MayEnd != c.mayEnd {
			t.Errorf("%s: may end %v, killed (-want +got):\n%s", c.fault, web.MayEnd, diff)
		}
	}
}

// server notes what is done to it.
type server struct{ done []string }

func (s *server) do(what string) (func() error, error) {
	s.done = append(s.done, what)
	return func() error { s.done = append(s.done, "end of "+what); return nil }, nil
}

func (s *server) Down() (func() error, error)   { return s.do("down") }
func (s *server) Freeze() (func() error, error) { return s.do("freeze") }
func (s *server) Slow() (func() error, error)   { return s.do("slow") }

func TestFaultsOfTheServer(t *testing.T) {
	t.Parallel()
	var s server
	for _, state := range []string{fault.Down, fault.Frozen, fault.Slowed} {
		end, err := disturbance.Acts{Server: &s}.Begin(fault.Fault{Server: state})
		if err != nil {
			t.Fatal(err)
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"down", "end of down", "freeze", "end of freeze", "slow", "end of slow"}, s.done); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestATaskThatHasNotStartedIsMissed(t *testing.T) {
	t.Parallel()
	tasks := roster.New()
	tasks.Add(roster.Task{Name: "web", Definition: &taskdef.TaskDefinition{}})
	web := &fault.Process{Task: "web", Container: "app"}
	for _, f := range []fault.Fault{
		{Kill: web}, {OOM: web}, {Freeze: web}, {Slow: web}, {Spot: &fault.Spot{Task: "web"}},
		{Partition: &fault.Partition{Task: "web", From: fault.All}}, {Link: &fault.Link{Task: "web", KBits: 8}},
	} {
		if end, err := (disturbance.Acts{Tasks: tasks}).Begin(f); !errors.Is(err, disturbance.ErrMissed) || end != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}
