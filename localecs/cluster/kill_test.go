package cluster

import (
	"syscall"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/taskdef"
)

// A program that dies by itself: the essential one takes the task along, the
// other does not, and what runs the program reports its code.
func TestKillEndsTheProgram(t *testing.T) {
	t.Parallel()
	supervised := taskdef.Container{Name: "b", Image: "tools", EntryPoint: []string{"/bin/sh", "-c", "/bin/helper run 0s 0 & wait $!; exit $?"}}
	s := startTask(t, nil, optional(helper("a", "run", "0s", "0")), supervised).await("a", "b")
	for _, c := range []struct {
		container, program string
		want               string
	}{
		{"none", "", "container none has not started"},
		{"b", "envoy", "no process of container b runs envoy"},
	} {
		if err := s.Kill(c.container, c.program, syscall.SIGKILL); err == nil || err.Error() != c.want {
			t.Errorf("kill %s in %s: %v, want %s", c.program, c.container, err, c.want)
		}
	}
	if err := s.Kill("a", "", syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.until("a STOPPED", func(v scheduler.View) bool { return s.container("a").KnownStatus == "STOPPED" })
	if v := s.View(); s.code("a") != 137 || v.DesiredStatus != "RUNNING" {
		t.Errorf("a exited %d, task desired %s; want 137 and RUNNING", s.code("a"), v.DesiredStatus)
	}
	if err := s.Kill("a", "", syscall.SIGKILL); err == nil {
		t.Error("a container that has ended was killed")
	}
	if err := s.Kill("b", "helper", syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if v := s.stopped(); s.code("b") != 137 || v.StopCode != scheduler.StopEssentialContainerExited {
		t.Errorf("b exited %d, %s; want the program's code and the task's end", s.code("b"), v.StopCode)
	}
}

// Whenever the machine of a task dies, the task ends with it: also before its first
// container runs.
func TestKillAllStopsATaskThatHasJustStarted(t *testing.T) {
	t.Parallel()
	w := newTools(t, nil)
	task := w.run(t, nil, optional(shell("a", "sleep 1000")), after(shell("b", "sleep 1000"), "a", "COMPLETE"))
	task.KillAll()
	v := wait(t, task)
	if v.StopCode != scheduler.StopEssentialContainerExited {
		t.Errorf("stop code %s", v.StopCode)
	}
	for _, c := range v.Containers {
		if c.ExitCode != nil && *c.ExitCode != 137 {
			t.Errorf("container %s exited with %d, want 137", c.Name, *c.ExitCode)
		}
		if c.Name == "b" && c.ExitCode != nil {
			t.Errorf("b exited with %d, want no start", *c.ExitCode)
		}
	}
}

func TestGatePeriodDelaysWhatWaits(t *testing.T) {
	t.Parallel()
	const period = 700 * time.Millisecond
	w := newTools(t, func(o *Options) { o.GatePeriod = period })
	began := time.Now()
	s := w.startTask(t, nil, optional(helper("a", "exit", "0", "0s")), after(helper("b", "run", "0s", "0"), "a", "SUCCESS")).await("b")
	if b := s.container("b").StartedAt; b.Sub(began) < period {
		t.Errorf("b started after %s, want a period of %s or more after the task", b.Sub(began), period)
	}
	s.end().stopped()
}
