package scheduler

import (
	"slices"
	"time"
)

// stop turns every desired status to STOPPED in one moment. The first call
// decides code and reason.
func (t *Task) stop(code, reason string, now time.Time) {
	if t.desired == StatusStopped {
		return
	}
	t.desired = StatusStopped
	t.stopCode, t.stopReason = code, reason
	t.stoppingAt = now
	for _, c := range t.containers {
		c.desired = StatusStopped
	}
}

// stopped marks a container STOPPED. With an essential one the task stops; a
// non-essential one keeps its desired status RUNNING.
func (t *Task) stopped(c *container, now time.Time) {
	c.known = StatusStopped
	if !c.essential {
		return
	}
	if t.executionStoppedAt.IsZero() {
		t.executionStoppedAt = now
	}
	t.stop(StopEssentialContainerExited, EssentialExited, now)
}

func (t *Task) recordExit(ev Exited, now time.Time) {
	c := t.find(ev.Container)
	if c == nil || (c.known != StatusRunning && !c.starting) {
		return
	}
	at := orNow(ev.At, now)
	if c.starting {
		// It ended before its start was reported.
		t.recordStart(Started{Container: c.name, At: at}, now)
	}
	code := ev.Code
	c.exitCode = &code
	c.finishedAt = at
	if ev.OOM {
		c.reason = OutOfMemory
	}
	if c.mayRestart(ev.Code, at) {
		t.restart(c)
		return
	}
	t.stopped(c, now)
}

// restart starts a container again at once. It stays RUNNING meanwhile and
// its health begins anew.
func (t *Task) restart(c *container) {
	c.restarts++
	c.starting = true
	c.reason = ""
	if c.health != nil {
		c.health.reset()
	}
	t.act(Start{Container: c.name})
}

// mayStop reports whether a container may get its stop signal: unless all are
// stopped at once, only when everything that depends on it is STOPPED. Direct edges suffice,
// since a dependent cannot stop before its own dependents.
func (t *Task) mayStop(c *container) bool {
	return t.opts.AtOnce || !slices.ContainsFunc(c.dependents, func(d *container) bool {
		return d.known != StatusStopped
	})
}

// kill ends the containers whose stop timeout is over; all that run once the task
// is killed.
func (t *Task) kill(now time.Time) {
	for _, c := range t.containers {
		late := c.signalled() && !now.Before(c.signalledAt.Add(c.stopTimeout))
		if !c.running() || c.killed || !late && !t.killed {
			continue
		}
		c.killed = true
		if late {
			c.killedAt = now
		}
		t.act(Kill{Container: c.name})
	}
}
