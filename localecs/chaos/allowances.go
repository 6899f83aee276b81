package chaos

import (
	"slices"
	"time"
)

// Allowance is a loss that an event of the schedule explains.
type Allowance struct {
	What What
	// Task is the task that has the loss; empty is any task.
	Task string
	// From and To are the window, both included.
	From, To time.Duration
	// Rule explains it.
	Rule Rule
}

// Allowances returns what the schedule may cost, by the rules. The delays of updates come
// first: other windows depend on them.
func Allowances(s Schedule, w Topology) []Allowance {
	var all []Allowance
	rules := Rules()
	for _, dependent := range []bool{false, true} {
		for _, e := range s.Events {
			task, on := e.target(w, s)
			for _, r := range rules {
				if r.UntilUpdated != dependent || r.On != "" && r.On != on || !r.about(e, task, w) ||
					!r.together(e, s, w) {
					continue
				}
				allowance := r.allowance(e)
				if dependent {
					if by := after(all, e.At, allowance.To, updateBound,
						delaysUpdates(w, allowance.Task)); by > allowance.To &&
						by != forever {
						allowance.To = by + connecting // by then its network may be gone
					}
					if e.For > 0 {
						allowance.To = min(allowance.To, e.End()+r.Late)
					}
				}
				all = append(all, allowance)
			}
		}
	}
	return all
}

// about reports whether the rule is about an event that hits the task.
func (r Rule) about(e Event, task Task, w Topology) bool {
	switch {
	case r.Kind != e.Kind(), e.For < r.Longer:
		return false
	case r.Below > 0 && e.Fault.Link.KBits >= r.Below:
		return false
	case r.At == "":
		return true
	case r.At == Entry:
		between := e.Fault != nil && e.Fault.Partition != nil && e.Fault.Partition.From == w.entry()
		return task.Entry || between
	}
	return !task.Entry
}

// together reports whether what the rule wants beside the event happens, too.
func (r Rule) together(e Event, s Schedule, w Topology) bool {
	if r.Alone && !slices.ContainsFunc(s.Events, func(o Event) bool { return silent(o, e, s, w) }) {
		return false
	}
	return r.With == "" || slices.ContainsFunc(s.Events, func(o Event) bool {
		_, on := o.target(w, s)
		it := on == string(r.With) || r.With == Agent && isAgent(on)
		return o.kills() && it && slices.Equal(o.tasks(), e.tasks()) && (o.At-e.At).Abs() <= checkTTL
	})
}

// leading is how long a server that starts again takes until it leads, and leaving
// how long a task may take to be gone.
const (
	leading = 3 * time.Second
	leaving = 30 * time.Second
)

// silent reports whether an agent may not answer a server that starts again at the end
// of down: it cannot, or its task has ended and the server does not know.
func silent(e, down Event, s Schedule, w Topology) bool {
	_, on := e.target(w, s)
	started, still := e.At <= down.End()+leading, e.End() >= down.End()
	switch e.Kind() {
	case "partition":
		return started && still && on != anotherTask
	case "freeze", "slow":
		return started && still && isAgent(on)
	case "kill", "oom", "stop", "spot":
		return started && e.At >= down.At-leaving && on != string(HealthSync)
	}
	return false
}

func (r Rule) allowance(e Event) Allowance {
	x := Allowance{What: r.What, From: e.At, To: e.End() + r.Late, Rule: r}
	if names := e.tasks(); len(names) > 0 && !r.AllTasks {
		x.Task = names[0]
	}
	if r.Alone {
		x.From = e.End()
	}
	if r.AtMost > 0 && (x.To > e.At+r.AtMost || r.What == TaskEnds) {
		x.To = e.At + r.AtMost
	}
	if r.Forever {
		x.To = forever
	}
	return x
}

// updatedBy returns when callers know at the latest what happened to a task.
func updatedBy(all []Allowance, w Topology, at, bound time.Duration, task string) time.Duration {
	return after(all, at, at+bound, bound, delaysUpdates(w, task))
}

// delaysUpdates selects the allowances that delay the updates about a task to its callers.
func delaysUpdates(w Topology, task string) func(Allowance) bool {
	return func(e Allowance) bool {
		return e.What == UpdatesLate && (e.Task == "" || e.Task == task || e.Task == w.entry())
	}
}

// after returns when something that is due at by has happened at the latest: bound
// after each allowance that it meets since at.
func after(all []Allowance, at, by, bound time.Duration, counts func(Allowance) bool) time.Duration {
	for again := true; again && by != forever; {
		again = false
		for _, e := range all {
			if !counts(e) || e.From > by || e.To < at {
				continue
			}
			if e.To == forever {
				return forever
			}
			if e.To+bound > by {
				by, again = e.To+bound, true
			}
		}
	}
	return by
}

// allowed reports whether there is an allowance for a loss of a task between two moments.
func allowed(all []Allowance, what What, task string, from, to time.Duration) bool {
	return slices.ContainsFunc(all, func(e Allowance) bool {
		return e.What == what && (e.Task == "" || e.Task == task) && e.From <= to && e.To >= from
	})
}
