package controlplane

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/taskdef"
)

const (
	// maxEvents is how many a service keeps.
	maxEvents = 100
	// maxBatch is how many tasks one call of the control plane starts.
	maxBatch = 10
)

// Look brings every service one step closer to what is wanted.
func (s *Services) Look(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(now)
	for _, v := range s.byKey {
		if v.status != shapes.Inactive {
			s.look(v, now)
		}
	}
}

func (s *Services) look(v *service, now time.Time) {
	call := shapes.Call{Now: now, Principal: v.createdBy}
	actions := v.Reconcile(s.tasks(v, now), now)
	for _, stop := range actions.Stop {
		s.plane.StopForService(call, stop.Task, stop.Reason)
	}
	for _, text := range actions.Events {
		v.tell(text, now)
	}
	s.start(v, call, actions.Start)
	if v.status == shapes.Draining && !slices.ContainsFunc(s.plane.ServiceTasks(call, v.cluster, v.name), func(t shapes.Task) bool { return t.LastStatus != shapes.Stopped }) {
		v.status, v.ended = shapes.Inactive, now
	}
	v.forget()
}

// start starts tasks of the primary deployment. What is refused is tried again
// at the next look.
func (s *Services) start(v *service, call shapes.Call, n int) {
	var ids []string
	for n > 0 {
		batch := min(n, maxBatch)
		n -= batch
		out, err := s.plane.RunForService(call, v.name, s.order(v, batch))
		for _, t := range out.Tasks {
			ids = append(ids, taskID(t.TaskARN))
		}
		if err != nil {
			var refused *shapes.Error
			if errors.As(err, &refused) && refused.Code != shapes.ThrottlingException {
				v.tell("(service "+v.name+") was unable to place a task. Reason: "+refused.Message, call.Now)
			}
			break
		}
	}
	if len(ids) > 0 {
		v.tell(v.Started(ids), call.Now)
	}
}

// order is what the control plane is to run.
func (s *Services) order(v *service, n int) shapes.RunTaskInput {
	d := v.Deployments[0].ID
	in := v.settings[d]
	in.Count, in.StartedBy, in.Group = &n, d, "service:"+v.name
	switch v.propagate {
	case "SERVICE":
		in.Tags = slices.DeleteFunc(slices.Clone(v.tags), func(t shapes.Tag) bool { return strings.HasPrefix(t.Key, "aws:") })
	case "TASK_DEFINITION":
		in.PropagateTags = v.propagate
	}
	return in
}

// tell adds an event; the one that is repeated is told once.
func (v *service) tell(text string, now time.Time) {
	if len(v.events) > 0 && v.events[0].Message == text {
		return
	}
	v.events = slices.Insert(v.events, 0, shapes.ServiceEvent{ID: uuid.New().String(), CreatedAt: shapes.At(now), Message: text})
	v.events = v.events[:min(len(v.events), maxEvents)]
}

// tasks are the service's, as plan sees them.
func (s *Services) tasks(v *service, now time.Time) []Task {
	var tasks []Task
	for _, t := range s.plane.ServiceTasks(shapes.Call{Now: now}, v.cluster, v.name) {
		// A service of the same name may have been deleted before.
		r, own := v.revisions[t.StartedBy]
		if !own {
			continue
		}
		tasks = append(tasks, Task{
			ID: taskID(t.TaskARN), Deployment: t.StartedBy, Last: t.LastStatus, Wanted: t.DesiredStatus, StopCode: t.StopCode,
			Probed: len(r.probed) > 0, Health: health(t, r.probed), Started: t.StartedAt.Time, Protected: s.plane.Protected(t.TaskARN, now),
		})
	}
	return tasks
}

// health is that of the containers with health checks: a task's healthStatus is
// UNKNOWN where an essential container has none.
func health(t shapes.Task, probed []string) string {
	var statuses []string
	for _, c := range t.Containers {
		if slices.Contains(probed, c.Name) {
			statuses = append(statuses, c.HealthStatus)
		}
	}
	return scheduler.WorstHealth(statuses)
}

// probed are the essential containers that have a health check.
func probed(def *taskdef.TaskDefinition) []string {
	var names []string
	for _, c := range def.ContainerDefinitions {
		if c.IsEssential() && c.HealthCheck.Enabled() {
			names = append(names, c.Name)
		}
	}
	return names
}

func taskID(arn string) string { return arn[strings.LastIndex(arn, "/")+1:] }
