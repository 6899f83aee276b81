package cluster

import (
	"context"
	"fmt"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// Freeze stops the processes of a running container that run the program of
// that name, all of them when it is empty: they have their connections and give
// no answers, until end or their death. A stop signal waits for that end as
// well, the kill at stopTimeout does not. A container that is started again
// begins anew. end may be called again, and later.
func (t *Task) Freeze(container, program string) (end func() error, err error) {
	return t.hold(container, program, (*runtime.Container).Freeze)
}

// Slow is Freeze for four fifths of the time, in turns of a quarter of a second.
func (t *Task) Slow(container, program string) (end func() error, err error) {
	return t.hold(container, program, (*runtime.Container).Slow)
}

func (t *Task) hold(container, program string, hold func(*runtime.Container, string) (func(), bool)) (end func() error, err error) {
	c, err := t.alive(container)
	if err != nil {
		return nil, err
	}
	release, ok := hold(c, program)
	if !ok {
		return nil, notRun(container, program)
	}
	return func() error { release(); return nil }, nil
}

// OOM ends a container as the kernel does when its memory is used up.
func (t *Task) OOM(container string) error {
	c, err := t.alive(container)
	if err == nil {
		c.KillForMemory()
	}
	return err
}

// Interrupt takes the task's Fargate Spot capacity away: the task is asked to
// stop as by stop, with the code and the reason that AWS documents
// ("Fargate Spot termination notices"). What has not ended at its stopTimeout is
// killed; on Fargate that is two minutes at most, here too. It is an error when
// the task is to stop already.
func (t *Task) Interrupt() error {
	if v := t.View(); v.DesiredStatus == scheduler.StatusStopped {
		return fmt.Errorf("interrupt task %s: it is already stopping (%s: %s)", t.name, v.StopCode, v.StoppedReason)
	}
	t.stop(scheduler.StopSpotInterruption, scheduler.SpotReason)
	return nil
}

func (t *Task) alive(container string) (*runtime.Container, error) {
	switch c := t.container(container); {
	case c == nil:
		return nil, fmt.Errorf("container %s has not started", container)
	case c.Exited():
		return nil, fmt.Errorf("container %s has ended", container)
	default:
		return c, nil
	}
}

func notRun(container, program string) error {
	if program == "" {
		return fmt.Errorf("container %s has ended", container)
	}
	return fmt.Errorf("no process of container %s runs %s", container, program)
}

// Limit lets the task send and get so many kbit/s in the VPC, each, until end or
// its own end. Metadata and credentials are not limited. The error is
// network.ErrHostNetwork in that mode, a *host.MissingError where the kernel
// cannot.
func (t *Task) Limit(kbits int) (end func() error, err error) {
	return t.impair("limit the link", func(l *network.Task) (func() error, error) { return l.Limit(kbits) })
}

// Partition drops what two tasks send each other, in silence, also what is of
// connections that are there, until end or the end of one of them. The error is
// network.ErrHostNetwork in that mode.
func (c *Cluster) Partition(t, from *Task) (end func() error, err error) {
	other, err := from.ns.Link()
	if err != nil {
		return nil, fmt.Errorf("task %s: partition from %s: %w", t.name, from.name, err)
	}
	return t.impair("partition from "+from.name, func(l *network.Task) (func() error, error) { return l.CutFrom(other) })
}

// PartitionFromServices does so with a task and what StartService has started.
// STS, IAM, the ECS API and names are none of those.
func (c *Cluster) PartitionFromServices(t *Task) (end func() error, err error) {
	return t.impair("partition from services", (*network.Task).CutFromServices)
}

// PartitionFromAll does so with a task and everything else. Only its metadata and
// credentials come through.
func (c *Cluster) PartitionFromAll(t *Task) (end func() error, err error) {
	return t.impair("partition from all", (*network.Task).CutFromAll)
}

func (t *Task) impair(what string, act func(*network.Task) (func() error, error)) (end func() error, err error) {
	link, err := t.ns.Link()
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
	c, err := t.alive(container)
	if err != nil {
		return runtime.CodeFailed, err
	}
	return c.Attach(ctx, s)
}
