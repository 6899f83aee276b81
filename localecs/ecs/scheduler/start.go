package scheduler

import (
	"fmt"
	"time"

	"github.com/meshtask/consul-ecs/taskdef"
)

// begin asks for every image, once. Fargate has all images before it starts
// anything.
func (t *Task) begin(now time.Time) {
	if !t.pullStartedAt.IsZero() {
		return
	}
	t.pullStartedAt = now
	for _, c := range t.containers {
		c.pulling = true
		t.act(Pull{Container: c.name, Image: c.image})
	}
}

// pulling reports whether an image is still missing.
func (t *Task) pulling() bool {
	for _, c := range t.containers {
		if c.known == StatusNone {
			return true
		}
	}
	return false
}

func (t *Task) recordPull(name string, now time.Time) {
	c := t.find(name)
	if c == nil || !c.pulling {
		return
	}
	c.pulling = false
	if c.known == StatusNone {
		c.known = StatusPulled
	}
	if !t.pulling() {
		t.pullStoppedAt = now
	}
}

func (t *Task) recordPullFailure(ev PullFailed, now time.Time) {
	c := t.find(ev.Container)
	if c == nil || !c.pulling || c.known == StatusStopped {
		return
	}
	c.pulling = false
	c.reason = prefixed(CannotPull, ev.Reason)
	t.pullStoppedAt = now
	t.stop(StopTaskFailedToStart, c.reason, now)
	t.stopped(c, now)
}

func (t *Task) recordStart(ev Started, now time.Time) {
	c := t.find(ev.Container)
	if c == nil || !c.starting {
		return
	}
	at := orNow(ev.At, now)
	c.starting = false
	c.known = StatusRunning
	c.runStartedAt = at
	if c.startedAt.IsZero() {
		c.startedAt = at
	}
	if c.health != nil {
		c.health.begin(at)
	}
}

func (t *Task) recordStartFailure(ev StartFailed, now time.Time) {
	c := t.find(ev.Container)
	if c == nil || !c.starting {
		return
	}
	c.starting = false
	c.desired = StatusStopped
	if !t.killed { // else it may have failed for that
		c.reason = prefixed("CannotStartContainerError", ev.Reason)
	}
	if c.essential && c.startedAt.IsZero() {
		t.stop(StopTaskFailedToStart, c.reason, now)
	}
	t.stopped(c, now)
}

// waiting reports whether the container stands before its gate.
func (c *container) waiting() bool {
	return c.known == StatusPulled && c.desired == StatusRunning && !c.starting
}

// never returns why a dependency can never be met; empty while all can.
func (c *container) never(now time.Time) string {
	for _, d := range c.dependencies {
		if why := d.never(now); why != "" {
			return why
		}
	}
	return ""
}

// blocked reports whether a dependency keeps a waiting container from starting, and records
// what it waits for.
func (c *container) blocked() bool {
	c.waitsFor = nil
	for _, d := range c.dependencies {
		if !d.met() {
			c.waitsFor = append(c.waitsFor, taskdef.Dependency{ContainerName: d.on.name, Condition: d.condition})
		}
	}
	return len(c.waitsFor) > 0
}

// failDependency drops a container whose condition can never be met: a
// synthetic exit code 143 and no start time.
func (t *Task) failDependency(c *container, why string, now time.Time) {
	code := 143
	c.desired = StatusStopped
	c.exitCode = &code
	c.reason = "CannotStartContainerError: dependency graph: " + why
	if c.essential {
		t.stop(StopTaskFailedToStart, c.reason, now)
	}
	t.stopped(c, now)
}

// never returns why the condition can never hold; empty while it can.
// ECS itself lets some dependents of a container start that never started,
// depending on the order of the definition; here all four conditions fail.
func (d dependency) never(now time.Time) string {
	on := d.on
	if on.neverStarted() {
		return fmt.Sprintf("container %s will never start", on.name)
	}
	if deadline, limited := d.deadline(); limited && !now.Before(deadline) {
		return fmt.Sprintf("container %s was not %s within its start timeout of %s",
			on.name, d.condition, on.startTimeout)
	}
	if d.condition == taskdef.ConditionSuccess && on.known == StatusStopped && !d.met() {
		return fmt.Sprintf("container %s did not exit with 0 (SUCCESS)", on.name)
	}
	return ""
}

// met reports whether the condition holds. A HEALTHY dependency must still run:
// ECS calls a stopped container with a check unhealthy.
func (d dependency) met() bool {
	on := d.on
	switch d.condition {
	case taskdef.ConditionComplete:
		return on.known == StatusStopped && on.exitCode != nil
	case taskdef.ConditionSuccess:
		return on.known == StatusStopped && on.exitCode != nil && *on.exitCode == 0
	case taskdef.ConditionHealthy:
		return on.known == StatusRunning && on.health != nil && on.health.shown.Status == HealthHealthy
	case taskdef.ConditionStart:
		return on.known == StatusRunning || on.known == StatusStopped
	}
	return false
}

// deadline returns when the dependency's startTimeout ends the wait. It does not count for START,
// before the dependency runs, nor once it is stopped; but it does count for a condition that holds
// while another one keeps the container waiting, as in ECS.
func (d dependency) deadline() (time.Time, bool) {
	limited := d.condition != taskdef.ConditionStart && d.on.startTimeout > 0 && d.on.known == StatusRunning
	return d.on.startedAt.Add(d.on.startTimeout), limited
}
