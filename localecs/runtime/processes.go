package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ErrEnded means that the container's first process has ended.
var ErrEnded = errors.New("cannot exec in a stopped container")

const killGrace = time.Second

// Processes is the processes of one container: those that share the mount namespace
// of its first one. Its methods are safe for concurrent use.
type Processes struct {
	pid      int
	pidfd    *os.File
	throttle *throttle
	// killed: SIGKILL was sent.
	killed atomic.Bool
}

// NewProcesses returns the group of a process to which pidfd, non-blocking, belongs. The caller closes pidfd after End.
func NewProcesses(pid int, pidfd *os.File) *Processes {
	return &Processes{pid: pid, pidfd: pidfd, throttle: newThrottle()}
}

// PID returns the container's first process, as this host numbers it.
func (g *Processes) PID() int { return g.pid }

// Signal sends a signal to the first process. One that has ended already is no error.
func (g *Processes) Signal(s syscall.Signal) error {
	g.sent(s)
	if err := sendSignal(g.pidfd, s); err != nil {
		return fmt.Errorf("send %v to process %d: %w", s, g.pid, err)
	}
	return nil
}

// sendSignal sends a signal to the process of a pidfd, unless it has ended or the descriptor is closed.
func sendSignal(pidfd *os.File, s syscall.Signal) (sent error) {
	raw, err := pidfd.SyscallConn()
	if err != nil {
		return nil
	}
	_ = raw.Control(func(fd uintptr) { sent = unix.PidfdSendSignal(int(fd), s, nil, 0) })
	if errors.Is(sent, unix.ESRCH) {
		return nil
	}
	return sent
}

// Kill sends SIGKILL: the kernel ends every process of the container.
func (g *Processes) Kill() { _ = g.Signal(unix.SIGKILL) }

// Killed reports whether SIGKILL was sent through this group.
func (g *Processes) Killed() bool { return g.killed.Load() }

func (g *Processes) sent(s syscall.Signal) {
	if s == unix.SIGKILL {
		g.killed.Store(true)
	}
}

// Ended returns a channel that is closed when the first process has ended; never when there was none, or pidfd is
// closed before.
func (g *Processes) Ended() <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		if awaitEnd(g.pidfd) == nil {
			close(ended)
		}
	}()
	return ended
}

func mountNamespacePath(pid int) string { return fmt.Sprintf("/proc/%d/ns/mnt", pid) }

// mountNamespace names a process's mount namespace; empty when it has ended.
// A name is for another namespace as soon as nothing holds the first.
func mountNamespace(pid int) string {
	name, _ := os.Readlink(mountNamespacePath(pid))
	return name
}

// eachIn hands over every process with that mount namespace, by its number and a descriptor.
func eachIn(mounts string, visit func(pid, fd int)) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || mountNamespace(pid) != mounts {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		// Again, now that the number cannot go to another process.
		if mountNamespace(pid) == mounts {
			visit(pid, fd)
		}
		unix.Close(fd)
	}
}

// signalOne reports whether the process was there to get the signal.
func signalOne(fd int, s syscall.Signal) bool {
	return !errors.Is(unix.PidfdSendSignal(fd, s, nil, 0), unix.ESRCH)
}

// killAllIn kills every process with that mount namespace, as the end of PID 1 does where a container has its own pid
// namespace. It looks until there is none, since what it kills may be forking, or until time is up: a process that
// waits for a disk cannot be killed. held is that mount namespace: while it is open no new container can get its name.
func killAllIn(held *os.File) {
	mounts := namespaceName(held)
	if mounts == "" {
		return
	}
	for end := time.Now().Add(killGrace); time.Now().Before(end); {
		killed := false
		eachIn(mounts, func(_, fd int) { killed = signalOne(fd, unix.SIGKILL) || killed })
		if !killed {
			return
		}
	}
}

// SignalProgram sends a signal to every process of the container that runs the program of that name, the last element
// of its path, and returns how many there were: below an init or a supervisor the program is not PID 1.
func (g *Processes) SignalProgram(name string, s syscall.Signal) int {
	n := 0
	g.each(func(pid, fd int) {
		if runs(pid, name) && signalOne(fd, s) {
			n++
			g.sent(s)
		}
	})
	return n
}

// runs reports whether a process runs a program of that name; any does when it is empty.
func runs(pid int, program string) bool {
	if program == "" {
		return true
	}
	exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return filepath.Base(exe) == program
}

// each hands over every process of the container, by its number and a descriptor, as long as its first one runs.
func (g *Processes) each(visit func(pid, fd int)) {
	// While it is open no new container can get its name, and what belongs to another one is not taken for ours.
	held, err := os.Open(mountNamespacePath(g.pid))
	if err != nil {
		return
	}
	defer held.Close()
	raw, err := g.pidfd.SyscallConn()
	mounts := namespaceName(held)
	if err != nil || mounts == "" {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		// Only now is it known that the number was still the container's.
		if unix.PidfdSendSignal(int(fd), 0, nil, 0) == nil {
			eachIn(mounts, visit)
		}
	})
}

// namespaceName returns how processes name an open mount namespace.
func namespaceName(held *os.File) string {
	st, err := held.Stat()
	if err != nil {
		return ""
	}
	return fmt.Sprintf("mnt:[%d]", st.Sys().(*syscall.Stat_t).Ino)
}
