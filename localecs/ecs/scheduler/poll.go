package scheduler

import (
	"slices"
	"time"
)

// looks reports whether the agent acts now. While it polls, an event has to wait for the end of the poll, unless the
// task is killed or its user wants no delay.
func (t *Task) looks(ev Event, now time.Time) bool {
	stop, _ := ev.(StopRequested)
	if t.pollBegan.IsZero() || t.killed || stop.Prompt {
		return true
	}
	if _, tick := ev.(Tick); !tick {
		t.lookBy(now)
	}
	if looks := !t.lookAt.IsZero() && !now.Before(t.lookAt); looks {
		return true
	}
	for _, c := range t.containers {
		if c.waiting() {
			c.blocked() // the view shows what it waits for
		}
	}
	return false
}

// poll begins or continues a poll if a container waits at a gate and nothing is under way. While a start or a pull is,
// the agent acts when it ends, which is why START gates open without delay.
func (t *Task) poll(now time.Time) {
	t.pollBegan, t.lookAt = time.Time{}, time.Time{}
	underWay := func(c *container) bool { return c.known == StatusNone || c.known == StatusPulled && c.starting }
	if t.opts.GatePeriod <= 0 || !slices.ContainsFunc(t.containers, (*container).waiting) ||
		slices.ContainsFunc(t.containers, underWay) {
		return
	}
	t.pollBegan = now
	for _, c := range t.containers {
		for _, at := range c.deadlines() {
			t.lookBy(at)
		}
	}
}

// lookBy makes the agent act at the end of the poll in which something happens, unless it acts before that.
func (t *Task) lookBy(at time.Time) {
	polls := max(1, (at.Sub(t.pollBegan)+t.opts.GatePeriod-1)/t.opts.GatePeriod)
	if end := t.pollBegan.Add(polls * t.opts.GatePeriod); t.lookAt.IsZero() || end.Before(t.lookAt) {
		t.lookAt = end
	}
}
