package controlplane

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

const (
	maxEvents       = 100
	reconcilePeriod = time.Second
)

// reconciler starts and stops the tasks of services.
type reconciler struct {
	state     *state
	lifecycle *taskLifecycle
	closed    chan struct{}
	close     func() // closes closed
	serving   sync.WaitGroup
}

// Start reconciles the services until Close.
func (r *reconciler) Start() { r.serving.Go(r.loop) }

// Close stops what Start has started. It may be called again.
func (r *reconciler) Close() {
	r.close()
	r.serving.Wait()
}

func (r *reconciler) loop() {
	tick := time.NewTicker(reconcilePeriod)
	defer tick.Stop()
	for {
		select {
		case <-r.closed:
			return
		case <-r.state.changed:
		case <-tick.C:
		}
		r.ReconcileServices(time.Now())
	}
}

// ReconcileServices reconciles every service once.
func (r *reconciler) ReconcileServices(now time.Time) {
	r.state.mu.Lock()
	defer r.state.unlock()
	r.state.sweep(now)
	for _, v := range r.state.services {
		if v.status != shapes.Inactive {
			r.reconcile(v, now)
		}
	}
	if route := r.state.options.Route; route != nil {
		route(r.state.routes(now))
	}
}

func (r *reconciler) reconcile(v *Service, now time.Time) {
	actions := v.Reconcile(r.tasksOf(v, now), now)
	for _, s := range actions.Stop {
		r.lifecycle.stop(r.state.tasks[s.Task], scheduler.StopServiceScheduler, s.Reason, now)
	}
	for _, text := range actions.Events {
		v.event(text, now)
	}
	r.start(v, actions.Start, now)
	if v.Draining && !slices.ContainsFunc(r.state.serviceRecords(v, now), func(r *Record) bool {
		return r.Task.LastStatus != shapes.Stopped
	}) {
		v.status, v.ended = shapes.Inactive, now
	}
}

// start starts tasks of the primary deployment. What is refused is tried again
// at the next turn.
func (r *reconciler) start(v *Service, n int, now time.Time) {
	var ids []string
	d := v.Deployments[0]
	for ; n > 0; n -= maxCount {
		out, err := r.lifecycle.run(shapes.Call{Now: now, Principal: v.createdBy}, v.input(min(n, maxCount)),
			origin{service: v.Name, connect: d.connect.IsEnabled() && r.state.options.Added.ServiceConnect != nil,
				names: r.state.registered(d.registries), inactive: true})
		for _, t := range out.Tasks {
			ids = append(ids, t.ID())
		}
		if err != nil {
			var refused *shapes.Error
			if errors.As(err, &refused) && refused.Code != shapes.ThrottlingException {
				v.event("(service "+v.Name+") was unable to place a task. Reason: "+refused.Message, now)
			}
			break
		}
	}
	if len(ids) > 0 {
		v.event(v.started(ids), now)
	}
}

func (v *Service) input(n int) shapes.RunTaskInput {
	d := v.Deployments[0]
	in := d.run
	in.Count, in.StartedBy, in.Group = &n, d.ID, "service:"+v.Name
	switch v.propagate {
	case "SERVICE":
		in.Tags = slices.DeleteFunc(slices.Clone(v.tags), func(t shapes.Tag) bool {
			return strings.HasPrefix(t.Key, "aws:")
		})
	case "TASK_DEFINITION":
		in.PropagateTags = v.propagate
	}
	return in
}

func (v *Service) event(text string, now time.Time) {
	if len(v.events) > 0 && v.events[0].Message == text {
		return
	}
	v.events = slices.Insert(v.events, 0,
		shapes.ServiceEvent{ID: uuid.New().String(), CreatedAt: shapes.At(now), Message: text})
	v.events = v.events[:min(len(v.events), maxEvents)]
}

func (s *state) serviceRecords(v *Service, now time.Time) []*Record {
	var found []*Record
	for _, r := range s.records {
		if r.Cluster == v.cluster && r.Service == v.Name && r.visible(now) {
			found = append(found, r)
		}
	}
	return found
}

func (r *reconciler) tasksOf(v *Service, now time.Time) []Task {
	var tasks []Task
	for _, record := range r.state.serviceRecords(v, now) {
		t := &record.Task
		if !slices.ContainsFunc(v.Deployments, func(d *Deployment) bool { return d.ID == t.StartedBy }) {
			continue // of a deleted service with the same name, or run by RunUnthrottled
		}
		_, protected := r.state.options.Protections.Until(t.TaskARN, now)
		tasks = append(tasks, Task{
			ID: record.ID, Deployment: t.StartedBy, Last: t.LastStatus, Wanted: t.DesiredStatus, StopCode: t.StopCode,
			Health: record.report.View.CheckedHealth(), Started: t.StartedAt.Time, Protected: protected,
		})
	}
	return tasks
}
