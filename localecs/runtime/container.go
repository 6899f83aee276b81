package runtime

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/meshtask/consul-ecs/localecs/runtime/cgroup"
	"github.com/meshtask/consul-ecs/localecs/runtime/stage"
	"golang.org/x/sys/unix"
)

// outputGrace is how long output is awaited after the end of a container. All
// its processes are dead then; only a descriptor passed to another container
// can keep a pipe open.
const outputGrace = time.Second

// Exit is how a container ended.
type Exit struct {
	// Code is the program's, 128+n after signal n.
	Code int
	// Signal is the signal that ended it, 0 when none did.
	Signal syscall.Signal
	// OOM: the kernel killed a process of it for a memory limit, its own or the
	// task's.
	OOM bool
	// At is when the end was noticed.
	At time.Time
}

// Container is a container whose program was started.
type Container struct {
	config   stage.Config
	warnings []string
	child    process
	// mounts is the container's mount namespace, by which its processes are told
	// from others of a shared pid namespace; nil where the kernel does that.
	mounts *os.File
	// group limits and measures the memory; nil without a budget.
	group *cgroup.Group
	brake *brake
	// overfed: KillForMemory has ended it.
	overfed atomic.Bool
	pidfd   *os.File
	copies  sync.WaitGroup
	outputs []output
	done    chan struct{}
	exit    Exit
}

// open watches the child from its first moment on.
func (c *Container) open(r *Runtime) error {
	// Non-blocking, so that waiting goes through the poller: a blocked thread
	// for each of a thousand containers would be dear.
	if err := unix.SetNonblock(c.child.pidfd, true); err != nil {
		c.child.end()
		closeAll(c.mounts)
		for _, o := range c.outputs {
			o.from.Close()
		}
		return fmt.Errorf("watch process %d: %w", c.child.pid, err)
	}
	c.pidfd = os.NewFile(uintptr(c.child.pidfd), fmt.Sprintf("pidfd-%d", c.child.pid))
	c.collect()
	r.add(c)
	go func() {
		defer r.remove(c)
		c.watch()
	}()
	return nil
}

// watch reaps the child, takes in what is left of its output, and tells.
func (c *Container) watch() {
	status := wait(c.pidfd, c.child.pid)
	c.exit = Exit{Code: status.ExitStatus(), At: time.Now()}
	if status.Signaled() {
		c.exit.Signal = status.Signal()
		c.exit.Code = 128 + int(status.Signal())
	}
	c.brake.stop()
	if c.mounts != nil {
		killAllIn(c.mounts)
		c.mounts.Close()
	}
	c.exit.OOM = c.overfed.Load()
	if c.group != nil {
		c.exit.OOM = c.exit.OOM || c.group.OutOfMemory()
		_ = c.group.Close() // what stays is in the way of the budget's end, which says so
	}
	c.drain()
	c.pidfd.Close()
	close(c.done)
}

// wait returns the status of a child once it has ended.
func wait(pidfd *os.File, pid int) unix.WaitStatus {
	var status unix.WaitStatus
	reap := func(flags int) bool {
		for {
			got, err := unix.Wait4(pid, &status, flags, nil)
			if !errors.Is(err, unix.EINTR) {
				return got == pid || err != nil
			}
		}
	}
	raw, err := pidfd.SyscallConn()
	if err == nil {
		err = raw.Read(func(uintptr) bool { return reap(unix.WNOHANG) })
	}
	if err != nil {
		reap(0) // no poller: a thread waits
	}
	return status
}

// collect starts copying the container's output.
func (c *Container) collect() {
	for _, o := range c.outputs {
		c.copies.Go(func() {
			copyLines(o.to, o.from)
			o.from.Close()
		})
	}
}

func (c *Container) drain() {
	for _, o := range c.outputs {
		_ = o.from.SetReadDeadline(time.Now().Add(outputGrace))
	}
	c.copies.Wait()
}

// PID is the container's first process, as the host numbers it.
func (c *Container) PID() int { return c.child.pid }

// Warnings says what the host could not give: one sentence each.
func (c *Container) Warnings() []string { return c.warnings }

// Done is closed when the container has ended and its output is written.
func (c *Container) Done() <-chan struct{} { return c.done }

// Exit is how the container ended; only after Done.
func (c *Container) Exit() Exit {
	<-c.done
	return c.exit
}

// Signal sends a signal to the container's PID 1. A container that has ended
// already is no error.
func (c *Container) Signal(s syscall.Signal) error {
	raw, err := c.pidfd.SyscallConn()
	if err != nil {
		return nil
	}
	var sent error
	err = raw.Control(func(fd uintptr) { sent = unix.PidfdSendSignal(int(fd), s, nil, 0) })
	// The descriptor is closed, or the process a zombie: it has ended.
	if err != nil || sent == nil || errors.Is(sent, unix.ESRCH) {
		return nil
	}
	return fmt.Errorf("send %v to process %d: %w", s, c.child.pid, sent)
}

// Kill sends SIGKILL: the kernel ends every process of the container.
func (c *Container) Kill() { _ = c.Signal(unix.SIGKILL) }

// KillForMemory is Kill, told as the kernel's own for a memory limit.
func (c *Container) KillForMemory() {
	c.overfed.Store(true)
	c.Kill()
}
