package controlplane

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const unhealthyReason = "Task failed container health checks"

type round struct {
	s       *Service
	primary *Deployment
	tasks   []Task
	now     time.Time
	out     Actions
}

// Reconcile decides on all tasks of the service which to start and to stop. It
// must see a task that has stopped at least once.
func (s *Service) Reconcile(tasks []Task, now time.Time) Actions {
	r := &round{s: s, primary: s.Deployments[0], tasks: tasks, now: now}
	r.count()
	if s.Draining {
		for _, t := range tasks {
			if t.live() {
				r.stop(t, r.scaling())
			}
		}
		r.stopsEvent()
		return r.out
	}
	r.breaker()
	r.start()
	r.shrink()
	r.replaceUnhealthy()
	r.stopsEvent()
	r.complete()
	return r.out
}

func (r *round) event(format string, args ...any) {
	r.out.Events = append(r.out.Events, "(service "+r.s.Name+") "+fmt.Sprintf(format, args...))
}

func (r *round) scaling() string {
	return "Scaling activity initiated by (deployment " + r.primary.ID + ")"
}

func (r *round) stop(t Task, reason string) {
	r.out.Stop = append(r.out.Stop, Stop{Task: t.ID, Reason: reason})
	if i := slices.IndexFunc(r.tasks, func(o Task) bool { return o.ID == t.ID }); i >= 0 {
		r.tasks = slices.Delete(slices.Clone(r.tasks), i, i+1)
	}
}

func (r *round) stopsEvent() {
	if n := len(r.out.Stop); n > 0 {
		text := fmt.Sprintf("has stopped %d running tasks:", n)
		for _, stop := range r.out.Stop {
			text += " (task " + stop.Task + ")"
		}
		r.event("%s.", text)
	}
}

// of returns the live tasks of a deployment, or of all but it.
func (r *round) of(d *Deployment, other bool) []Task {
	return slices.DeleteFunc(slices.Clone(r.tasks), func(t Task) bool {
		return !t.live() || (t.Deployment == d.ID) == other
	})
}

func countTasks(tasks []Task, is func(Task) bool) (n int) {
	for _, t := range tasks {
		if is(t) {
			n++
		}
	}
	return n
}

func (r *round) unhealthy(t Task) bool {
	return t.Running() && t.Health == "UNHEALTHY" && r.now.Sub(t.Started) >= r.s.Grace
}

// maxBackoff is AWS's longest pause between tasks that fail to start; the way
// there is not published and assumed to double from a second.
const maxBackoff = 27 * time.Minute

func (r *round) count() {
	for _, d := range r.s.Deployments {
		d.forget(r.tasks)
		failed := false
		for _, t := range r.tasks {
			switch {
			case t.Deployment != d.ID:
			case t.isHealthy() && !d.healthy[t.ID]:
				d.healthy[t.ID] = true
				d.FailedTasks, d.proven, d.rounds, d.notBefore = 0, true, 0, time.Time{}
			case !t.live() && t.Started.IsZero() && !d.counted[t.ID] && !ordered(t.StopCode):
				d.fail(t)
				failed = true
			}
		}
		// Tasks that were started together fail one after the other.
		if !failed || r.now.Before(d.notBefore) {
			continue
		}
		d.rounds++
		pause := min(time.Second<<min(d.rounds-1, 16), maxBackoff)
		d.notBefore = r.now.Add(pause)
		if d.rounds == consistently {
			r.event("is unable to consistently start tasks successfully. For more information, see the " +
				"Troubleshooting section of the Amazon ECS Developer Guide.")
		}
	}
}

const consistently = 3

// forget drops tasks that are not shown any more, and so are not counted again.
// It waits until there are many: what they take is little.
func (d *Deployment) forget(tasks []Task) {
	const some = 100
	if len(d.counted)+len(d.healthy) < some+2*len(tasks) {
		return
	}
	shown := map[string]bool{}
	for _, t := range tasks {
		shown[t.ID] = true
	}
	gone := func(id string, _ bool) bool { return !shown[id] }
	maps.DeleteFunc(d.counted, gone)
	maps.DeleteFunc(d.healthy, gone)
}

func (d *Deployment) fail(t Task) {
	d.counted[t.ID] = true
	if !d.proven {
		d.FailedTasks++
	}
}

func ordered(code string) bool {
	return code == "ServiceSchedulerInitiated" || code == "UserInitiated"
}

// Threshold returns how many tasks may fail before the circuit breaker opens: half of the desired
// count, from 3 to 200.
func Threshold(desired int) int { return max(3, min(200, (desired+1)/2)) }

// breaker fails a rollout whose tasks fail, and returns to the last complete one.
func (r *round) breaker() {
	d := r.primary
	if !r.s.Breaker.Enable || d.Rollout != InProgress || d.FailedTasks < Threshold(r.s.Desired) {
		return
	}
	d.Rollout, d.Reason, d.Updated = Failed, "ECS deployment circuit breaker: tasks failed to start.", r.now
	r.event("(deployment %s) deployment failed: tasks failed to start.", d.ID)
	i := slices.IndexFunc(r.s.Deployments, func(o *Deployment) bool { return o != d && o.completed })
	if !r.s.Breaker.Rollback || i < 0 {
		return
	}
	back := r.s.Deployments[i]
	back.Rollout, back.Updated, back.FailedTasks, back.proven = InProgress, r.now, 0, false
	back.Reason = "ECS deployment circuit breaker: rolling back to deploymentId " + back.ID + "."
	r.event("rolling back to deployment %s.", back.ID)
	r.s.Deployments = append([]*Deployment{back}, slices.Delete(r.s.Deployments, i, i+1)...)
	r.primary, r.s.steady = back, false
}

