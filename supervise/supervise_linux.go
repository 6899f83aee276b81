package supervise

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"golang.org/x/sys/unix"
)

const (
	// sweepLimit bounds the wait for killed orphans. A process that survives
	// SIGKILL for so long hangs in the kernel; waiting on would not end it.
	sweepLimit = 2 * time.Second
	sweepPause = 2 * time.Millisecond
	// leastSweeps are made in any case: on a starved machine a single one may take longer
	// than sweepLimit, and each ends one generation of orphans.
	leastSweeps = 20
	// signalled is added to a signal's number to make the exit code of a child that the
	// signal killed, as shells do it.
	signalled = 128
	// lostCode is the exit code when another process reaped the child.
	lostCode = 3
	// lastSignal is the highest signal number on Linux.
	lastSignal = 64
)

// Process is a started child. Its methods are safe for concurrent use.
type Process struct {
	pid  int
	log  hclog.Logger
	done chan struct{}

	// mu is held while children are reaped: as long as the child is not
	// reaped, its number belongs to no other process, so no signal can hit a
	// stranger.
	mu     sync.Mutex
	reaped bool
	code   int
}

// Start runs a program, which is looked up in PATH when it has no slash, with its
// arguments and our environment and files, in its own process group. The kernel kills the
// child when this program dies without having ended it. The error of a program that cannot
// be started names it and the remedy. One child at a time, the next one after Wait has
// returned: the wait loop takes every child of this program.
func Start(args []string, log hclog.Logger) (*Process, error) {
	if len(args) == 0 {
		return nil, errors.New("start child: no command given")
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		return nil, startError(args[0], err)
	}
	p := &Process{log: log, done: make(chan struct{})}
	started := make(chan error)
	go p.live(path, args, started)
	if err := <-started; err != nil {
		return nil, startError(args[0], err)
	}
	return p, nil
}

func startError(program string, err error) error {
	// LookPath's own error repeats the program's name.
	var lookup *exec.Error
	if errors.As(err, &lookup) {
		err = lookup.Err
	}
	return fmt.Errorf("start %q: %w: check the command in the task definition and that the container's image holds "+
		"this program, executable and built for this machine",
		program, err)
}

// Wait blocks until the child has ended and its orphans are gone, and returns the exit
// code: the child's own, or 128+n when signal n killed it.
func (p *Process) Wait() int {
	<-p.done
	return p.code
}

// Signal sends sig to the child alone. A child that has ended is no error.
func (p *Process) Signal(sig syscall.Signal) error { return p.kill(p.pid, sig) }

// SignalGroup sends sig to the child's process group. A child that has ended
// is no error.
func (p *Process) SignalGroup(sig syscall.Signal) error { return p.kill(-p.pid, sig) }

func (p *Process) kill(pid int, sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return os.NewSyscallError("kill", err)
	}
	return nil
}

// live starts the child, waits for it and cleans up after it. All of it stays
// on one OS thread, because the parent-death signal is sent when the thread
// that forked ends, and the Go runtime is free to end idle threads.
func (p *Process) live(path string, args []string, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Orphans of the child come to us even when we are not PID 1
	// (initProcessEnabled, pidMode task).
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		p.log.Warn("cannot become a child subreaper: orphans of the child will not be reaped", logkey.Error, err)
	}
	pid, err := syscall.ForkExec(path, args, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{os.Stdin.Fd(), os.Stdout.Fd(), os.Stderr.Fd()},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	p.pid = pid
	started <- err
	if err != nil {
		return
	}
	p.await()
	p.sweep()
	close(p.done)
}

// await blocks until the child is reaped, and reaps adopted processes on the
// way.
func (p *Process) await() {
	for !p.reaped {
		// Blocks without reaping, so that the lock is not held meanwhile.
		_ = unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil)
		p.reap()
	}
}

// reap takes every process that has ended and reports whether no child is
// left.
func (p *Process) reap() (none bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped && ended(p.pid) {
		// While the dead child still holds its number, the group is its own.
		_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	}
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			if !p.reaped {
				p.log.Error("the child's exit status is unknown: another waiter reaped it", logkey.PID, p.pid)
				p.reaped, p.code = true, lostCode
			}
			return true
		case pid == 0:
			return false
		case pid == p.pid && !p.reaped:
			p.reaped, p.code = true, exitCode(ws)
		}
	}
}

// exitCode returns the child's own code, or 128+n when signal n killed it.
func exitCode(ws syscall.WaitStatus) int {
	if ws.Signaled() {
		return signalled + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// ended reports whether the child waits to be reaped.
func ended(pid int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	return err == nil && info.Signo != 0
}

// sweep kills what the child left behind until nothing is left. Descendants
// arrive one generation at a time, as their parents are killed.
func (p *Process) sweep() {
	start := time.Now()
	for n := 0; !p.reap(); n++ {
		if elapsed := time.Since(start); elapsed > sweepLimit && n >= leastSweeps {
			p.log.Warn("orphans of the child survived SIGKILL", logkey.Elapsed, elapsed)
			return
		}
		killOrphans()
		time.Sleep(sweepPause)
	}
}

// killOrphans kills our children. As PID 1 those are not all of the container's processes:
// a health check or a shell that ECS starts in it has its parent outside.
func killOrphans() {
	self := os.Getpid()
	// A /proc of another pid namespace would name other processes.
	if link, err := os.Readlink("/proc/self"); err != nil || link != strconv.Itoa(self) {
		if self == 1 {
			_ = syscall.Kill(-1, syscall.SIGKILL) // all of our namespace
		}
		return
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has gone meanwhile
		}
		if pid, ppid, ok := parseStat(stat); ok && ppid == self {
			// Children stay unreaped until we reap them: no other process is hit.
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// parseStat reads the number and the parent's number from /proc/<pid>/stat:
// "7 (name) S 1 ...", where the name may hold blanks and parentheses.
func parseStat(stat []byte) (pid, ppid int, ok bool) {
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return 0, 0, false
	}
	fields := bytes.Fields(stat[end+1:])
	if len(fields) < 2 {
		return 0, 0, false
	}
	pid, err1 := strconv.Atoi(string(bytes.TrimSpace(stat[:open])))
	ppid, err2 := strconv.Atoi(string(fields[1]))
	return pid, ppid, err1 == nil && err2 == nil && pid > 0
}

// subscribed lists every signal that can be caught, except for SIGCHLD and SIGURG, with
// which the Go scheduler interrupts its own threads: those are about this process.
func subscribed() []os.Signal {
	var all []os.Signal
	for n := syscall.Signal(1); n <= lastSignal; n++ {
		switch n {
		case syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGCHLD, syscall.SIGURG:
		default:
			all = append(all, n)
		}
	}
	return all
}
