package scenario

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/meshtask/consul-ecs/localecs/chaos"
	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
)

// ErrMissed is about a fault that came too early or too late for what it is
// about: a task, a container or a program that is not there.
var ErrMissed = errors.New("there was nothing to disturb")

// Server is the Consul server, as infra.Running is one.
type Server interface {
	Down() (up func() error, err error)
	Freeze() (end func() error, err error)
	Slow() (end func() error, err error)
}

// Acts make faults of a run begin and end.
type Acts struct {
	Cluster *cluster.Cluster
	// Tasks are told what will be no surprise.
	Tasks  *Roster
	Server Server
	// Seed draws the requests of a share.
	Seed uint64
}

// Begin lets a fault begin. end is nil for what is over in a moment.
func (a Acts) Begin(f chaos.Fault) (end func() error, err error) {
	a.Foresee(f)
	switch {
	case f.Endpoint != nil:
		over := a.Cluster.Disturb(*f.Endpoint, a.Seed)
		return func() error { over(); return nil }, nil
	case f.Server == chaos.Down:
		return a.Server.Down()
	case f.Server == chaos.Frozen:
		return a.Server.Freeze()
	case f.Server == chaos.Slowed:
		return a.Server.Slow()
	}
	return a.task(f)
}

// Foresee notes what will be no surprise after a fault: that a container has to
// be killed, and that ECS ends a task.
func (a Acts) Foresee(f chaos.Fault) {
	if f.Spot != nil {
		a.Tasks.MayEnd(f.Spot.Task)
	}
	if p := f.Process(); p != nil && f.Slow == nil { // what is slow ends, too
		a.Tasks.MayKill(p.Task, p.Container)
	}
}

// task lets a fault of a task begin.
func (a Acts) task(f chaos.Fault) (end func() error, err error) {
	name := f.Tasks()[0]
	t := a.Tasks.Task(name).Task
	if t == nil {
		return nil, fmt.Errorf("%w: task %s has not started", ErrMissed, name)
	}
	switch {
	case f.Partition != nil:
		end, err = a.partition(t, f.Partition.From)
	case f.Link != nil:
		end, err = t.Limit(f.Link.KBits)
	default:
		end, err = processes(t, f)
	}
	// Processes come and go; a network lasts as long as its task.
	if err != nil && (t.View().KnownStatus == scheduler.StatusStopped || f.Partition == nil && f.Link == nil) {
		err = fmt.Errorf("%w: %w", ErrMissed, err)
	}
	return end, err
}

// processes does something to processes of a task. They may not be there.
func processes(t *cluster.Task, f chaos.Fault) (end func() error, err error) {
	switch {
	case f.Kill != nil:
		return nil, t.Kill(f.Kill.Container, f.Kill.Process, syscall.SIGKILL)
	case f.OOM != nil:
		return nil, t.OOM(f.OOM.Container)
	case f.Freeze != nil:
		return t.Freeze(f.Freeze.Container, f.Freeze.Process)
	case f.Slow != nil:
		return t.Slow(f.Slow.Container, f.Slow.Process)
	}
	return nil, t.Interrupt()
}

func (a Acts) partition(t *cluster.Task, from string) (end func() error, err error) {
	switch from {
	case chaos.Server:
		return a.Cluster.PartitionFromServices(t)
	case chaos.All:
		return a.Cluster.PartitionFromAll(t)
	}
	other := a.Tasks.Task(from).Task
	if other == nil {
		return nil, fmt.Errorf("%w: task %s has not started", ErrMissed, from)
	}
	return a.Cluster.Partition(t, other)
}
