package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

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

// Life is what kinds of containers differ in.
type Life interface {
	// Wait returns once the container has ended and its output is written. It ends
	// the container's processes.Group as soon as it knows.
	Wait() Exit
	// Exec is Container.Exec of a container that is not frozen, within the context
	// alone: the Timeout is in it.
	Exec(ctx context.Context, s ExecSpec) ExecResult
	// Attach is Container.Attach of a container that is not frozen.
	Attach(ctx context.Context, s Session) (code int, err error)
	// Usage is Container.Usage of a container that runs.
	Usage() (Usage, bool)
}

// Container is a container whose program was started.
type Container struct {
	*Processes
	life     Life
	started  time.Time
	warnings []string
	// overfed: KillForMemory has ended it.
	overfed atomic.Bool
	done    chan struct{}
	exit    Exit
}

// NewContainer is the container of a group of processes. started and warnings are
// what Started and Warnings say. The caller has to call Watch.
func NewContainer(g *Processes, life Life, started time.Time, warnings []string) *Container {
	return &Container{Processes: g, life: life, started: started, warnings: warnings, done: make(chan struct{})}
}

// Started is when the program was started.
func (c *Container) Started() time.Time { return c.started }

// Watch waits for the container's end and tells of it. It is called once.
func (c *Container) Watch() {
	c.exit = c.life.Wait()
	c.exit.OOM = c.exit.OOM || c.overfed.Load()
	close(c.done)
}

// Warnings says what the host could not give: one sentence each.
func (c *Container) Warnings() []string { return c.warnings }

// Done is closed when the container has ended and its output is written.
func (c *Container) Done() <-chan struct{} { return c.done }

// Exit is how the container ended; only after Done.
func (c *Container) Exit() Exit {
	<-c.done
	return c.exit
}

// KillForMemory is Kill, told as the kernel's own for a memory limit.
func (c *Container) KillForMemory() {
	c.overfed.Store(true)
	c.Kill()
}

// Usage is the container's at this moment; ok is false where the host does not
// measure it, and once the container has ended.
func (c *Container) Usage() (u Usage, ok bool) {
	select {
	case <-c.done:
		return u, false
	default:
		return c.life.Usage()
	}
}

// native is the life of a container that is a process of this host.
type native struct {
	config    Config
	child     process
	processes *Processes
	// mounts is the container's mount namespace, by which its processes are told
	// from others of a shared pid namespace; nil where the kernel does that.
	mounts *os.File
	// group limits and measures the memory; nil without a budget.
	group   *ControlGroup
	pidfd   *os.File
	copies  sync.WaitGroup
	outputs []output
}

// open watches the child from its first moment on.
func (n *native) open() error {
	// Non-blocking, so that waiting goes through the poller: a blocked thread
	// for each of a thousand containers would be dear.
	if err := unix.SetNonblock(n.child.pidfd, true); err != nil {
		n.child.end()
		closeAll(n.mounts)
		for _, o := range n.outputs {
			o.from.Close()
		}
		return fmt.Errorf("watch process %d: %w", n.child.pid, err)
	}
	n.pidfd = os.NewFile(uintptr(n.child.pidfd), fmt.Sprintf("pidfd-%d", n.child.pid))
	n.processes = NewProcesses(n.child.pid, n.pidfd)
	n.collect()
	return nil
}

// Wait reaps the child, takes in what is left of its output, and tells.
func (n *native) Wait() Exit {
	status := wait(n.pidfd, n.child.pid)
	exit := Exit{Code: status.ExitStatus(), At: time.Now()}
	if status.Signaled() {
		exit.Signal = status.Signal()
		exit.Code = 128 + int(status.Signal())
	}
	n.processes.End()
	if n.mounts != nil {
		KillAllIn(n.mounts)
		n.mounts.Close()
	}
	if n.group != nil {
		exit.OOM = n.group.OutOfMemory()
		_ = n.group.Close() // what stays is in the way of the budget's end, which says so
	}
	n.drain()
	n.pidfd.Close()
	return exit
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
func (n *native) collect() {
	for _, o := range n.outputs {
		n.copies.Go(func() {
			CopyLines(o.to, o.from)
			o.from.Close()
		})
	}
}

func (n *native) drain() {
	for _, o := range n.outputs {
		_ = o.from.SetReadDeadline(time.Now().Add(outputGrace))
	}
	n.copies.Wait()
}
