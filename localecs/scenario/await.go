package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// await waits until the condition of a step holds, or a task has ended unexpectedly:
// the condition will not hold then.
func (r *stepRunner) await(ctx context.Context, a file.Await) error {
	ctx, cancel := context.WithTimeout(ctx, a.Within)
	defer cancel()
	if a.Stopped {
		r.tasks.mayEnd(a.Task)
	}
	answered := r.traffic.answered()
	err := pollUntil(ctx, func() (bool, error) {
		holds, soFar, err := r.holds(ctx, a, answered)
		r.progress.showSoFar(soFar)
		if holds || err != nil {
			return holds, err
		}
		return false, r.unexpectedEnd(a.Task)
	})
	switch {
	case err != nil:
	case a.Steady:
		err = r.ecs.reportService(a.Service)
	case a.Stopped:
		err = r.stopped(ctx, a)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = r.blocked(err, a)
	}
	if err != nil {
		return fmt.Errorf("await %s within %s: %w", a, a.Within, err)
	}
	return nil
}

// blocked adds to an error, for each running task that the wait is about, the
// container that blocks it and its last line.
func (r *stepRunner) blocked(err error, a file.Await) error {
	for _, t := range r.tasks.Started() {
		if t.endedUnexpectedly() || a.Task != "" && t.Name != a.Task ||
			a.Service != "" && t.Definition.Family != a.Service && t.Service != a.Service {
			continue
		}
		if c, how := Blocker(t.View()); c != "" {
			err = fmt.Errorf("%w; task %s: %s; last line of %s: %s", err, t.Name, how, c, r.ecs.lastLine(t, c))
		}
	}
	return err
}

// holds reports whether a condition holds and, if there is a measure, how far it is.
// answered is how many requests had been answered before the step.
func (r *stepRunner) holds(ctx context.Context, a file.Await, answered int) (holds bool, soFar string, err error) {
	switch {
	case a.Steady:
		return r.steady(ctx, a.Service, "")
	case a.Service != "":
		checks, current := r.consul.watch.Now()
		n := r.consul.passing(checks, a.Service)
		return current && n >= a.Passing, fmt.Sprintf("%d of %d", n, a.Passing), nil
	case len(a.Logins) > 0:
		missing, err := r.consul.look.Missing(ctx, a.Logins)
		return missing == "", missing, err
	case a.FaultsOver:
		n := r.faults.schedule.Open()
		return n == 0, fmt.Sprintf("%d to come or to end", n), nil
	case a.Task == "":
		n := r.traffic.answered() - answered
		return n >= a.Requests, fmt.Sprintf("%d of %d", n, a.Requests), nil
	}
	return r.taskHolds(ctx, a, r.tasks.Task(a.Task))
}

// taskHolds decides the conditions of a task for holds.
func (r *stepRunner) taskHolds(ctx context.Context, a file.Await, t Task) (holds bool, soFar string, err error) {
	switch {
	case a.Stopped:
		return t.Ended(), "is " + t.View().KnownStatus, nil
	case a.Restarts > 0:
		n := t.restarts(a.Container)
		return n >= a.Restarts, fmt.Sprintf("%d of %d", n, a.Restarts), nil
	case a.Tokens != nil:
		n, err := r.consul.tokens(ctx, a.Task)
		return n == *a.Tokens, "", err
	}
	checks, current := r.consul.watch.Now()
	if a.InTraffic != nil {
		n := checks.Count(t.ID())
		soFar = fmt.Sprintf("%d checks passing, %d critical", n[api.HealthPassing], n[api.HealthCritical])
		return current && checks.InTraffic(t.ID()) == *a.InTraffic, soFar, nil
	}
	status := checks.Status(t.ID(), a.Container)
	return current && status == a.Status, cmp.Or(strings.TrimSuffix("is "+status, "is "), "not in Consul"), nil
}

// stopped judges a task whose end was awaited.
func (r *stepRunner) stopped(ctx context.Context, a file.Await) error {
	if t := r.tasks.Task(a.Task); a.StopCode != "" && t.View().StopCode != a.StopCode {
		return fmt.Errorf("it stopped with %s", r.ecs.whyEnded(t))
	}
	return r.cleanup.cleared(ctx, a.Task, a.AgentFails)
}

// unexpectedEnd returns an error if a task has ended that no step or fault has ended.
// An observer judges that itself: then it returns an error only for the awaited task, whatever has ended it.
func (r *stepRunner) unexpectedEnd(awaited string) error {
	for _, t := range r.tasks.Started() {
		if r.observed && t.Name != awaited || t.Service != "" || !t.Ended() {
			continue
		}
		// MayEnd is read after Done: a fault sets it before it ends the task.
		if r.observed || !r.tasks.Task(t.Name).MayEnd {
			return fmt.Errorf("task %s stopped unexpectedly: %s", t.Name, r.ecs.whyEnded(t))
		}
	}
	return nil
}
