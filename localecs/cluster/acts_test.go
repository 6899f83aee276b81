package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/taskdef"
)

// states returns the states of a container's processes that run a program, as ps shows them: T is stopped.
func (s *taskFixture) states(container, program string) string {
	s.t.Helper()
	mounts := func(pid string) string {
		ns, _ := os.Readlink(filepath.Join("/proc", pid, "ns/mnt"))
		return ns
	}
	own := mounts(fmt.Sprint(s.containers.get(container).PID()))
	pids, _ := os.ReadDir("/proc")
	var all strings.Builder
	for _, pid := range pids {
		if own == "" || mounts(pid.Name()) != own {
			continue
		}
		exe, _ := os.Readlink(filepath.Join("/proc", pid.Name(), "exe"))
		stat, _ := os.ReadFile(filepath.Join("/proc", pid.Name(), "stat"))
		if _, rest, ok := strings.Cut(string(stat), ") "); ok && filepath.Base(exe) == program {
			all.WriteString(rest[:1])
		}
	}
	return all.String()
}

// stalls fails unless nothing comes over a connection for a while.
func stalls(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
	if text, err := io.ReadAll(c); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%q, %v; want nothing", text, err)
	}
	_ = c.SetReadDeadline(time.Now().Add(testkit.Patience))
}

// must runs the end of an act.
func must(t *testing.T, end func() error) {
	t.Helper()
	if err := end(); err != nil {
		t.Error(err)
	}
}

