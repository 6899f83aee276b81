package cluster

import (
	"context"
	"fmt"
	"syscall"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// Freeze stops the processes of a running container that run the program of that name, all of them when it is empty:
// they have their connections and give no answers, until end or their death. A stop signal waits for that end as well,
// the kill at stopTimeout does not. A container that is started again begins anew. end may be called again, and later.
func (t *Task) Freeze(container, program string) (end func() error, err error) {
	return t.hold(container, program, (*runtime.Container).Freeze)
}

// Slow freezes the processes for four fifths of each quarter of a second, as Freeze does.
func (t *Task) Slow(container, program string) (end func() error, err error) {
	return t.hold(container, program, (*runtime.Container).Slow)
}

// holdFunc keeps the processes of a container that run a program from running. ok is false if there are none.
type holdFunc func(c *runtime.Container, program string) (release func(), ok bool)

func (t *Task) hold(container, program string, hold holdFunc) (end func() error, err error) {
	c, err := t.containers.running(container)
	if err != nil {
		return nil, err
	}
	release, ok := hold(c, program)
	if !ok {
		return nil, notRun(container, program)
	}
	return func() error { release(); return nil }, nil
}

// Kill sends a signal into a running container, as kill(1) does: to every process of the program with that name (the
// last element of its path), or to the container's first process when program is empty. It is an error when there is
// none.
func (t *Task) Kill(container, program string, s syscall.Signal) error {
	c, err := t.containers.running(container)
	switch {
	case err != nil:
		return err
	case program == "":
		return c.Signal(s)
	case c.SignalProgram(program, s) == 0:
		return notRun(container, program)
	}
	return nil
}

// KillAll ends the task as the death of its machine does: every container is killed without a stop signal, and nothing
// starts any more. A task that has stopped is no error.
func (t *Task) KillAll() {
	t.send(scheduler.StopRequested{
		Code: scheduler.StopEssentialContainerExited, Reason: scheduler.EssentialExited, Kill: true,
	})
}

// OOM ends a container as the kernel does when its memory is used up.
func (t *Task) OOM(container string) error {
	c, err := t.containers.running(container)
	if err == nil {
		c.KillForMemory()
	}
	return err
}

// Interrupt takes the task's Fargate Spot capacity away: the task is asked to stop as by stop, with the code and the
// reason that AWS documents ("Fargate Spot termination notices"). What has not ended at its stopTimeout is killed; on
// Fargate that is two minutes at most, here too. It is an error when the task is to stop already.
func (t *Task) Interrupt() error {
	if v := t.View(); v.DesiredStatus == scheduler.StatusStopped {
		return fmt.Errorf("interrupt task %s: it is already stopping (%s: %s)", t.name, v.StopCode, v.StoppedReason)
	}
	t.stop(scheduler.StopSpotInterruption, scheduler.SpotReason)
	return nil
}

func notRun(container, program string) error {
	if program == "" {
		return fmt.Errorf("container %s has ended", container)
	}
	return fmt.Errorf("no process of container %s runs %s", container, program)
}

// Limit lets the task send and get so many kbit/s in the VPC, each, until end or its own end. Metadata and credentials
// are not limited. The error is network.ErrHostNetwork in that mode, a *host.MissingError where the kernel cannot.
func (t *Task) Limit(kbits int) (end func() error, err error) {
	return t.impair("limit the link", func(l *network.Task) (func() error, error) { return l.Limit(kbits) })
}

// Partition drops what two tasks send each other, in silence, also what is of connections that are there, until end or
// the end of one of them. The error is network.ErrHostNetwork in that mode.
func (c *Cluster) Partition(t, from *Task) (end func() error, err error) {
	other, err := from.resources.ns.Link()
	if err != nil {
		return nil, fmt.Errorf("task %s: partition from %s: %w", t.name, from.name, err)
	}
	cut := func(l *network.Task) (func() error, error) { return l.CutFrom(other) }
	return t.impair("partition from "+from.name, cut)
}

// PartitionFromServices does so with a task and what StartService has started.
// STS, IAM, the ECS API and names are none of those.
func (c *Cluster) PartitionFromServices(t *Task) (end func() error, err error) {
	return t.impair("partition from services", (*network.Task).CutFromServices)
}

// PartitionFromAll does so with a task and everything else. Only its metadata and credentials come through.
func (c *Cluster) PartitionFromAll(t *Task) (end func() error, err error) {
	return t.impair("partition from all", (*network.Task).CutFromAll)
}

func (t *Task) impair(what string, act func(*network.Task) (func() error, error)) (end func() error, err error) {
	link, err := t.resources.ns.Link()
	if err == nil {
		end, err = act(link)
	}
	if err != nil {
		return nil, fmt.Errorf("task %s: %s: %w", t.name, what, err)
	}
	return end, nil
}

// Attach runs a process in a running container, as runtime.Container.Attach does.
func (t *Task) Attach(ctx context.Context, container string, s runtime.Session) (code int, err error) {
	c, err := t.containers.running(container)
	if err != nil {
		return runtime.CodeFailed, err
	}
	return c.Attach(ctx, s)
}
