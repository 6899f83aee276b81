package controlplane

import (
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// What a scheduler of services needs: it decides how many tasks there are to be,
// and has them run, stopped and shown here.

// RunForService starts tasks of a service. Its input has what the service gives
// them: startedBy ecs-svc/<deployment>, group service:<name>, tags.
func (p *Plane) RunForService(call shapes.Call, service string, in shapes.RunTaskInput) (shapes.TasksOutput, error) {
	return p.run(call, in, origin{service: service})
}

// RunHere starts tasks for whoever runs this ECS: of a service, or standalone
// when it is empty, and also of definitions that are not for Fargate. Nothing
// throttles it.
func (p *Plane) RunHere(call shapes.Call, service string, in shapes.RunTaskInput) (shapes.TasksOutput, error) {
	return p.run(call, in, origin{service: service, anywhere: true})
}

// ForService checks what a service is to run, before it does. What it returns
// names the cluster and the revision in full, and the capacity providers where
// the cluster's are to be used. A revision that is kept may be inactive.
func (p *Plane) ForService(in shapes.RunTaskInput, kept bool) (resolved shapes.RunTaskInput, r *Revision, err error) {
	if err := checkRun(in); err != nil {
		return in, nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	o, err := p.order(in, origin{kept: kept})
	if err != nil {
		return in, nil, err
	}
	in.Cluster, in.TaskDefinition = o.cluster.name, o.revision.ARN
	if in.LaunchType == "" && len(in.CapacityProviderStrategy) == 0 {
		in.CapacityProviderStrategy = slices.Clone(o.cluster.strategy)
	}
	return in, o.revision, nil
}

// ClusterName is the name of an active cluster, of its name or ARN.
func (p *Plane) ClusterName(ref string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, err := p.cluster(ref)
	if err != nil {
		return "", err
	}
	return c.name, nil
}

// Protected reports whether a task is protected from scale-in.
func (p *Plane) Protected(taskARN string, now time.Time) bool {
	_, protected := p.protections.Until(taskARN, now)
	return protected
}

// StopForService asks a task to stop, for a reason of the scheduler's. One that
// is stopping already, or is gone, stays as it is.
func (p *Plane) StopForService(call shapes.Call, taskID, reason string) {
	p.mu.Lock()
	r := p.tasks[taskID]
	asked := r != nil && p.askToStop(r, scheduler.StopServiceScheduler, reason, call.Now)
	p.mu.Unlock()
	if asked {
		p.launcher.Stop(taskID, scheduler.StopServiceScheduler, reason)
	}
}

// ServiceTasks are all visible tasks of a service, in the order of their
// creation and without delay.
func (p *Plane) ServiceTasks(call shapes.Call, cluster, service string) []shapes.Task {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []*Record
	for _, r := range p.records {
		if r.Cluster == cluster && r.Service == service && r.Visible(call.Now) {
			found = append(found, r)
		}
	}
	tasks := make([]shapes.Task, len(found)) // they are large
	for i, r := range found {
		tasks[i] = r.Shape(call.Now, Lag{}, true)
	}
	return tasks
}
