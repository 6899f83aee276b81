package scenario

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// changeService carries out a step that scales or deploys a service.
func (e *ecsTasks) changeService(s file.Step) (err error) {
	name := ""
	switch {
	case s.Scale != nil:
		name, err = s.Scale.Service, e.update(s.Scale.Service, shapes.ServiceInput{DesiredCount: &s.Scale.Count})
	case s.Deploy != nil:
		name, err = s.Deploy.Service, e.deploy(*s.Deploy)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s, err)
	}
	return e.reportService(name)
}

// deploy starts a deployment of the file's next revision, or, without a file, of what
// the service runs already.
func (e *ecsTasks) deploy(d file.Deploy) error {
	in := shapes.ServiceInput{ForceNewDeployment: d.Definition == ""}
	if d.Definition != "" {
		revision, err := e.register(d.Definition)
		if err != nil {
			return err
		}
		in.TaskDefinition = revision
	}
	return e.update(d.Service, in)
}

// create creates a service, which starts its tasks in the background.
func (e *ecsTasks) create(name string) error {
	s := e.file.Services[name]
	revision, err := e.revision(s.Definition)
	if err == nil {
		err = e.deployed(e.region.Plane().CreateService(e.region.Call(), s.Input(name, e.file.Cluster, revision)))
	}
	if err != nil {
		return fmt.Errorf("start service %s: %w", name, err)
	}
	return e.reportService(name)
}

// reportService reports the desired and actual state of a service.
func (e *ecsTasks) reportService(name string) error {
	s, err := e.service(name)
	if err != nil {
		return err
	}
	_, definition, _ := strings.Cut(s.TaskDefinition, "/")
	text := fmt.Sprintf("service %s: %d tasks of %s wanted, %s", name, s.DesiredCount, definition, SoFar(s))
	e.progress.emit(Event{Kind: KindService, Service: name, Text: text})
	return nil
}

// remove deletes a service and waits until nothing of its tasks is left.
func (r *stepRunner) remove(ctx context.Context, name string, agentFails string) error {
	_, err := r.ecs.region.Plane().DeleteService(r.ecs.region.Call(),
		shapes.DeleteServiceInput{Cluster: r.file.Cluster, Service: name, Force: true})
	if err != nil {
		return err
	}
	err = pollUntil(ctx, func() (bool, error) {
		steady, _, err := r.steady(ctx, name, agentFails)
		return steady, err
	})
	if err != nil {
		return err
	}
	return r.ecs.reportService(name)
}

// steady reports whether a service has reached its desired state, and nothing is left
// in Consul of the tasks that it has stopped.
func (r *stepRunner) steady(ctx context.Context, name string, agentFails string) (steady bool, soFar string,
	err error) {
	if err := r.clearStopped(ctx, name, agentFails); err != nil {
		return false, "", err
	}
	s, err := r.ecs.service(name)
	if err != nil {
		return false, "", err
	}
	steady, err = s.Steady()
	return steady && !r.stopping(name), SoFar(s), cmp.Or(err, r.ecs.rolledBack(s))
}

// stopping reports whether tasks of a service are stopping, or have stopped and were
// not judged.
func (r *stepRunner) stopping(service string) bool {
	return slices.ContainsFunc(r.tasks.Started(), func(t Task) bool {
		return t.Service == service && !t.Checked && t.View().DesiredStatus == scheduler.StatusStopped
	})
}

// clearStopped waits until nothing is left of a service's stopped tasks.
func (r *stepRunner) clearStopped(ctx context.Context, service string, agentFails string) error {
	return forEach(r.tasks.Started(), func(t Task) error {
		if t.Service != service || t.Checked || !t.Ended() {
			return nil
		}
		if err := r.cleanup.cleared(ctx, t.Name, agentFails); err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		return nil
	})
}
