package scheduler

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/taskdef"
)

// Task is the state of one task. It is a plain value behind a pointer: one
// goroutine at a time may use it.
type Task struct {
	opts       Options
	created    time.Time
	containers []*container

	desired, known       string
	stopCode, stopReason string
	// killed: no container gets a stop signal any more.
	killed bool

	pullStartedAt, pullStoppedAt  time.Time
	startedAt, stoppingAt         time.Time
	executionStoppedAt, stoppedAt time.Time

	// pollBegan is when the agent began to poll; zero while it acts on every event. lookAt is when
	// it acts on what happened since; zero while nothing did.
	pollBegan, lookAt time.Time

	actions []Action // collected during one Apply
}

// New returns the task of a definition that Validate accepts. It asks for its
// first Tick at now. Edges to containers that do not exist are ignored.
func New(def *taskdef.TaskDefinition, opts Options, now time.Time) *Task {
	t := &Task{opts: opts, created: now, desired: StatusRunning, known: StatusNone}
	for i := range def.ContainerDefinitions {
		t.containers = append(t.containers, newContainer(&def.ContainerDefinitions[i], opts))
	}
	for i, c := range t.containers {
		for _, e := range def.ContainerDefinitions[i].Edges() {
			if on := t.find(e.To); on != nil {
				c.dependencies = append(c.dependencies, dependency{on: on, condition: e.Condition})
				on.dependents = append(on.dependents, c)
			}
		}
	}
	return t
}

// Apply takes one event at the time now, which never goes back, and returns
// what is to be done about it. Events of unknown containers, and any event
// after TaskStopped, change nothing.
func (t *Task) Apply(ev Event, now time.Time) []Action {
	if t.known == StatusStopped {
		return nil
	}
	t.record(ev, now)
	if t.looks(ev, now) {
		for t.settle(now) {
		}
		// Only now: a container must not start in the moment its task stops.
		t.move(now)
		t.kill(now)
		t.poll(now)
	}
	t.probe(now)
	t.aggregate(now)
	actions := t.actions
	t.actions = nil
	return actions
}

func (t *Task) record(ev Event, now time.Time) {
	switch ev := ev.(type) {
	case Tick:
		t.begin(now)
	case PullDone:
		t.recordPull(ev.Container, now)
	case PullFailed:
		t.recordPullFailure(ev, now)
	case Started:
		t.recordStart(ev, now)
	case StartFailed:
		t.recordStartFailure(ev, now)
	case Exited:
		t.recordExit(ev, now)
	case ProbeDone:
		if c := t.find(ev.Container); c != nil && c.known == StatusRunning && c.health != nil {
			c.health.record(ev, c.runStartedAt, now)
		}
	case StopRequested:
		code := cmp.Or(ev.Code, StopUserInitiated)
		t.stop(code, ev.Reason, now)
		t.killed = t.killed || ev.Kill
	}
}

// settle drops containers that will never run, and reports whether it dropped
// one: others may have waited for it, or the task may stop with it.
func (t *Task) settle(now time.Time) bool {
	changed := false
	for _, c := range t.containers {
		switch {
		case c.known == StatusStopped || c.known == StatusRunning || c.starting:
		case c.desired == StatusStopped:
			// It never ran: no signal, no exit code, no start time.
			t.stopped(c, now)
			changed = true
		case !t.pulling():
			if why := c.never(now); why != "" {
				t.failDependency(c, why, now)
				changed = true
			}
		}
	}
	return changed
}

// move starts what may start and signals what may stop.
func (t *Task) move(now time.Time) {
	for _, c := range t.containers {
		switch {
		case c.waiting() && !t.pulling() && !c.blocked():
			c.starting = true
			t.act(Start{Container: c.name})
		case c.running() && c.desired == StatusStopped && !c.signalled() && !t.killed && t.mayStop(c):
			c.signalledAt = now
			t.act(Signal{Container: c.name})
		}
	}
}

// aggregate derives the task's known status: RUNNING when every container is
// RUNNING or STOPPED, STOPPED when all are STOPPED, and never back.
func (t *Task) aggregate(now time.Time) {
	settled, alive := true, false
	for _, c := range t.containers {
		settled = settled && (c.known == StatusRunning || c.known == StatusStopped)
		alive = alive || c.known != StatusStopped
	}
	if settled && alive && t.known == StatusNone {
		t.known = StatusRunning
		t.startedAt = now
	}
	if !alive {
		t.known = StatusStopped
		t.stoppedAt = now
		t.act(TaskStopped{})
	}
}

// Next returns when the task wants its next Tick; false when it waits for
// events only. After a Tick, Next is later than that Tick.
func (t *Task) Next() (time.Time, bool) {
	if t.known == StatusStopped {
		return time.Time{}, false
	}
	var due []time.Time
	if t.pullStartedAt.IsZero() {
		due = append(due, t.created)
	}
	for _, c := range t.containers {
		due = append(due, c.due()...)
		if t.pollBegan.IsZero() {
			due = append(due, c.deadlines()...)
		}
	}
	if !t.lookAt.IsZero() {
		due = append(due, t.lookAt)
	}
	if len(due) == 0 {
		return time.Time{}, false
	}
	return slices.MinFunc(due, time.Time.Compare), true
}

// View returns how the task looks from outside.
func (t *Task) View() View {
	v := View{
		DesiredStatus: t.desired, KnownStatus: t.known,
		StopCode: t.stopCode, StoppedReason: t.stopReason,
		PullStartedAt: t.pullStartedAt, PullStoppedAt: t.pullStoppedAt,
		StartedAt: t.startedAt, StoppingAt: t.stoppingAt,
		ExecutionStoppedAt: t.executionStoppedAt, StoppedAt: t.stoppedAt,
	}
	for _, c := range t.containers {
		v.Containers = append(v.Containers, c.view())
	}
	return v
}

func (t *Task) find(name string) *container {
	for _, c := range t.containers {
		if c.name == name {
			return c
		}
	}
	return nil
}

func (t *Task) act(a Action) { t.actions = append(t.actions, a) }

// prefixed puts an ECS error name in front of a reason unless it is there.
func prefixed(name, reason string) string {
	if strings.HasPrefix(reason, name) {
		return reason
	}
	return name + ": " + reason
}

// orNow replaces an unknown time.
func orNow(at, now time.Time) time.Time {
	if at.IsZero() {
		return now
	}
	return at
}
