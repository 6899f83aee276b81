package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// await waits until the condition of a step holds, or a task has ended unexpectedly:
// the condition will not hold then.
func (r *runner) await(ctx context.Context, a file.Await) error {
	ctx, cancel := context.WithTimeout(ctx, a.Within)
	defer cancel()
	if a.Stopped {
		r.tasks.mayEnd(a.Task)
	}
	answered := r.answered()
	err := pollUntil(ctx, func() (bool, error) {
		holds, soFar, err := r.holds(ctx, a, answered)
		r.showSoFar(soFar)
		if holds || err != nil {
			return holds, err
		}
		return false, r.unexpectedEnd()
	})
	switch {
	case err != nil:
	case a.Steady:
		err = r.reportService(a.Service)
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
func (r *runner) blocked(err error, a file.Await) error {
	for _, t := range r.tasks.Started() {
		if t.endedUnexpectedly() || a.Task != "" && t.Name != a.Task || a.Service != "" && t.Definition.Family != a.Service && t.Service != a.Service {
			continue
		}
		if c, how := Blocker(t.View()); c != "" {
			err = fmt.Errorf("%w; task %s: %s; last line of %s: %s", err, t.Name, how, c, r.lastLine(t, c))
		}
	}
	return err
}

// holds reports whether a condition holds and, if there is a measure, how far it is.
// answered is how many requests had been answered before the step.
func (r *runner) holds(ctx context.Context, a file.Await, answered int) (holds bool, soFar string, err error) {
	switch {
	case a.Steady:
		return r.steady(ctx, a.Service, file.Leaves{})
	case a.Service != "":
		checks, current := r.watch.Now()
		n := r.passing(checks, a.Service)
		return current && n >= a.Passing, fmt.Sprintf("%d of %d", n, a.Passing), nil
	case len(a.Logins) > 0:
		missing, err := r.look.Missing(ctx, a.Logins)
		return missing == "", missing, err
	case a.FaultsOver:
		n := r.faults.Open()
		return n == 0, fmt.Sprintf("%d to come or to end", n), nil
	case a.Task == "":
		n := r.answered() - answered
		return n >= a.Requests, fmt.Sprintf("%d of %d", n, a.Requests), nil
	}
	return r.taskHolds(ctx, a, r.tasks.Task(a.Task))
}

// taskHolds is holds for the conditions of a task.
func (r *runner) taskHolds(ctx context.Context, a file.Await, t Task) (holds bool, soFar string, err error) {
	switch {
	case a.Stopped:
		return t.Ended(), "is " + t.View().KnownStatus, nil
	case a.Restarts > 0:
		n := t.restarts(a.Container)
		return n >= a.Restarts, fmt.Sprintf("%d of %d", n, a.Restarts), nil
	case a.Tokens != nil:
		n, err := r.tokens(ctx, a.Task)
		return n == *a.Tokens, "", err
	}
	checks, current := r.watch.Now()
	if a.InTraffic != nil {
		n := checks.Count(t.ID())
		soFar = fmt.Sprintf("%d checks passing, %d critical", n[api.HealthPassing], n[api.HealthCritical])
		return current && checks.InTraffic(t.ID()) == *a.InTraffic, soFar, nil
	}
	status := checks.Status(t.ID(), a.Container)
	return current && status == a.Status, cmp.Or(strings.TrimSuffix("is "+status, "is "), "not in Consul"), nil
}

// stopped judges a task whose end was awaited.
func (r *runner) stopped(ctx context.Context, a file.Await) error {
	if t := r.tasks.Task(a.Task); a.StopCode != "" && t.View().StopCode != a.StopCode {
		return fmt.Errorf("it stopped with %s", r.whyEnded(t))
	}
	return r.cleared(ctx, a.Task, a.Leaves())
}

// unexpectedEnd returns an error if a task has ended that no step or fault has ended.
// With an observer that is the observer's to judge.
func (r *runner) unexpectedEnd() error {
	if r.observer != nil {
		return nil
	}
	for _, t := range r.tasks.Started() {
		// MayEnd is read after Done: a fault sets it before it ends the task.
		if t.Service == "" && t.Ended() && !r.tasks.Task(t.Name).MayEnd {
			return fmt.Errorf("task %s stopped unexpectedly: %s", t.Name, r.whyEnded(t))
		}
	}
	return nil
}

// whyEnded returns ECS's reason for a task's end, then the first container that failed,
// with its last line.
func (r *runner) whyEnded(t Task) string {
	v := t.View()
	why := brief(v.StopCode + ": " + v.StoppedReason)
	first := FirstFailed(v)
	if first == nil {
		return why
	}
	return fmt.Sprintf("%s; %s exited with %d: %s", why, first.Name, *first.ExitCode, r.lastLine(t, first.Name))
}

// lastLine returns the last line of a container's log.
func (r *runner) lastLine(t Task, container string) string {
	return cluster.LastLine(r.cluster.LogFile(t.Name, container))
}

// passing counts the tasks of a service that Consul sends traffic to.
func (r *runner) passing(checks allChecks, service string) int {
	n := 0
	for _, t := range r.tasks.Started() {
		if t.Definition.Family == service && checks.InTraffic(t.ID()) {
			n++
		}
	}
	return n
}

// tokens counts the login tokens of a task.
func (r *runner) tokens(ctx context.Context, task string) (n int, err error) {
	found, err := r.look.left(ctx, r.task(task).ID())
	for _, l := range found {
		if l.Token != "" {
			n++
		}
	}
	return n, err
}
