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

// healthy reports whether a task counts towards minimumHealthyPercent: its health check
// passes, or it has none and has run for HealthyAfter. Both are in the API reference of
// minimumHealthyPercent.
func (r *round) healthy(t Task) bool {
	return t.Running() && (t.Health == "HEALTHY" || t.Health == "" && r.now.Sub(t.Started) >= r.s.HealthyAfter)
}

func (r *round) unhealthy(t Task) bool {
	return t.Running() && t.Health == "UNHEALTHY" && r.now.Sub(t.Started) >= r.s.Grace
}

// maxBackoff is AWS's longest pause between tasks that fail to start; the way there is not published
// and assumed to double from a second. AWS makes no pause after tasks that fail once they run: on
// Fargate their start takes long enough, here nothing else would bound a loop.
const maxBackoff = 27 * time.Minute

// rollbackShown is how long a failed deployment is shown at least after a rollback,
// so that clients see it, which ask every 15 s at most. AWS's own time is not published.
const rollbackShown = 20 * time.Second

func (r *round) count() {
	for _, d := range r.s.Deployments {
		d.forget(r.tasks)
		failed := false
		for _, t := range r.tasks {
			switch {
			case t.Deployment != d.ID:
			case r.healthy(t) && !d.healthy[t.ID]:
				d.healthy[t.ID] = true
				d.rounds, d.notBefore = 0, time.Time{}
				if r.s.Breaker.Resets() {
					d.FailedTasks, d.proven = 0, true
				}
			case !t.live() && !d.healthy[t.ID] && !d.counted[t.ID] && !ordered(t.StopCode):
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

// breaker fails a rollout whose tasks fail, and returns to the last complete one.
func (r *round) breaker() {
	d := r.primary
	if !r.s.Breaker.Enable || d.Rollout != InProgress || d.FailedTasks < r.s.Breaker.Failures(r.s.Desired) {
		return
	}
	d.Rollout, d.Reason, d.Updated = Failed, "ECS deployment circuit breaker: tasks failed to start.", r.now
	d.failed = r.now
	r.event("(deployment %s) deployment failed: tasks failed to start.", d.ID)
	i := slices.IndexFunc(r.s.Deployments, func(o *Deployment) bool { return o != d && o.completed })
	if !r.s.Breaker.Rollback || i < 0 {
		r.s.broken(d, "", r.now)
		return
	}
	back := r.s.Deployments[i]
	r.s.broken(d, back.ID, r.now)
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
		stops = r.spare(own, others)
	}
	excess := len(own) - countTasks(own, r.unhealthy) - r.s.Desired
	slices.SortStableFunc(own, func(a, b Task) int { return cmp.Compare(r.rank(a), r.rank(b)) })
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

// spare returns the tasks of other deployments that minimumHealthyPercent does not need. Those
// that may count later stay while too few do.
func (r *round) spare(own, others []Task) (stops []Task) {
	spare := countTasks(own, r.healthy) + countTasks(others, r.healthy) - r.s.lower()
	for _, t := range others {
		switch healthy, useless := r.healthy(t), !t.Running() || t.Health == "UNHEALTHY"; {
		case t.Protected:
		case useless, !healthy && spare >= 0:
			stops = append(stops, t)
		case healthy && spare > 0:
			spare--
			stops = append(stops, t)
		}
	}
	return stops
}

func (r *round) rank(t Task) int {
	switch {
	case !t.Running():
		return 0
	case !r.healthy(t):
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

// replaceUnhealthy stops unhealthy tasks of the primary deployment: once their replacements are
// healthy or, where maximumPercent leaves no room for those beside all tasks of the service, one
// after the other.
func (r *round) replaceUnhealthy() {
	own, others := r.of(r.primary, false), r.of(r.primary, true)
	replaced := countTasks(own, r.healthy) >= r.s.Desired
	single := r.s.upper() <= len(own)+len(others) && r.out.Start == 0 &&
		!slices.ContainsFunc(own, func(t Task) bool { return !t.Running() })
	for _, t := range own {
		if !r.unhealthy(t) {
			continue
		}
		if !r.primary.counted[t.ID] {
			r.primary.fail(t)
			r.s.steady = false
			r.event("(task %s) failed container health checks.", t.ID)
		}
		if replaced || single {
			r.stop(t, unhealthyReason)
			single = false
		}
	}
}

// complete ends a rollout that has all its tasks, and reports a steady state.
func (r *round) complete() {
	own, others := r.of(r.primary, false), r.of(r.primary, true)
	// What never was complete and has no task any more is of no use.
	r.s.Deployments = slices.DeleteFunc(r.s.Deployments, func(d *Deployment) bool {
		return d != r.primary && !d.completed && len(r.of(d, false)) == 0 && !r.shown(d)
	})
	if r.primary.Rollout == Failed || len(others) > 0 || len(own) != r.s.Desired ||
		countTasks(own, r.healthy) != r.s.Desired {
		return
	}
	if r.primary.Rollout == InProgress {
		r.primary.Rollout, r.primary.completed, r.primary.Updated = Completed, true, r.now
		r.primary.Reason = "ECS deployment " + r.primary.ID + " completed."
		r.event("(deployment %s) deployment completed.", r.primary.ID)
		r.s.finish(successful, rolledBack, "", r.now)
		r.s.Deployments = slices.DeleteFunc(r.s.Deployments, func(d *Deployment) bool {
			return d != r.primary && !r.shown(d)
		})
	}
	if !r.s.steady {
		r.s.steady = true
		r.event("has reached a steady state.")
	}
}

// shown reports whether a deployment that was rolled back is still shown.
func (r *round) shown(d *Deployment) bool {
	return !d.failed.IsZero() && r.now.Sub(d.failed) < rollbackShown
}

// started returns the event of tasks that were started.
func (s *Service) started(ids []string) string {
	return fmt.Sprintf("(service %s) has started %d tasks: (task %s).", s.Name, len(ids), strings.Join(ids, ") (task "))
}
