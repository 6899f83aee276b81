package simulated

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Timing is how long the steps of a task take. The zero Timing takes no time.
type Timing struct {
	// Attach is how long a task is PROVISIONING, Pull how long its images are
	// pulled, Start how long a container needs until it runs.
	Attach, Pull, Start time.Duration
	// Stop is from a container's stop signal to its end; Detach is how long a
	// task is DEPROVISIONING.
	Stop, Detach time.Duration
	// Healthy is how long a task without a health check runs before its service
	// counts it as healthy.
	Healthy time.Duration
}

// LifeOptions are common to all tasks.
type LifeOptions struct {
	Timing    Timing
	Scheduler scheduler.Options
}

// Snapshot is the state of a task after a visible change.
type Snapshot struct {
	At   time.Time
	View scheduler.View
	// Attached means that the task has had its interface, Gone that its resources
	// are released.
	Attached, Gone bool
}

// Task is one simulated task. One goroutine at a time may use it.
type Task struct {
	timing     Timing
	state      *scheduler.Task
	containers map[string]*container

	pending        []pending // in the order in which they were made
	attached, gone bool

	shown     scheduler.View
	snapshots []Snapshot // since Advance was called last
}

// pending is a future event; nil is the end of the task.
type pending struct {
	at    time.Time
	event scheduler.Event
}

type container struct {
	Behaviour
	started time.Time // the current run
}

// New returns a task that starts at now. The error is about a value of Variable.
func New(def *taskdef.TaskDefinition, o LifeOptions, now time.Time) (*Task, error) {
	t := &Task{timing: o.Timing, containers: make(map[string]*container, len(def.ContainerDefinitions))}
	// The scheduler knows a task only when its interface is there.
	t.state = scheduler.New(def, o.Scheduler, now.Add(o.Timing.Attach))
	t.shown = t.state.View()
	var failed error
	for i := range def.ContainerDefinitions {
		c := &def.ContainerDefinitions[i]
		b, err := behaviour(def, c, o.Timing.Stop)
		if err != nil && failed == nil {
			failed = fmt.Errorf("container %s: %w", c.Name, err)
		}
		t.containers[c.Name] = &container{Behaviour: b}
	}
	return t, failed
}

// Next returns when the task has to be advanced again; false when it remains as it is without an
// external event.
func (t *Task) Next() (time.Time, bool) {
	next, _, ok := t.next()
	return next.at, ok
}

func (t *Task) next() (next pending, which int, ok bool) {
	if t.gone {
		return pending{}, -1, false
	}
	which = -1
	for i, p := range t.pending {
		if !ok || p.at.Before(next.at) {
			next, which, ok = p, i, true
		}
	}
	if due, waits := t.state.Next(); waits && (!ok || due.Before(next.at)) {
		next, which, ok = pending{at: due, event: scheduler.Tick{}}, -1, true
	}
	return next, which, ok
}

// Advance applies all events due at now, and returns the task after each visible
// change, oldest first.
func (t *Task) Advance(now time.Time) []Snapshot {
	for {
		next, which, ok := t.next()
		switch {
		case !ok || next.at.After(now):
			snapshots := t.snapshots
			t.snapshots = nil
			return snapshots
		case next.event == nil:
			t.gone = true
			t.snapshots = append(t.snapshots, Snapshot{At: next.at, View: t.shown, Attached: t.attached, Gone: true})
			continue
		case which >= 0:
			t.pending = slices.Delete(t.pending, which, which+1)
		}
		t.apply(next.event, next.at)
	}
}

// Stop requests an orderly stop, and advances. Only the first request counts.
func (t *Task) Stop(code, reason string, now time.Time) []Snapshot {
	before := t.Advance(now)
	t.apply(scheduler.StopRequested{Code: code, Reason: reason}, now)
	return append(before, t.Advance(now)...)
}

func (t *Task) apply(event scheduler.Event, at time.Time) {
	switch e := event.(type) {
	case scheduler.Tick:
		t.arrive(at)
	case scheduler.Exited: // the run is over
		t.pending = slices.DeleteFunc(t.pending, func(p pending) bool {
			exit, ok := p.event.(scheduler.Exited)
			return ok && exit.Container == e.Container
		})
	}
	actions := t.state.Apply(event, at)
	for _, a := range actions {
		t.answer(a, at)
	}
	t.show(at)
}

func (t *Task) arrive(at time.Time) {
	if !t.attached {
		t.attached = true
		t.snapshots = append(t.snapshots, Snapshot{At: at, View: t.shown, Attached: true})
	}
}

func (t *Task) show(at time.Time) {
	view := t.state.View()
	if reflect.DeepEqual(view, t.shown) {
		return
	}
	t.shown = view
	t.snapshots = append(t.snapshots, Snapshot{At: at, View: view, Attached: t.attached})
}

func (t *Task) later(at time.Time, event scheduler.Event) {
	t.pending = append(t.pending, pending{at: at, event: event})
}

func (t *Task) answer(action scheduler.Action, now time.Time) {
	switch a := action.(type) {
	case scheduler.Pull:
		t.later(now.Add(t.timing.Pull), scheduler.PullDone{Container: a.Container})
	case scheduler.Start:
		t.start(a.Container, now.Add(t.timing.Start))
	case scheduler.Signal:
		if c := t.containers[a.Container]; c.StopAfter >= 0 {
			t.exit(a.Container, 0, now.Add(c.StopAfter))
		}
	case scheduler.Kill:
		t.exit(a.Container, killed, now)
	case scheduler.Probe:
		code := 0
		if t.containers[a.Container].unhealthy(now) {
			code = 1
		}
		t.later(now, scheduler.ProbeDone{Container: a.Container, StartedAt: now, Code: code, At: now})
	case scheduler.TaskStopped:
		t.later(now.Add(t.timing.Detach), nil)
	}
}

const killed = 137

func (t *Task) exit(name string, code int, at time.Time) {
	t.later(at, scheduler.Exited{Container: name, Code: code, At: at})
}

func (t *Task) start(name string, at time.Time) {
	c := t.containers[name]
	if c.NoStart != "" {
		t.later(at, scheduler.StartFailed{Container: name, Reason: c.NoStart})
		return
	}
	c.started = at
	t.later(at, scheduler.Started{Container: name, At: at})
	if c.ExitAfter >= 0 {
		t.exit(name, c.ExitCode, at.Add(c.ExitAfter))
	}
}

func (c *container) unhealthy(now time.Time) bool {
	return c.UnhealthyAfter >= 0 && !now.Before(c.started.Add(c.UnhealthyAfter))
}
