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

// expect makes place for a task that begins without a step of its own.
func (r *runner) expect(name string, l controlplane.Launch) {
	r.tasks.Add(Task{Name: name, Definition: l.Definition, Service: l.Service})
}

// joined takes a task in that has begun so.
func (r *runner) joined(b cluster.Begun) {
	if b.Err != nil {
		r.fail("start %s: %v", b.Name, b.Err)
		return
	}
	r.began(b.Name, b.Task)
}

// changeService carries out a step about an ECS service.
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
	return r.tellService(name)
}

// create creates a service.
func (r *runner) create(name string) error {
	if err := r.fleet.Create(name, r.file.Services[name]); err != nil {
		return fmt.Errorf("start service %s: %w", name, err)
	}
	return r.tellService(name)
}

// tellService tells what is wanted of a service now.
func (r *runner) tellService(name string) error {
	s, err := r.fleet.Service(name)
	if err != nil {
		return err
	}
	_, definition, _ := strings.Cut(s.TaskDefinition, "/")
	text := fmt.Sprintf("service %s: %d tasks of %s wanted, %s", name, s.DesiredCount, definition, SoFar(s))
	r.tell(Event{Kind: KindService, Service: name, Text: text})
	return nil
}

// remove deletes a service and waits until nothing of its tasks is left.
func (r *runner) remove(ctx context.Context, name string, leaves file.Leaves) error {
	if err := r.fleet.Delete(name); err != nil {
		return err
	}
	return r.awaitSteady(ctx, name, leaves)
}

// awaitSteady waits until a service is as it is to be, and nothing is left of
// the tasks that it has stopped.
func (r *runner) awaitSteady(ctx context.Context, name string, leaves file.Leaves) error {
	err := Until(ctx, func() (bool, error) {
		if err := r.clearStopped(ctx, name, leaves); err != nil {
			return false, err
		}
		s, err := r.fleet.Service(name)
		if err != nil {
			return false, err
		}
		steady, err := s.Steady()
		return steady && !r.stopping(name), err
	})
	if err != nil {
		return err
	}
	return r.tellService(name)
}

// stopping reports whether tasks of a service are stopping, or have not been looked
// at since.
func (r *runner) stopping(service string) bool {
	for _, t := range r.tasks.Begun() {
		if t.Service == service && !t.Judged && t.View().DesiredStatus == scheduler.StatusStopped {
			return true
		}
	}
	return false
}

// clearStopped waits until nothing is left of a service's stopped tasks.
func (r *runner) clearStopped(ctx context.Context, service string, leaves file.Leaves) error {
	begun := r.tasks.Begun()
	errs := make([]error, len(begun))
	var all sync.WaitGroup
	for i, t := range begun {
		if t.Service != service || t.Judged {
			continue
		}
		select {
		case <-t.Done():
			all.Go(func() {
				if err := r.cleared(ctx, t.Name, leaves); err != nil {
					errs[i] = fmt.Errorf("%s: %w", t.Name, err)
				}
			})
		default:
		}
	}
	all.Wait()
	return errors.Join(errs...)
}

// serviceSoFar says how far a service is.
func (r *runner) serviceSoFar(name string) string {
	s, err := r.fleet.Service(name)
	if err != nil {
		return err.Error()
	}
	return SoFar(s)
}
