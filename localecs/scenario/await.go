package scenario

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/localecs/scenario/server"
	"github.com/meshtask/consul-ecs/localecs/scheduler"
)

func (r *runner) await(ctx context.Context, a file.Await) error {
	ctx, cancel := context.WithTimeout(ctx, a.Within)
	defer cancel()
	if a.Stopped {
		r.mayEnd(a.Task)
	}
	ctx, release := r.whileTasksRun(ctx)
	defer release()
	if err := r.awaited(ctx, a); err != nil {
		return fmt.Errorf("await %s within %s: %w", a, a.Within, err)
	}
	return nil
}

// awaited waits until it has come or ctx has ended.
func (r *runner) awaited(ctx context.Context, a file.Await) error {
	switch {
	case a.Service != "":
		return r.watch.Until(ctx, func(c server.Checks) bool { return r.passing(c, a.Service) >= a.Passing })
	case a.Task == "":
		return r.awaitRequests(ctx, a.Requests)
	case a.Stopped:
		return r.awaitStopped(ctx, a)
	case a.Restarts > 0:
		return until(ctx, func() (bool, error) { return r.restarts(a.Task, a.Container) >= a.Restarts, nil })
	case a.Tokens != nil:
		return until(ctx, func() (bool, error) {
			n, err := r.tokens(ctx, a.Task)
			return n == *a.Tokens, err
		})
	}
	id := r.tasks[a.Task].task.ID()
	return r.watch.Until(ctx, func(c server.Checks) bool {
		if a.InTraffic != nil {
			return c.InTraffic(id) == *a.InTraffic
		}
		return c.Status(id, a.Container) == a.Status
	})
}

// awaitStopped waits for a task that ends by itself.
func (r *runner) awaitStopped(ctx context.Context, a file.Await) error {
	task := r.tasks[a.Task].task
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

// mayEnd notes that a task's end is no surprise from now on.
func (r *runner) mayEnd(task string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tasks[task].mayEnd = true
}

// whileTasksRun ends the context when a started task ends whose end no step
// has brought about: what is awaited will not come then.
func (r *runner) whileTasksRun(parent context.Context) (ctx context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(parent)
	var watching sync.WaitGroup
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, t := range r.tasks {
		if t.task == nil || t.mayEnd {
			continue
		}
		watching.Go(func() {
			select {
			case <-t.task.Done():
				cancel(fmt.Errorf("task %s ended by itself: %s", name, r.whyEnded(name, t.task.View())))
			case <-ctx.Done():
			}
		})
	}
	return ctx, func() {
		cancel(context.Canceled)
		watching.Wait()
	}
}

// whyEnded is ECS's reason for a task's end, then the first container that
// failed with its last word.
func (r *runner) whyEnded(name string, v scheduler.View) string {
	why := brief(v.StopCode + ": " + v.StoppedReason)
	var first *scheduler.ContainerView
	for i, c := range v.Containers {
		// One that never started may have a code, too: ECS gives it 143.
		if !c.StartedAt.IsZero() && c.ExitCode != nil && *c.ExitCode != 0 && (first == nil || c.FinishedAt.Before(first.FinishedAt)) {
			first = &v.Containers[i]
		}
	}
	if first == nil {
		return why
	}
	return fmt.Sprintf("%s; %s exited with %d: %s", why, first.Name, *first.ExitCode, lastLine(r.cluster.LogFile(name, first.Name)))
}

// passing counts the tasks of a service that Consul sends traffic to.
func (r *runner) passing(checks server.Checks, service string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, t := range r.tasks {
		if t.task != nil && t.def.Family == service && checks.InTraffic(t.task.ID()) {
			n++
		}
	}
	return n
}

func (r *runner) awaitRequests(ctx context.Context, n int) error {
	before, _, _ := r.traffic.Totals()
	return until(ctx, func() (bool, error) {
		now, _, _ := r.traffic.Totals()
		return now-before >= n, nil
	})
}

// restarts is how often ECS has started a container again.
func (r *runner) restarts(task, container string) int {
	for _, c := range r.tasks[task].task.View().Containers {
		if c.Name == container && c.RestartCount != nil {
			return *c.RestartCount
		}
	}
	return 0
}

// tokens counts the login tokens of a task.
func (r *runner) tokens(ctx context.Context, task string) (n int, err error) {
	found, err := r.leftOf(ctx, r.tasks[task].task.ID())
	for _, l := range found {
		if l.Token != "" {
			n++
		}
	}
	return n, err
}

// until asks again and again.
func until(ctx context.Context, come func() (bool, error)) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := come(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
