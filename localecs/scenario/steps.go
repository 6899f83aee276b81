package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/localecs/chaos"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/localecs/view"
)

// stepRunner carries out the steps of a scenario.
type stepRunner struct {
	file     *file.Scenario
	ecs      *ecsTasks
	tasks    *TaskSet
	consul   *consulView
	cleanup  *cleanup
	faults   *faultInjector
	traffic  *trafficPhases
	progress *progress
	observed bool // an observer judges which tasks may end
	clock    clock
}

// run carries out the steps in order; the first that fails ends them.
func (r *stepRunner) run(ctx context.Context) error {
	r.faults.schedule.Add(r.file.Faults)
	for i, s := range r.file.Steps {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		end := r.progress.beginStep(i+1, s)
		err := r.clock.Await(ctx, s.At)
		if err == nil {
			err = r.step(ctx, s)
		}
		if err != nil {
			err = fmt.Errorf("step %d: %w", i+1, r.because(err))
		}
		end(err)
		if err != nil {
			return err
		}
	}
	return nil
}

// because adds to an error any task that is stopping unexpectedly: it may be the
// reason of a refused connection.
func (r *stepRunner) because(err error) error {
	for _, t := range r.tasks.Started() {
		if t.endedUnexpectedly() && !strings.Contains(err.Error(), "task "+t.Name+" stopped unexpectedly") {
			err = fmt.Errorf("%w; task %s stopped unexpectedly: %s", err, t.Name, r.ecs.whyEnded(t))
		}
	}
	return err
}

func (r *stepRunner) step(ctx context.Context, s file.Step) error {
	for _, name := range s.Tasks() {
		if of := r.file.ServiceOf(name); of != "" && r.tasks.clusterTask(name) == nil {
			return fmt.Errorf("%s: service %s has not started task %s yet", s, of, name)
		}
	}
	switch {
	case s.Start != nil:
		return r.ecs.start(s.Start)
	case s.Stop != nil:
		return r.stop(ctx, *s.Stop)
	case s.Scale != nil, s.Deploy != nil:
		return r.ecs.changeService(s)
	case s.Kill != nil:
		return r.kill(*s.Kill)
	case s.Await != nil:
		return r.await(ctx, *s.Await)
	case s.MTLS != nil, s.Get != nil, s.Post != nil:
		return r.question(ctx, s)
	case s.Faults != nil:
		r.faults.schedule.Add(s.Faults)
		return nil
	case s.Traffic != nil:
		return r.traffic.start(ctx, *s.Traffic)
	case s.Pause > 0:
		return r.pause(ctx, s.Pause)
	case s.EndTraffic != nil:
		r.traffic.end(*s.EndTraffic)
		return nil
	}
	return fmt.Errorf("no action carries out the step: %s", s)
}

// pause waits, and fails if a task ends unexpectedly meanwhile.
func (r *stepRunner) pause(ctx context.Context, d time.Duration) error {
	end := time.Now().Add(d)
	return pollUntil(ctx, func() (bool, error) { return !time.Now().Before(end), r.unexpectedEnd("") })
}

// kill carries out a step. That ECS ends the task of an essential container is no
// failure then, nor is that the container had to be killed.
func (r *stepRunner) kill(k chaos.Kill) error {
	r.tasks.mayKill(k.Task, k.Container)
	name, target := unix.SignalName(signalOf(k)), cmp.Or(k.Process, "its first process")
	if k.Container == "" {
		target = "everything in it"
	}
	r.progress.emit(Event{Kind: view.KindKill, Task: k.Task, Container: k.Container, Detail: name,
		Text: name + " to " + target})
	if err := kill(r.tasks.clusterTask(k.Task), k); err != nil {
		return fmt.Errorf("kill in %s: %w", k.Task, err)
	}
	return nil
}

// stop stops the tasks side by side and, unless it is for the background, waits
// until they are STOPPED and nothing of them is left in Consul.
func (r *stepRunner) stop(ctx context.Context, s file.Stop) error {
	var done atomic.Int64
	return forEach(s.Tasks, func(name string) error {
		defer func() { r.progress.showSoFar(fmt.Sprintf("%d of %d", done.Add(1), len(s.Tasks))) }()
		if err := r.stopOne(ctx, name, s.Background, s.AgentFails); err != nil {
			return fmt.Errorf("stop %s: %w", name, err)
		}
		return nil
	})
}

// forEach calls do for all items concurrently, and joins the errors in their order.
func forEach[T any](items []T, do func(T) error) error {
	errs := make([]error, len(items))
	var all sync.WaitGroup
	for i, item := range items {
		all.Go(func() { errs[i] = do(item) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (r *stepRunner) stopOne(ctx context.Context, name string, background bool, agentFails string) error {
	if _, service := r.file.Services[name]; service {
		return r.remove(ctx, name, agentFails)
	}
	r.tasks.mayEnd(name)
	task := r.tasks.clusterTask(name)
	if _, err := r.ecs.region.Plane().StopTask(r.ecs.region.Call(),
		shapes.StopTaskInput{Cluster: r.file.Cluster, Task: task.ID()}); err != nil {
		return err
	}
	if background {
		return nil
	}
	select {
	case <-task.Done():
	case <-ctx.Done():
		return ctx.Err()
	}
	return r.cleanup.cleared(ctx, name, agentFails)
}

// pollInterval is how often pollUntil polls.
const pollInterval = 20 * time.Millisecond

// pollUntil polls until a condition holds, polling fails, or ctx ends.
func pollUntil(ctx context.Context, holds func() (bool, error)) error {
	for {
		if ok, err := holds(); ok || err != nil {
			return err
		}
		if retry.Sleep(ctx, pollInterval) != nil {
			return context.Cause(ctx)
		}
	}
}

// clock counts the times of the steps, from when the first step that has one is
// reached.
type clock struct{ started time.Time }

// Await waits for a step's time; nil is now.
func (c *clock) Await(ctx context.Context, at *time.Duration) error {
	if at == nil {
		return nil
	}
	if c.started.IsZero() {
		c.started = time.Now()
	}
	if retry.Sleep(ctx, time.Until(c.started.Add(*at))) != nil {
		return context.Cause(ctx)
	}
	return nil
}
