package runtime

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"
)

// supervise runs as the init of initProcessEnabled: it starts the program as its child, passes signals on, reaps
// whatever is orphaned, and ends with the child's code, 128+n when a signal ended it.
func supervise(path string, args []string) int {
	runtime.UnlockOSThread()
	// One small process per container: it has nothing to do in parallel.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(20)
	unix.CloseOnExec(statusFD)
	signals := make(chan os.Signal, 64)
	signal.Notify(signals)
	child, err := syscall.ForkExec(path, args, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	if err != nil {
		return fail("", false, explainExec(args[0], path, err))
	}
	_, _ = unix.Write(statusFD, []byte{started})
	unix.Close(statusFD)
	for s := range signals {
		switch s {
		case unix.SIGCHLD:
			if code, done := reap(child); done {
				return code
			}
		case unix.SIGURG: // the Go runtime sends it to itself
		default:
			_ = unix.Kill(child, s.(syscall.Signal))
		}
	}
	return 0
}

// reap collects every child that has ended. done is true when the program is among them.
func reap(child int) (code int, done bool) {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return code, done
		}
		if pid != child {
			continue
		}
		done = true
		code = exitCode(status)
	}
}
