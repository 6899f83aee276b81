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
	// MostJudged: at least LeastJudged of the requests would be violations if they failed.
	MostJudged = "most requests are judged"
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
	// Judged is the share of the requests during the schedule that no rule would explain if they failed.
	Judged float64
}

// lateUpdate is the name of the explanation of a request to a task that had ended
// before its callers could know.
const lateUpdate = "stop: the update about its end was late"

// Check names the invariants that the run has broken without an allowance.
func Check(s Schedule, w Topology, allowances []Allowance, o Observed) Verdict {
	o.Requests = slices.SortedStableFunc(slices.Values(o.Requests),
		func(a, b Request) int { return cmp.Compare(a.Start, b.Start) })
	j := &checker{topology: w, schedule: s, seen: o, allowances: allowances, allowed: map[string]int{}}
	judged := j.requests()
	for _, l := range o.Tasks {
		j.ends(l)
		j.unable(l)
		j.latched(l)
		j.serves(l)
		j.left(l)
	}
	slices.SortStableFunc(j.found, func(a, b Violation) int { return cmp.Compare(a.At, b.At) })
	return Verdict{j.found, j.allowed, judged}
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

// requests reports failed requests without an allowance, and returns the share of requests in the
// time of the schedule that would be reported if they failed.
func (j *checker) requests() (judged float64) {
	unexplained, during := 0, 0
	for _, r := range j.seen.Requests {
		name := j.explanation(r)
		if r.Start >= 0 && r.Start < j.schedule.For {
			during++
			if name == "" {
				unexplained++
			}
		}
		switch {
		case r.Error == "":
		case name != "":
			j.allowed[name]++
		default:
			j.report(NoRequestFails, "", r.Start, "after %s: %s", (r.End - r.Start).Round(time.Millisecond),
				strings.TrimSpace(r.Error))
		}
	}
	return float64(unexplained) / float64(max(during, 1))
}

// explanation names what a request may be lost to: of the faults that can cause it the one whose
// window is the shortest, else a task that ended while updates were late. It is empty for none.
func (j *checker) explanation(r Request) string {
	slack := j.seen.slack(r.Start, r.End)
	var best *Allowance
	for i := range j.allowances {
		e := &j.allowances[i]
		if e.What != RequestFails || e.From > r.End || e.To < r.Start-slack || !j.called(e.Task, r) {
			continue
		}
		if best == nil || e.To-e.From < best.To-best.From {
			best = e
		}
	}
	switch {
	case best != nil:
		return best.Rule.name()
	case j.unaware(r):
		return lateUpdate
	}
	return ""
}

// called reports whether callers may have sent the request to a task: while Consul sent it traffic,
// until they learn that it does not, and while a connection times out. The entry is always called.
func (j *checker) called(task string, r Request) bool {
	if task == "" || task == j.topology.entry() {
		return true
	}
	return slices.ContainsFunc(j.seen.inTraffic(task), func(in interval) bool {
		if in.from > r.End {
			return false
		}
		// The servers know then: only what delays updates to the entry counts.
		return in.to == forever || j.updatedBy(in.to, updateBound, j.topology.entry())+connecting >= r.Start
	})
}

// LeastJudged is the share of a run's requests that has to be judged for the run to prove something.
const LeastJudged = 0.6

// Judged returns the share of the schedule's time in which a request that fails is a violation, if
// every task is in the traffic until it is replaced, and its callers avoid it some seconds later.
func (s Schedule) Judged(w Topology) float64 {
	all := Allowances(s, w)
	windows := slices.DeleteFunc(slices.Clone(all), func(e Allowance) bool { return e.What != RequestFails })
	for _, e := range s.Events {
		if e.By == "" {
			continue
		}
		if by := updatedBy(all, w, e.At, updateBound, e.Instead); by > e.At+updateBound {
			windows = append(windows, Allowance{From: e.At, To: min(e.At+ending, by)})
		}
	}
	slices.SortFunc(windows, func(a, b Allowance) int { return cmp.Compare(a.From, b.From) })
	var covered, until time.Duration
	for _, e := range windows {
		to := min(e.To, s.For)
		covered += max(to-max(e.From, until), 0)
		until = max(until, to)
	}
	return 1 - float64(covered)/float64(s.For)
}

// unaware reports whether the request met a task that had ended, of which its callers
// could not know: updates were late, not only under way. A task answers every caller
// until its application has stopped.
func (j *checker) unaware(r Request) bool {
	for _, l := range j.seen.Tasks {
		silent := j.silent(l)
		if l.Term == Never || silent-updateBound-j.seen.slack(r.Start, r.End) > r.End {
			continue
		}
		late := updatedBy(j.allowances, j.topology, l.Term, updateBound, l.Task) > l.Term+updateBound
		if late && j.called(l.Task, r) && r.Start-connecting <= j.updatedBy(l.Term, updateBound, l.Task) &&
			!j.avoided(silent, r) {
			return true
		}
	}
	return false
}

// evidence is how many requests in a row show that a task which cannot answer is not called: one of
// eight instances would have had one of them, but for 3 cases in 10,000.
const evidence = 60

// ending is how long a task may take from its end to the last request that it explains: its application
// stops some seconds after TERM, and evidence takes some seconds of traffic.
const ending = 10 * time.Second

// avoided reports whether callers no longer called a task before the request: since the task is silent
// they were answered all the time, and no server that started since could have told them of it again.
func (j *checker) avoided(silent time.Duration, r Request) bool {
	answered := 0
	for _, q := range j.seen.Requests {
		if answered++; q.Error != "" || q.Start < silent {
			answered = 0
		}
		if q.Start >= r.Start || answered >= evidence && !j.restarted(q.Start, r.End) {
			return q.Start < r.Start
		}
	}
	return false
}

// restarted reports whether a server that was down started again between two moments, or a
// moment before them.
func (j *checker) restarted(from, to time.Duration) bool {
	return slices.ContainsFunc(j.schedule.Events, func(e Event) bool {
		return e.Fault != nil && e.Fault.Server == Down && e.End() <= to && e.End()+connecting >= from
	})
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
	if l.Term < j.seen.Healed &&
		!allowed(j.allowances, TaskEnds, l.Task, l.Term-j.seen.slack(l.Term, l.Term), l.Term) {
		j.report(NoUnexplainedEnd, l.Task, l.Term, "the task stops unexpectedly%s", j.because(l))
	}
	for _, in := range j.seen.inTraffic(l.Task) {
		if in.to >= min(l.Term, j.seen.Healed) {
			continue
		}
		if !allowed(j.allowances, OutOfTraffic, l.Task, in.to-j.seen.slack(in.to, in.to), in.to) {
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
	if l.Term >= j.seen.Healed && !there &&
		!allowed(j.allowances, OutOfTraffic, l.Task, j.seen.Healed, j.seen.Healed) {
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
		ok := allowed(j.allowances, left.What, l.Task, 0, l.Stopped)
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
	return allowed(j.allowances, LeaveLost, l.Task, l.Term, l.Stopped) || l.Term >= j.seen.Healed
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
		return allowed(j.allowances, LoginToken, l.Task, s.from, s.to)
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