// upper and lower are the limits of a deployment: rounded down and up.
func (s *Service) upper() int { return s.Desired * s.Max / 100 }
func (s *Service) lower() int { return (s.Desired*s.MinHealthy + 99) / 100 }

// start wants as many tasks of the primary deployment as are missing and as
// maximumPercent lets be. Those that wait to be replaced do not count as there,
// but take room.
func (r *round) start() {
	own, others := r.of(r.primary, false), r.of(r.primary, true)
	missing := r.s.Desired - len(own) + countTasks(own, r.unhealthy)
	room := r.s.upper() - len(own) - len(others)
	if len(others) == 0 {
		room = max(room, r.s.Desired-len(own))
	}
	n := min(missing, room)
	if n > 0 && r.primary.Rollout != Failed && !r.now.Before(r.primary.notBefore) {
		r.out.Start = n
		r.s.steady = false
	}
}

// shrink stops tasks that are too many: of other deployments as far as
// minimumHealthyPercent lets go of them, and of the primary one beyond Desired.
func (r *round) shrink() {
	own, others := r.of(r.primary, false), r.of(r.primary, true)
	var stops []Task
	if r.primary.Rollout != Failed {
		spare := countTasks(own, Task.isHealthy) + countTasks(others, Task.isHealthy) - r.s.lower()
		for _, t := range others {
			switch {
			case t.Protected:
			case !t.isHealthy():
				stops = append(stops, t)
			case spare > 0:
				spare--
				stops = append(stops, t)
			}
		}
	}
	excess := len(own) - countTasks(own, r.unhealthy) - r.s.Desired
	slices.SortStableFunc(own, func(a, b Task) int { return cmp.Compare(rank(a), rank(b)) })
	for _, t := range own {
		if excess > 0 && !t.Protected && !r.unhealthy(t) {
			excess--
			stops = append(stops, t)
		}
	}
	for _, t := range stops {
		r.stop(t, r.scaling())
	}
	r.blockedEvent(excess > 0 || slices.ContainsFunc(r.of(r.primary, true), func(t Task) bool { return t.Protected }),
		len(stops) == 0 && r.out.Start == 0 && r.deadlocked(others))
}

func rank(t Task) int {
	switch {
	case !t.Running():
		return 0
	case !t.isHealthy():
		return 1
	}
	return 2
}

func (r *round) deadlocked(others []Task) bool {
	return len(others) > 0 && r.s.upper() <= len(others) && r.s.lower() >= len(others) &&
		r.primary.Rollout == InProgress
}

// blockedEvent reports once why a service is blocked, and again when it is for
// another reason.
func (r *round) blockedEvent(protected, deadlocked bool) {
	why := ""
	switch {
	case protected:
		why = "was unable to scale in due to task protection."
	case deadlocked:
		why = "was unable to stop or start tasks during a deployment because of the service deployment " +
			"configuration. Update the minimumHealthyPercent or maximumPercent value and try again."
	}
	if why != "" && why != r.s.blocked {
		r.event("%s", why)
	}
	r.s.blocked = why
}

// replaceUnhealthy stops unhealthy tasks of the primary deployment: once their
// replacements are healthy, or at once where maximumPercent leaves no room for
// those.
func (r *round) replaceUnhealthy() {
	own := r.of(r.primary, false)
	replaced, noRoom := countTasks(own, Task.isHealthy), r.s.upper() <= len(own)
	for _, t := range own {
		if !r.unhealthy(t) {
			continue
		}
		if !r.primary.counted[t.ID] {
			r.primary.fail(t)
			r.s.steady = false
			r.event("(task %s) failed container health checks.", t.ID)
		}
		if replaced >= r.s.Desired || noRoom {
			r.stop(t, unhealthyReason)
		}
	}
}

// complete ends a rollout that has all its tasks, and reports a steady state.
func (r *round) complete() {
	own, others := r.of(r.primary, false), r.of(r.primary, true)
	// What never was complete and has no task any more is of no use.
	r.s.Deployments = slices.DeleteFunc(r.s.Deployments, func(d *Deployment) bool {
		return d != r.primary && !d.completed && len(r.of(d, false)) == 0
	})
	if r.primary.Rollout == Failed || len(others) > 0 || len(own) != r.s.Desired ||
		countTasks(own, Task.isHealthy) != r.s.Desired {
		return
	}
	if r.primary.Rollout == InProgress {
		r.primary.Rollout, r.primary.completed, r.primary.Updated = Completed, true, r.now
		r.primary.Reason = "ECS deployment " + r.primary.ID + " completed."
		r.event("(deployment %s) deployment completed.", r.primary.ID)
		r.s.Deployments = r.s.Deployments[:1]
	}
	if !r.s.steady {
		r.s.steady = true
		r.event("has reached a steady state.")
	}
}

// started returns the event of tasks that were started.
func (s *Service) started(ids []string) string {
	return fmt.Sprintf("(service %s) has started %d tasks: (task %s).", s.Name, len(ids), strings.Join(ids, ") (task "))
}
