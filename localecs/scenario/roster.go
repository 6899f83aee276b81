package scenario

import (
	"slices"
	"sync"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// Task is one task.
type Task struct {
	// Task is nil until it begins.
	*cluster.Task
	Name       string
	Definition *taskdef.TaskDefinition
	// Service is an ECS service that replaces the task when it ends; empty when
	// nobody does.
	Service string
	// MayEnd says that a step has brought its end about, or awaits it; Judged
	// that a step has looked at what is left of it.
	MayEnd, Judged bool
	// Killed are the containers that a step has sent a signal to.
	Killed []string
}

// Ended reports whether the task has ended, or is about to, and neither a step nor
// its service has brought that about.
func (t Task) Ended() bool {
	v := t.View()
	return !t.MayEnd && v.DesiredStatus == scheduler.StatusStopped && v.StopCode != scheduler.StopServiceScheduler
}

// Restarts is how often ECS has started a container again.
func (t Task) Restarts(container string) int {
	c, _ := t.View().Container(container)
	if c.RestartCount == nil {
		return 0
	}
	return *c.RestartCount
}

// HasAgent reports whether a Consul client agent runs in the task.
func (t Task) HasAgent() bool { return t.Definition.Container(workload.ContainerConsulClient) != nil }

// Dead reports whether steps have killed all that was in the task.
func (t Task) Dead() bool {
	return !slices.ContainsFunc(t.Definition.ContainerDefinitions, func(c taskdef.Container) bool { return !slices.Contains(t.Killed, c.Name) })
}

// Application is the name of the container that is named like the family, else
// of the last one.
func (t Task) Application() string {
	if t.Definition.Container(t.Definition.Family) != nil {
		return t.Definition.Family
	}
	return t.Definition.ContainerDefinitions[len(t.Definition.ContainerDefinitions)-1].Name
}

// Roster is all tasks. It is safe for concurrent use.
type Roster struct {
	mu    sync.Mutex
	tasks map[string]*Task
	names []string // in the order of their start
}

// New returns an empty Roster.
func NewRoster() *Roster { return &Roster{tasks: map[string]*Task{}} }

// Add makes place for a task that has not begun.
func (r *Roster) Add(t Task) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tasks[t.Name] = &t
}

// Begin notes that a task has begun.
func (r *Roster) Begin(name string, task *cluster.Task) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tasks[name].Task = task
	r.names = append(r.names, name)
}

// Change changes what is known of a task, if there is one of that name.
func (r *Roster) Change(name string, change func(*Task)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.tasks[name]; t != nil {
		change(t)
	}
}

// MayEnd notes that a task's end is no surprise from now on.
func (r *Roster) MayEnd(name string) { r.Change(name, func(t *Task) { t.MayEnd = true }) }

// MayKill notes that it is no surprise when a container is killed. ECS ends the
// task of an essential one.
func (r *Roster) MayKill(name, container string) {
	r.Change(name, func(t *Task) {
		t.Killed = append(t.Killed, container)
		if c := t.Definition.Container(container); c != nil && c.IsEssential() {
			t.MayEnd = true
		}
	})
}

// Task is how a task is now; its own Task is nil for one that has not begun.
func (r *Roster) Task(name string) (t Task) {
	r.Change(name, func(known *Task) { t = known.clone() })
	return t
}

// clone is a copy that nobody changes.
func (t *Task) clone() Task {
	c := *t
	c.Killed = slices.Clone(t.Killed)
	return c
}

// Begun are the tasks that have begun, in that order, as they are now.
func (r *Roster) Begun() []Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]Task, 0, len(r.names))
	for _, name := range r.names {
		all = append(all, r.tasks[name].clone())
	}
	return all
}

// Of finds the task that a service in Consul belongs to; empty when it is
// nobody's.
func (r *Roster) Of(serviceID string) Task {
	for _, t := range r.Begun() {
		if HasTask(serviceID, t.ID()) {
			return t
		}
	}
	return Task{}
}
