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
	// Task is nil until it starts.
	*cluster.Task
	Name string
	// Definition has the containers that AWS adds once the task has started.
	Definition *taskdef.TaskDefinition
	// Service is an ECS service that replaces the task when it ends; empty for none.
	Service string
	// MayEnd: a step or fault has ended the task, or a step awaits its end. Checked: a
	// step has looked at what is left of it.
	MayEnd, Checked bool
	// Killed are the containers that a step has sent a signal to.
	Killed []string
}

// endedUnexpectedly reports whether the task has ended, or is about to, without a step or
// its service having ended it.
func (t Task) endedUnexpectedly() bool {
	v := t.View()
	return !t.MayEnd && v.DesiredStatus == scheduler.StatusStopped && v.StopCode != scheduler.StopServiceScheduler
}

// restarts returns how often ECS has started a container again.
func (t Task) restarts(container string) int {
	c, _ := t.View().Container(container)
	return taskdef.Or(c.RestartCount, 0)
}

// HasAgent reports whether a Consul client agent runs in the task.
func (t Task) HasAgent() bool { return t.Definition.Container(workload.ContainerConsulClient) != nil }

// Dead reports whether steps have killed all that was in the task.
func (t Task) Dead() bool {
	return !slices.ContainsFunc(t.Definition.ContainerDefinitions, func(c taskdef.Container) bool {
		return !slices.Contains(t.Killed, c.Name)
	})
}

// TaskSet is all tasks of a run. It is safe for concurrent use.
type TaskSet struct {
	mu    sync.Mutex
	tasks map[string]*Task
	names []string // in the order of their start
}

// NewTaskSet returns an empty TaskSet.
func NewTaskSet() *TaskSet { return &TaskSet{tasks: map[string]*Task{}} }

// Add adds a task that has not started.
func (r *TaskSet) Add(t Task) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tasks[t.Name] = &t
}

// Begin records that a task has started.
func (r *TaskSet) Begin(name string, task *cluster.Task) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tasks[name].Task, r.tasks[name].Definition = task, task.Definition()
	r.names = append(r.names, name)
}

// Change calls change with the task of that name, if there is one.
func (r *TaskSet) Change(name string, change func(*Task)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.tasks[name]; t != nil {
		change(t)
	}
}

// mayEnd declares that a task may end from now on.
func (r *TaskSet) mayEnd(name string) { r.Change(name, func(t *Task) { t.MayEnd = true }) }

// mayKill records that a container is killed by a step or a fault, or, when container
// is empty, all of them. ECS ends the task of an essential one.
func (r *TaskSet) mayKill(name, container string) {
	r.Change(name, func(t *Task) {
		for _, c := range t.Definition.ContainerDefinitions {
			if container == "" || c.Name == container {
				t.Killed = append(t.Killed, c.Name)
				t.MayEnd = t.MayEnd || c.IsEssential()
			}
		}
	})
}

// Task returns a copy of a task; its own Task is nil for one that has not started.
func (r *TaskSet) Task(name string) (t Task) {
	r.Change(name, func(known *Task) { t = known.clone() })
	return t
}

// clusterTask returns a task that has started; nil for one that has not.
func (r *TaskSet) clusterTask(name string) *cluster.Task { return r.Task(name).Task }

// clone returns a copy that shares nothing with the set.
func (t *Task) clone() Task {
	c := *t
	c.Killed = slices.Clone(t.Killed)
	return c
}

// Started returns copies of the tasks that have started, in that order.
func (r *TaskSet) Started() []Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]Task, 0, len(r.names))
	for _, name := range r.names {
		all = append(all, r.tasks[name].clone())
	}
	return all
}

// Of returns the task that a service in Consul belongs to; empty if none does.
func (r *TaskSet) Of(serviceID string) Task {
	for _, t := range r.Started() {
		if hasTask(serviceID, t.ID()) {
			return t
		}
	}
	return Task{}
}
