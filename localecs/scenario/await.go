package scenario

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

func (r *runner) await(ctx context.Context, a file.Await) error {
	ctx, cancel := context.WithTimeout(ctx, a.Within)
	defer cancel()
	if a.Stopped {
		r.tasks.MayEnd(a.Task)
	}
	ctx, release := r.whileTasksRun(ctx)
	defer release()
	if err := r.awaited(ctx, a); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = r.blamed(err, a)
		}
		return fmt.Errorf("await %s within %s: %w", a, a.Within, err)
	}
	return nil
}

// blamed adds to an error, for each running task that the wait is about, the
// container that holds it up and its last line.
func (r *runner) blamed(err error, a file.Await) error {
	for _, t := range r.tasks.Begun() {
		if t.Ended() || a.Task != "" && t.Name != a.Task || a.Service != "" && t.Definition.Family != a.Service && t.Service != a.Service {
			continue
		}
		if c, how := Blocker(t.Definition, t.View()); c != "" {
			err = fmt.Errorf("%w; container %s of task %s %s: %s", err, c, t.Name, how, cluster.LastLine(r.cluster.LogFile(t.Name, c)))
		}
	}
	return err
}

// awaited waits until it has come or ctx has ended.
func (r *runner) awaited(ctx context.Context, a file.Await) error {
	switch {
	case a.Steady:
		return r.awaitSteady(ctx, a.Service, file.Leaves{})
	case a.Service != "":
		return r.watch.Until(ctx, func(c Checks) bool { return r.passing(c, a.Service) >= a.Passing })
	case len(a.Logins) > 0:
		return Until(ctx, func() (bool, error) {
			missing, err := r.look.Missing(ctx, a.Logins)
			return missing == "", err
		})
	case a.FaultsOver:
		return Until(ctx, func() (bool, error) { return r.faults.Open() == 0, nil })
	case a.Task == "":
		return r.awaitRequests(ctx, a.Requests)
	case a.Stopped:
		return r.awaitStopped(ctx, a)
	case a.Restarts > 0:
		return Until(ctx, func() (bool, error) { return r.tasks.Task(a.Task).Restarts(a.Container) >= a.Restarts, nil })
	case a.Tokens != nil:
		return Until(ctx, func() (bool, error) {
			n, err := r.tokens(ctx, a.Task)
			return n == *a.Tokens, err
		})
	}
	id := r.task(a.Task).ID()
	return r.watch.Until(ctx, func(c Checks) bool {
		if a.InTraffic != nil {
			return c.InTraffic(id) == *a.InTraffic
		}
		return c.Status(id, a.Container) == a.Status
	})
}

// awaitStopped waits for a task that ends by itself.
func (r *runner) awaitStopped(ctx context.Context, a file.Await) error {
	task := r.task(a.Task)
	select {
	case <-task.Done():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if v := task.View(); a.StopCode != "" && v.StopCode != a.StopCode {
		return fmt.Errorf("it stopped with %s", r.whyEnded(a.Task, v))
	}
	return r.cleared(ctx, a.Task, a.Leaves())
}

// whileTasksRun ends the context when a started task ends whose end no step
// has brought about: what is awaited will not come then.
func (r *runner) whileTasksRun(parent context.Context) (ctx context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(parent)
	var watching sync.WaitGroup
	if r.observer != nil {
		return ctx, func() { cancel(context.Canceled) } // it is the observer's to judge
	}
	for _, t := range r.tasks.Begun() {
		if t.Service != "" || t.MayEnd {
			continue
		}
		watching.Go(func() {
			select {
			case <-t.Done():
				if r.tasks.Task(t.Name).MayEnd { // by a fault since
					return
				}
				cancel(fmt.Errorf("task %s ended by itself: %s", t.Name, r.whyEnded(t.Name, t.View())))
			case <-ctx.Done():
			}
		})
	}
	return ctx, func() {
		cancel(context.Canceled)
		watching.Wait()
	}
}

// whyEnded is why a task has ended.
func (r *runner) whyEnded(name string, v scheduler.View) string {
	return WhyEnded(v, func(container string) string { return cluster.LastLine(r.cluster.LogFile(name, container)) })
}

// passing counts the tasks of a service that Consul sends traffic to.
func (r *runner) passing(checks Checks, service string) int {
	n := 0
	for _, t := range r.tasks.Begun() {
		if t.Definition.Family == service && checks.InTraffic(t.ID()) {
			n++
		}
	}
	return n
}

func (r *runner) awaitRequests(ctx context.Context, n int) error {
	before, _, _ := r.traffic.Totals()
	return Until(ctx, func() (bool, error) {
		now, _, _ := r.traffic.Totals()
		return now-before >= n, nil
	})
}

// tokens counts the login tokens of a task.
func (r *runner) tokens(ctx context.Context, task string) (n int, err error) {
	found, err := r.look.Left(ctx, r.task(task).ID())
	for _, l := range found {
		if l.Token != "" {
			n++
		}
	}
	return n, err
}
