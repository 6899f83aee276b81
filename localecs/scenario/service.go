package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// expect adds a task that no step starts.
func (r *runner) expect(name string, l controlplane.Launch) {
	r.tasks.Add(Task{Name: name, Definition: l.Definition, Service: l.Service})
}

// joined records a task that no step has started.
func (r *runner) joined(b cluster.Begun) {
	if b.Err != nil {
		r.fail("start %s: %v", b.Name, b.Err)
		return
	}
	r.taskStarted(b.Name, b.Task)
}

// changeService carries out a step that scales or deploys a service.
func (r *runner) changeService(s file.Step) (err error) {
	name := ""
	switch {
	case s.Scale != nil:
		name, err = s.Scale.Service, r.fleet.Scale(s.Scale.Service, s.Scale.Count)
	case s.Deploy != nil:
		name, err = s.Deploy.Service, r.fleet.Deploy(s.Deploy.Service, s.Deploy.Definition)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s, err)
	}
	return r.reportService(name)
}

// create creates a service.
func (r *runner) create(name string) error {
	if err := r.fleet.Create(name, r.file.Services[name]); err != nil {
		return fmt.Errorf("start service %s: %w", name, err)
	}
	return r.reportService(name)
}

// reportService reports the desired and actual state of a service.
func (r *runner) reportService(name string) error {
	s, err := r.fleet.Service(name)
	if err != nil {
		return err
	}
	_, definition, _ := strings.Cut(s.TaskDefinition, "/")
	text := fmt.Sprintf("service %s: %d tasks of %s wanted, %s", name, s.DesiredCount, definition, SoFar(s))
	r.emit(Event{Kind: KindService, Service: name, Text: text})
	return nil
}

// remove deletes a service and waits until nothing of its tasks is left.
func (r *runner) remove(ctx context.Context, name string, leaves file.Leaves) error {
	if err := r.fleet.Delete(name); err != nil {
		return err
	}
	err := Until(ctx, func() (bool, error) {
		steady, _, err := r.steady(ctx, name, leaves)
		return steady, err
	})
	if err != nil {
		return err
	}
	return r.reportService(name)
}

// steady reports whether a service has reached its desired state, and nothing is left
// in Consul of the tasks that it has stopped.
func (r *runner) steady(ctx context.Context, name string, leaves file.Leaves) (steady bool, soFar string, err error) {
	if err := r.clearStopped(ctx, name, leaves); err != nil {
		return false, "", err
	}
	s, err := r.fleet.Service(name)
	if err != nil {
		return false, "", err
	}
	steady, err = s.Steady()
	return steady && !r.stopping(name), SoFar(s), err
}

// stopping reports whether tasks of a service are stopping, or have stopped and were
// not judged.
func (r *runner) stopping(service string) bool {
	for _, t := range r.tasks.Started() {
		if t.Service == service && !t.Judged && t.View().DesiredStatus == scheduler.StatusStopped {
			return true
		}
	}
	return false
}

// clearStopped waits until nothing is left of a service's stopped tasks.
func (r *runner) clearStopped(ctx context.Context, service string, leaves file.Leaves) error {
	started := r.tasks.Started()
	errs := make([]error, len(started))
	var all sync.WaitGroup
	for i, t := range started {
		if t.Service != service || t.Judged || !done(t) {
			continue
		}
		all.Go(func() {
			if err := r.cleared(ctx, t.Name, leaves); err != nil {
				errs[i] = fmt.Errorf("%s: %w", t.Name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
