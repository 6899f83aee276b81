package runtime

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// outputGrace is how long output is awaited after the end of a container. All its processes are dead then; only a
// descriptor passed to another container can keep a pipe open.
const outputGrace = time.Second

// Exit is how a container ended.
type Exit struct {
	// Code is the program's, 128+n after signal n.
	Code int
	// OOM: the kernel killed a process of it for a memory limit, its own or the task's.
	OOM bool
	// At is when the end was noticed.
	At time.Time
}

// Life is what kinds of containers differ in.
type Life interface {
	// Wait returns once the container has ended and its output is written. It ends
	// the container's processes.Group as soon as it knows.
	Wait() Exit
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
	warnings []string // what the host could not give: one sentence each
	// killedForMemory: KillForMemory was called.
	killedForMemory atomic.Bool
	done            chan struct{}
	exit            Exit
}

// NewContainer returns the container of a group of processes. started and warnings are
// about its program's start. The caller has to call Watch.
func NewContainer(g *Processes, life Life, started time.Time, warnings []string) *Container {
	return &Container{Processes: g, life: life, started: started, warnings: warnings, done: make(chan struct{})}
}

// Started returns the time at which the program was started.
func (c *Container) Started() time.Time { return c.started }

// Watch waits for the container's end, and closes Done. It is called once.
func (c *Container) Watch() {
	c.exit = c.life.Wait()
	c.exit.OOM = c.exit.OOM || c.killedForMemory.Load()
	close(c.done)
}

// Done returns a channel that is closed when the container has ended and its output is written.
func (c *Container) Done() <-chan struct{} { return c.done }

// Exited reports whether Done is closed.
func (c *Container) Exited() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// Exit reports how the container ended; only after Done.
func (c *Container) Exit() Exit {
	<-c.done
	return c.exit
}

// KillForMemory kills the container, reported as if the kernel had killed for a memory limit.
func (c *Container) KillForMemory() {
	c.killedForMemory.Store(true)
	c.Kill()
}

// Usage returns the container's at this moment; ok is false where the host does not
// measure it, and once the container has ended.
func (c *Container) Usage() (u Usage, ok bool) {
	if c.Exited() {
		return u, false
	}
	return c.life.Usage()
}

type native struct {
	config    stageConfig
	child     process
	processes *Processes
	// mounts is the container's mount namespace, which distinguishes its processes
	// from others of a shared pid namespace; nil where the kernel does that.
	mounts *os.File
	// group limits and measures the memory; nil without a budget.
	group   *ControlGroup
	copies  sync.WaitGroup
	outputs []output
}

// Wait reaps the child, reads the rest of its output, and reports its exit.
func (n *native) Wait() Exit {
	_ = awaitEnd(n.child.pidfd) // a thread for each of a thousand containers would cost much
	exit := Exit{Code: exitCode(reapChild(n.child.pid)), At: time.Now()}
	n.processes.End()
	if n.mounts != nil {
		killAllIn(n.mounts)
		n.mounts.Close()
	}
	if n.group != nil {
		exit.OOM = n.group.outOfMemory()
		_ = n.group.Close() // what stays makes closing the budget fail
	}
	n.drain()
	n.child.pidfd.Close()
	return exit
}

// reapChild returns the status of a child once it has ended.
func reapChild(pid int) (status unix.WaitStatus) {
	for {
		if _, err := unix.Wait4(pid, &status, 0, nil); !errors.Is(err, unix.EINTR) {
			return status
		}
	}
}

// awaitEnd waits for the end of a process, which the non-blocking pidfd is of. The
// error means that the file was closed.
func awaitEnd(pidfd *os.File) error {
	conn, err := pidfd.SyscallConn()
	if err != nil {
		return err
	}
	return conn.Read(readable)
}

func readable(fd uintptr) bool {
	n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return n > 0
}

// CodeKilled is the exit code of what SIGKILL has ended.
const CodeKilled = 128 + int(unix.SIGKILL)

// exitCode returns a process's exit code, 128+n after signal n.
func exitCode(status unix.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

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
