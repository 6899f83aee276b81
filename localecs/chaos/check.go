package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Violation is an invariant that a run has broken.
type Violation struct {
	// Invariant is its name. Task is the task concerned; empty for all.
	Invariant, Task string
	// At is the time since the start of the schedule, Text what was observed.
	At   time.Duration
	Text string
}

// The invariants.
const (
	// NoRequestFails: no request fails without an allowance.
	NoRequestFails = "no request fails"
	// NoneUnable: no instance that cannot serve stays in the traffic.
	NoneUnable = "no instance in traffic that cannot serve"
	// Latched: no instance is in the traffic after its TERM.
	Latched = "no instance in traffic after its TERM"
	// NothingLeft: no token or service is left after the bound.
	NothingLeft = "nothing left"
	// Serves: a task that starts or was disrupted is in the traffic within a bound.
	Serves = "every task serves again"
	// NoUnexplainedEnd: no instance leaves the traffic, and no task ends, without a
	// reason.
	NoUnexplainedEnd = "nothing ends without a cause"
)

// String describes the violation in a line.
func (v Violation) String() string {
	return strings.TrimSpace(fmt.Sprintf("%.2fs %s", v.At.Seconds(), v.Task)) + ": " + v.Invariant + ": " + v.Text
}

// Verdict is the result of Check.
type Verdict struct {
	// Violations are sorted by time.
	Violations []Violation
	// Allowed counts the lost requests that the rules explain, by their names.
	Allowed map[string]int
}

// lateUpdate is the name of the explanation of a request to a task that had ended
// before its callers could know.
const lateUpdate = "stop: the update about its end was late"

// Check names the invariants that the run has broken without an allowance.
func Check(s Schedule, w Topology, allowances []Allowance, o Observed) Verdict {
	j := &checker{topology: w, schedule: s, seen: o, allowances: allowances, allowed: map[string]int{}}
	j.requests()
	for _, l := range o.Tasks {
		j.ends(l)
		j.unable(l)
		j.latched(l)
		j.serves(l)
		j.left(l)
	}
	slices.SortStableFunc(j.found, func(a, b Violation) int { return cmp.Compare(a.At, b.At) })
	return Verdict{j.found, j.allowed}
}

type checker struct {
	topology   Topology
	schedule   Schedule
	seen       Observed
	allowances []Allowance
	found      []Violation
	allowed    map[string]int
}

func (j *checker) report(invariant, task string, at time.Duration, format string, args ...any) {
	j.found = append(j.found, Violation{invariant, task, at, fmt.Sprintf(format, args...)})
}

// updatedBy returns until when callers are notified at the latest, on this machine.
func (j *checker) updatedBy(at, bound time.Duration, task string) time.Duration {
	by := updatedBy(j.allowances, j.topology, at, bound, task)
	if by == forever {
		return by
	}
	return by + j.seen.slack(at, by)
}

// requests reports failed requests without an allowance, which is a fault of the
// schedule, or a task that ended while updates were late.
func (j *checker) requests() {
	for _, r := range j.seen.Requests {
		if r.Error == "" {
			continue
		}
		slack := j.seen.slack(r.Start, r.End)
		if e, ok := allowed(j.allowances, RequestFails, "", r.Start-slack, r.End); ok {
			j.allowed[e.Rule.name()]++
			continue
		}
		if j.unaware(r) {
			j.allowed[lateUpdate]++
			continue
		}
		j.report(NoRequestFails, "", r.Start, "after %s: %s", (r.End - r.Start).Round(time.Millisecond),
			strings.TrimSpace(r.Error))
	}
}

// unaware reports whether the request met a task that had ended, of which its callers
// could not know: updates were late, not only under way. A task answers every caller
// until its application has stopped.
func (j *checker) unaware(r Request) bool {
	for _, l := range j.seen.Tasks {
		if l.Term == Never || j.silent(l)-updateBound-j.seen.slack(r.Start, r.End) > r.End {
			continue
		}
		late := updatedBy(j.allowances, j.topology, l.Term, updateBound, l.Task) > l.Term+updateBound
		if late && r.Start-connecting <= j.updatedBy(l.Term, updateBound, l.Task) {
			return true
		}
	}
	return false
}

// silent returns when an application of the task has ended, or is UNHEALTHY for the rest of its life;
// Never when none has.
func (j *checker) silent(l TaskLifetime) time.Duration {
	since := Never
	for _, u := range j.seen.unable(l.Task) {
		application := slices.ContainsFunc(j.schedule.Task(j.topology, l.Task).Containers, func(c Container) bool {
			return c.Name == u.container && c.Role == Application
		})
		if application && u.to == Never {
			since = min(since, u.from)
		}
	}
	return max(since, l.Term)
}

// ends reports tasks that end, or leave the traffic, without a reason.
func (j *checker) ends(l TaskLifetime) {
	if _, ok := allowed(j.allowances, TaskEnds, l.Task, l.Term-j.seen.slack(l.Term, l.Term),
		l.Term); l.Term < j.seen.Healed && !ok {
		j.report(NoUnexplainedEnd, l.Task, l.Term, "the task stops unexpectedly%s", j.because(l))
	}
	for _, in := range j.seen.inTraffic(l.Task) {
		if in.to >= min(l.Term, j.seen.Healed) {
			continue
		}
		if _, ok := allowed(j.allowances, OutOfTraffic, l.Task, in.to-j.seen.slack(in.to, in.to), in.to); !ok {
			j.report(NoUnexplainedEnd, l.Task, in.to, "Consul ceases to send it traffic")
		}
	}
}