func TestFrozenContainerHasConnectionsAndNoAnswers(t *testing.T) {
	t.Parallel()
	a := checked(helper("a", "net", "listen=:9000"), 1, "CMD", "/bin/helper", "exit", "0", "0s")
	*a.HealthCheck.Timeout = 2
	s := startTask(t, nil, a).await("a")
	healthy := func(want string) func(scheduler.View) bool {
		return func(v scheduler.View) bool { return v.Containers[0].Health.Status == want }
	}
	s.until("healthy", healthy(scheduler.HealthHealthy))
	end, err := s.Freeze("a", "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Dial(t.Context(), "tcp", "127.0.0.1:9000")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	stalls(t, c)
	s.until("unhealthy", healthy(scheduler.HealthUnhealthy))
	if out := s.container("a").Health.Output; out != "Health check exceeded timeout (2s)" {
		t.Errorf("probe: %q", out)
	}
	must(t, end)
	if text, err := io.ReadAll(c); string(text) != "hello from [::]:9000" || err != nil {
		t.Errorf("afterwards: %q, %v", text, err)
	}
	s.until("healthy again", healthy(scheduler.HealthHealthy))
	must(t, end)
	s.end().stopped()
	must(t, end)
}

// Two acts overlap; the program is frozen until both have ended, and what the
// shell starts meanwhile is as well. The shell itself runs.
func TestFrozenProgram(t *testing.T) {
	t.Parallel()
	a := taskdef.Container{Name: "a", Image: "tools", EntryPoint: []string{"/bin/sh", "-c",
		"trap '/bin/helper block &' USR1; trap 'exit 7' TERM; /bin/helper block & while :; do sleep 0.02; done"}}
	s := startTask(t, nil, a).await("a")
	first, err := s.Freeze("a", "helper")
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Slow("a", "helper")
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the program is frozen", func() bool { return s.states("a", "helper") == "T" })
	if err := s.Kill("a", "", syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the second is frozen too", func() bool { return s.states("a", "helper") == "TT" })
	must(t, first)
	testkit.Eventually(t, "slow is not frozen", func() bool { return !strings.Contains(s.states("a", "helper"), "T") })
	must(t, second)
	if got := s.states("a", "helper"); len(got) != 2 || strings.Contains(got, "T") {
		t.Errorf("afterwards their states are %s", got)
	}
	s.end().stopped()
	if s.code("a") != 7 {
		t.Errorf("exit code %d, want the shell's own", s.code("a"))
	}
}

func TestSlowedContainerFallsBehind(t *testing.T) {
	t.Parallel()
	s := startTask(t, nil, stopTimeout(helper("a", "tick"), 1), stopTimeout(helper("b", "tick"), 1))
	// ticks are those of a container after a moment, by its own clock: its log is late.
	ticks := func(c string, after time.Time) []time.Time {
		all := times(s.log(c), "tick")
		return slices.DeleteFunc(all, func(at time.Time) bool { return !at.After(after) })
	}
	var never time.Time
	testkit.Eventually(t, "both tick", func() bool {
		return len(ticks("a", never)) > 0 && len(ticks("b", never)) > 0 && !s.container("a").StartedAt.IsZero()
	})
	end, err := s.Slow("a", "")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	const whole = 300
	// About a fifth, and more while a busy machine lets a run for longer.
	testkit.Eventually(t, "a ticks less than b", func() bool {
		a, b := ticks("a", began), ticks("b", began)
		if len(b) <= whole || len(a) == 0 {
			return false
		}
		if a[len(a)-1].Before(b[whole]) {
			return false
		}
		slow := slices.IndexFunc(a, func(at time.Time) bool { return !at.Before(b[whole]) })
		began = b[whole]
		return slow <= whole*3/4
	})
	must(t, end)
	if got := s.states("a", "helper"); got == "T" {
		t.Errorf("afterwards its state is %s", got)
	}
	ended := time.Now()
	testkit.Eventually(t, "a goes on", func() bool { return len(ticks("a", ended)) > 100 })
	s.end().stopped()
}

// A stop signal waits for SIGCONT; SIGKILL does not.
func TestFrozenContainerStops(t *testing.T) {
	t.Parallel()
	s := startTask(t, nil, stopTimeout(helper("a", "run", "0s", "7"), 2), stopTimeout(helper("b", "run", "0s", "7"), 60)).await("a", "b")
	if _, err := s.Freeze("a", ""); err != nil {
		t.Fatal(err)
	}
	thaw, err := s.Freeze("b", "")
	if err != nil {
		t.Fatal(err)
	}
	s.end()
	v := s.until("a STOPPED", func(scheduler.View) bool { return s.code("a") != -1 })
	if s.code("a") != 137 || s.code("b") != -1 {
		t.Errorf("a exited %d, b %d; want 137 and not yet", s.code("a"), s.code("b"))
	}
	between(t, "a's end", s.container("a").FinishedAt.Sub(v.StoppingAt), 2*time.Second, 2*time.Second)
	if log := s.log("b"); strings.Contains(log, "SIGTERM") {
		t.Errorf("b has seen TERM while frozen: %s", log)
	}
	must(t, thaw)
	s.stopped()
	if s.code("b") != 7 {
		t.Errorf("b exited %d, want its own 7", s.code("b"))
	}
}

func TestCloseThawsFrozenContainers(t *testing.T) {
	t.Parallel()
	s := startTask(t, nil, helper("a", "run", "0s", "0"), helper("b", "run", "0s", "0")).await("a", "b")
	end, err := s.Freeze("a", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Slow("b", ""); err != nil {
		t.Fatal(err)
	}
	pids := []int{s.containers.get("a").PID(), s.containers.get("b").PID()}
	if err := s.fixture.Close(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d: %v", pid, err)
		}
	}
	must(t, end)
}

func TestActionsOnMissingTargetsFail(t *testing.T) {
	t.Parallel()
	s := startTask(t, nil, helper("a", "run", "0s", "0"), optional(helper("b", "exit", "0", "0s"))).await("a")
	s.until("b STOPPED", func(scheduler.View) bool { return s.code("b") == 0 })
	freeze := func(container, program string) error {
		_, err := s.Freeze(container, program)
		return err
	}
	for want, err := range map[string]error{
		"container none has not started":       freeze("none", ""),
		"container b has ended":                freeze("b", ""),
		"no process of container a runs envoy": freeze("a", "envoy"),
		"container c has not started":          s.OOM("c"),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Without the memory.
func TestOOM(t *testing.T) {
	t.Parallel()
	s := startTask(t, nil, helper("a", "run", "0s", "0"), helper("b", "run", "0s", "0")).await("a", "b")
	if err := s.OOM("a"); err != nil {
		t.Fatal(err)
	}
	v := s.stopped()
	if a := s.container("a"); s.code("a") != 137 || a.Reason != "OutOfMemoryError: Container killed due to memory usage" {
		t.Errorf("%+v", a)
	}
	testkit.Equal(t, "stop code", v.StopCode, scheduler.StopEssentialContainerExited)
	testkit.Equal(t, "b's exit code", s.code("b"), 0)
	testkit.Equal(t, "b's reason", s.container("b").Reason, "")
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	s := startTask(t, nil, helper("a", "run", "500ms", "3"), deaf("b", 5)).await("a")
	s.until("RUNNING", running)
	if err := s.Interrupt(); err != nil {
		t.Fatal(err)
	}
	v := s.until("to stop", func(v scheduler.View) bool { return v.DesiredStatus == scheduler.StatusStopped })
	testkit.Equal(t, "known status", v.KnownStatus, scheduler.StatusRunning)
	testkit.Equal(t, "stop code", v.StopCode, "SpotInterruption")
	testkit.Equal(t, "stopped reason", v.StoppedReason, "Your Spot Task was interrupted.")
	const want = "interrupt task web: it is already stopping (SpotInterruption: Your Spot Task was interrupted.)"
	if err := s.Interrupt(); err == nil || err.Error() != want {
		t.Errorf("again: %v, want %s", err, want)
	}
	v = s.stopped()
	testkit.Equal(t, "a's stop signals", len(times(s.log("a"), "SIGTERM")), 1)
	testkit.Equal(t, "exit codes of a and b", [2]int{s.code("a"), s.code("b")}, [2]int{3, 137})
	testkit.Equal(t, "stop code", v.StopCode, "SpotInterruption")
	between(t, "b's end", s.container("b").FinishedAt.Sub(v.StoppingAt), 5*time.Second, 5*time.Second)
}

// greeting returns what a task receives at an address before it is late.
func (s *taskFixture) greeting(address string, patience time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	c, err := s.Dial(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	text, err := io.ReadAll(c)
	return string(text), err
}

// patience returns how long to wait for what should come, or not.
func patience(want bool) time.Duration {
	if want {
		return testkit.Patience
	}
	return 500 * time.Millisecond
}

// hears fails unless a task is greeted, or is not and gets no answer at all.
func (s *taskFixture) hears(address string, want bool) {
	s.t.Helper()
	text, err := s.greeting(address, patience(want))
	late, _ := errors.AsType[net.Error](err)
	if got := text != "" && err == nil; got != want {
		s.t.Errorf("%s: %q, %v; want an answer %t", address, text, err, want)
	}
	if silent := late != nil && late.Timeout(); !want && !silent {
		s.t.Errorf("%s: %q, %v; want silence", address, text, err)
	}
}

func TestPartitions(t *testing.T) {
	t.Parallel()
	w := newTools(t, nil)
	service := startService(t, w)
	testkit.Eventually(t, "the service greets", func() bool { return w.greets(t) })
	a := w.startTask(t, withRole, helper("a", "net", "listen=:9000")).await("a")
	b := w.startTask(t, nil, helper("a", "net", "listen=:9000")).await("a")
	sts := strings.TrimPrefix(w.AWSEndpoint(), "http://") + ":80"
	reached := func(task, server, aws bool) {
		t.Helper()
		a.hears(b.IP()+":9000", task)
		b.hears(a.IP()+":9000", task)
		a.hears(serviceAddress, server)
		b.hears(serviceAddress, true)
		ctx, cancel := context.WithTimeout(t.Context(), patience(aws))
		defer cancel()
		c, err := a.Dial(ctx, "tcp", sts)
		if (err == nil) != aws {
			t.Errorf("STS: %v, want a connection %t", err, aws)
		}
		if err == nil {
			c.Close()
		}
		if code, _ := a.request("GET", a.base("a")+"/task", ""); code != 200 {
			t.Errorf("metadata: %d", code)
		}
		if code, _ := a.request("GET", a.credentialsURL(), ""); code != 200 {
			t.Errorf("credentials: %d", code)
		}
	}
	for _, c := range []struct {
		act               func() (func() error, error)
		task, server, aws bool
	}{
		{func() (func() error, error) { return w.Partition(a.Task, b.Task) }, false, true, true},
		{func() (func() error, error) { return w.PartitionFromServices(a.Task) }, true, false, true},
		{func() (func() error, error) { return w.PartitionFromAll(a.Task) }, false, false, false},
	} {
		end, err := c.act()
		if err != nil {
			t.Fatal(err)
		}
		reached(c.task, c.server, c.aws)
		must(t, end)
		reached(true, true, true)
	}
	// A service that comes back is still kept away.
	if _, err := w.PartitionFromServices(a.Task); err != nil {
		t.Fatal(err)
	}
	up, err := service.Down()
	if err != nil {
		t.Fatal(err)
	}
	must(t, up)
	testkit.Eventually(t, "the service greets", func() bool { return w.greets(t) })
	a.hears(serviceAddress, false)
	if _, err := a.Limit(1000); err != nil {
		t.Fatal(err)
	}
	a.end().stopped()
	if _, err := a.Limit(1000); !errors.Is(err, network.ErrGone) {
		t.Errorf("limit of a task that has ended: %v", err)
	}
}
