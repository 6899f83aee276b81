package host

import (
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// What a child is called says how far it is.
const (
	argv0Waiting = "localecs-rootless-waiting"
	argv0Inside  = "localecs-rootless"
)

// lifeFD is a pipe whose other end only the parent has.
const lifeFD = 3

// inheritFD is Options.Inherit.
const inheritFD = 4

// selfExe is this binary, also after its file was replaced.
const selfExe = "/proc/self/exe"

// Main makes a child of Run what it is to be; in any other process it does
// nothing. It comes before everything else in main.
func Main() {
	switch os.Args[0] {
	case argv0Waiting:
		os.Exit(wait())
	case argv0Inside:
		tie()
	}
}

// Inside reports whether this process is a child of Run.
func Inside() bool { return os.Args[0] == argv0Inside }

// Inherited is the file that Run was given for this child. It was given none
// when nothing is there.
func Inherited() *os.File {
	unix.CloseOnExec(inheritFD)
	return os.NewFile(inheritFD, "inherited")
}

// wait waits until this process has IDs and executes the program once more:
// who has no user ID loses all capabilities at exec, and root gets them back.
func wait() int {
	if !heard() {
		return 1
	}
	_ = syscall.Exec(selfExe, append([]string{argv0Inside}, os.Args[1:]...), syscall.Environ())
	return 1
}

// heard waits for the parent's word to go on. Without it the parent has ended,
// or could not map and says so.
func heard() bool {
	for {
		n, err := unix.Read(lifeFD, make([]byte, 1))
		if !errors.Is(err, unix.EINTR) {
			return n == 1
		}
	}
}

// tie ends this process when its parent does. The wish to be killed then is for
// one that is stopped, which hears of nothing else. It comes too late when the
// parent has ended before, and the kernel forgets it with its thread, and when an
// exec gives capabilities, as wait's does; so one that runs watches the pipe, too.
func tie() {
	unix.CloseOnExec(lifeFD)
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
	if !heard() {
		os.Exit(1)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(lifeFD, "parent"))
		_ = unix.Kill(unix.Getpid(), unix.SIGKILL)
	}()
}