// because names the container that ended first.
func (j *checker) because(l TaskLifetime) string {
	for _, u := range j.seen.unable(l.Task) {
		if u.from <= l.Term+time.Second {
			return ": " + u.why
		}
	}
	return ""
}

// unable reports instances that are in the traffic and cannot serve.
func (j *checker) unable(l TaskLifetime) {
	for _, u := range j.seen.unable(l.Task) {
		if u.from >= l.Term {
			continue // that is for latched
		}
		by := j.updatedBy(u.from, healthBound, l.Task)
		for _, in := range j.seen.inTraffic(l.Task) {
			if from := max(in.from, by); from < min(in.to, u.to, l.Term, j.seen.Ended) && in.to > u.from {
				j.report(NoneUnable, l.Task, from, "%s at %.2fs, and Consul sends it traffic until %s", u.why,
					u.from.Seconds(), moment(in.to))
			}
		}
	}
}

// latched reports instances that are in the traffic after their TERM.
func (j *checker) latched(l TaskLifetime) {
	if l.Term == Never {
		return
	}
	by := j.updatedBy(l.Term, healthBound, l.Task)
	for _, in := range j.seen.inTraffic(l.Task) {
		if from := max(in.from, by); from < min(in.to, j.seen.Ended) {
			j.report(Latched, l.Task, from,
				"it was asked to stop at %.2fs, and Consul sends it traffic from %.2fs until %s", l.Term.Seconds(),
				in.from.Seconds(), moment(in.to))
		}
	}
}

// serves reports tasks that do not enter the traffic in time, or are not in it
// after all faults have ended.
func (j *checker) serves(l TaskLifetime) {
	in := j.seen.inTraffic(l.Task)
	late := func(e Allowance) bool {
		return (e.What == StartsLate || e.What == UpdatesLate || e.What == OutOfTraffic) &&
			(e.Task == "" || e.Task == l.Task || e.Task == j.topology.entry())
	}
	by := after(j.allowances, l.Started, l.Started+serveBound, serveBound, late)
	if by != forever {
		by += j.seen.slack(l.Started, by)
	}
	end := min(l.Term, j.seen.Healed)
	if first := append(in, interval{forever, forever})[0].from; first > by && by < end {
		j.report(Serves, l.Task, by, "started at %.2fs, it is in traffic at %s", l.Started.Seconds(), moment(first))
		return
	}
	there := slices.ContainsFunc(in, func(s interval) bool { return s.from <= j.seen.Healed && s.to >= j.seen.Healed })
	if _, gone := allowed(j.allowances, OutOfTraffic, l.Task, j.seen.Healed, j.seen.Healed); l.Term >= j.seen.Healed &&
		!there && !gone {
		j.report(Serves, l.Task, j.seen.Healed, "it is not in traffic after all faults have ended")
	}
}

// left reports what a task has left in Consul after its end.
func (j *checker) left(l TaskLifetime) {
	for _, left := range j.seen.Left {
		if left.Task != l.Task || l.Stopped == Never {
			continue
		}
		// The stop timeout bounds the attempts to log out and to leave.
		reachable, away := j.reachable(l)
		by := max(l.Stopped, reachable)
		if by != forever {
			by += Bound(left.What) + j.seen.slack(l.Term, l.Stopped)
		}
		_, ok := allowed(j.allowances, left.What, l.Task, 0, l.Stopped)
		ok = ok || (left.What == ServiceToken || left.What == ClientToken) && j.unanswered(l)
		ok = ok || left.What == AgentFails && (away || j.leaveLost(l)) || reachable > l.Term+logOutBound
		if left.Gone <= by || ok || j.seen.Ended < by {
			continue
		}
		j.report(NothingLeft, l.Task, by, "%s, which was stopped at %.2fs: %s", left.Name, l.Stopped.Seconds(),
			gone(left.Gone))
	}
}

// leaveLost reports whether the servers may not be notified that the task's agent has left.
// When all leave at once, no agent may remain to pass that on.
func (j *checker) leaveLost(l TaskLifetime) bool {
	_, lost := allowed(j.allowances, LeaveLost, l.Task, l.Term, l.Stopped)
	return lost || l.Term >= j.seen.Healed
}

// unanswered reports whether a login of the task may have had no answer: those at
// its start, and of an agent that was started again.
func (j *checker) unanswered(l TaskLifetime) bool {
	logins := []interval{{l.Started, l.Started + serveBound}}
	if in := j.seen.inTraffic(l.Task); len(in) > 0 {
		logins[0].to = min(logins[0].to, in[0].from)
	}
	for _, e := range j.allowances {
		if e.What == AgentFails && e.Task == l.Task {
			logins = append(logins, interval{e.From, e.From + serveBound})
		}
	}
	return slices.ContainsFunc(logins, func(s interval) bool {
		_, ok := allowed(j.allowances, LoginToken, l.Task, s.from, s.to)
		return ok
	})
}

// reachable returns when the servers were reachable again at the latest, after they
// were not while the task ended; away reports that there was such a time. An agent
// tries once to leave.
func (j *checker) reachable(l TaskLifetime) (by time.Duration, away bool) {
	by = l.Term
	for _, e := range j.allowances {
		if e.What == Unreachable && (e.Task == "" || e.Task == l.Task) && e.From <= l.Stopped && e.To >= l.Term {
			by, away = max(by, e.To), true
		}
	}
	return by, away
}

func gone(at time.Duration) string {
	if at == Never {
		return "still there at the end"
	}
	return fmt.Sprintf("gone at %.2fs", at.Seconds())
}

func moment(at time.Duration) string {
	if at == forever {
		return "the end"
	}
	return fmt.Sprintf("%.2fs", at.Seconds())
}
