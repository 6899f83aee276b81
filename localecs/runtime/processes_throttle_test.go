package runtime

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// sleeper starts a process with its own mount namespace, as a container has.
func sleeper(t *testing.T) *Processes {
	t.Helper()
	cmd := exec.Command("/bin/sleep", "1000")
	pidfd := -1
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL, PidFD: &pidfd}
	if err := cmd.Start(); err != nil {
		testkit.Missing(t, "make a mount namespace: "+err.Error())
	}
	if err := unix.SetNonblock(pidfd, true); err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(pidfd), "pidfd")
	g := NewProcesses(cmd.Process.Pid, file)
	t.Cleanup(func() {
		g.Kill()
		_ = cmd.Wait()
		g.End()
		file.Close()
	})
	return g
}

// The goroutine ends with the last hold, and a later one begins another.
func TestThrottleChecksWhileItIsHeld(t *testing.T) {
	t.Parallel()
	g := sleeper(t)
	looks := func() bool {
		g.throttle.mu.Lock()
		defer g.throttle.mu.Unlock()
		return g.throttle.looked
	}
	for range 2 {
		release, ok := g.Slow("sleep")
		if !ok || !looks() {
			t.Fatal("there are no looks")
		}
		release()
		testkit.Eventually(t, "there are no looks any more", func() bool { return !looks() })
		if g.SignalProgram("sleep", 0) != 1 {
			t.Fatal("the process is gone")
		}
	}
}

// A process is found by its program as long as it runs, and a signal to one that has ended is no error.
func TestProgramsOfAGroup(t *testing.T) {
	t.Parallel()
	g := sleeper(t)
	if n := g.SignalProgram("other", unix.SIGKILL); n != 0 {
		t.Errorf("%d processes run other", n)
	}
	if n := g.SignalProgram("sleep", unix.SIGKILL); n != 1 {
		t.Errorf("%d processes run sleep, want one", n)
	}
	testkit.Eventually(t, "it has ended", func() bool { return g.SignalProgram("sleep", 0) == 0 })
	if err := g.Signal(unix.SIGTERM); err != nil {
		t.Error(err)
	}
	if _, ok := g.Freeze(""); ok {
		t.Error("it was frozen after its end")
	}
}
