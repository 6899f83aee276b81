package host

import (
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// The names of the child of Run: before and after its IDs are mapped.
const (
	argv0Waiting = "localecs-rootless-waiting"
	argv0Inside  = "localecs-rootless"
)

const lifeFD = 3

const inheritFD = 4 // the first one

// SelfExe is this binary, also after its file was replaced.
const SelfExe = "/proc/self/exe"

// Inside reports whether this process is a child of Run.
func Inside() bool { return os.Args[0] == argv0Inside }

// Inherited returns the n files that Run passed to this child. They fail at their first use if there
// were fewer.
func Inherited(n int) []*os.File {
	var files []*os.File
	for fd := inheritFD; fd < inheritFD+n; fd++ {
		unix.CloseOnExec(fd)
		files = append(files, os.NewFile(uintptr(fd), "inherited"))
	}
	return files
}

// wait waits until this process has IDs and executes the program once more: a process without a
// user ID loses all capabilities at exec, and root gets them back.
func wait(args []string) int {
	if !released() {
		return 1
	}
	_ = syscall.Exec(SelfExe, append([]string{argv0Inside}, args...), syscall.Environ())
	return 1
}

// released waits until the parent writes to the pipe. It is false when the parent has exited, or
// could not map IDs, which the parent reports.
func released() bool {
	for {
		n, err := unix.Read(lifeFD, make([]byte, 1))
		if !errors.Is(err, unix.EINTR) {
			return n == 1
		}
	}
}

// endWithParent ends this process when its parent does. PR_SET_PDEATHSIG covers a stopped process, which
// cannot watch the pipe. The pipe covers a parent that exited before, one whose thread ended, and
// an exec that gains capabilities, as that of wait: after these the kernel sends no signal.
func endWithParent() {
	unix.CloseOnExec(lifeFD)
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
	if !released() {
		os.Exit(1)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(lifeFD, "parent"))
		_ = unix.Kill(unix.Getpid(), unix.SIGKILL)
	}()
}
