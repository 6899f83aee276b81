package runtime

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Exit codes of what did not run, as docker exec has them.
const (
	CodeFailed        = 125
	CodeNotExecutable = 126
	CodeNotFound      = 127
)

// Session is a process to run. Its streams are files, so that a runtime of processes can hand them over as they are;
// one that has streams of bytes instead copies from and to them, which also ends when the other side is closed.
type Session struct {
	// Argv is executed directly, without a shell.
	Argv []string
	// Stdin, Stdout and Stderr are the process's. Who runs it closes none of them.
	Stdin, Stdout, Stderr *os.File
	// Terminal reports whether all three are a terminal that no other process has: it
	// becomes the controlling one. Its size is the terminal's own; SIGWINCH among the
	// Signals means that it has changed, for runtimes to which the kernel does not signal it.
	Terminal bool
	// Signals are for the process and its children. It may be closed.
	Signals <-chan syscall.Signal
	// Alone: when the context ends the process is killed without its children.
	Alone bool
}

// Code returns the exit code for an error about starting a process, as docker exec has it.
func Code(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, fs.ErrNotExist):
		return CodeNotFound
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.ENOEXEC), errors.Is(err, unix.EISDIR):
		return CodeNotExecutable
	}
	return CodeFailed
}

// Follow passes a session's signals to a child that leads a process group, until it has ended, and returns its exit
// code, 128+n after signal n. When the context ends, the group is killed. Rest is called when the child has ended,
// before its number can be used again; nil for nothing.
func Follow(ctx context.Context, pid int, s Session, rest func()) int {
	var mu sync.Mutex
	over := false
	send := func(to int, signal syscall.Signal) {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			_ = unix.Kill(to, signal) // one that has ended needs none
		}
	}
	victim := -pid
	if s.Alone {
		victim = pid
	}
	defer context.AfterFunc(ctx, func() { send(victim, unix.SIGKILL) })()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for signals := s.Signals; ; {
			select {
			case signal, ok := <-signals:
				if !ok {
					signals = nil
				} else if signal != unix.SIGWINCH {
					send(-pid, signal)
				}
			case <-ended:
				return
			}
		}
	}()
	if fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK); err == nil {
		child := os.NewFile(uintptr(fd), "session")
		_ = awaitEnd(child) // in the poller, not on a thread
		child.Close()
	}
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	mu.Lock()
	over = true
	mu.Unlock()
	if rest != nil {
		rest()
	}
	return exitCode(reapChild(pid))
}
