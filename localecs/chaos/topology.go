package chaos

import (
	"slices"
	"time"
)

// Role is what a container is for its task.
type Role string

// The roles. Containers that only start a task have none.
const (
	Application Role = "application"
	Proxy       Role = "proxy"
	Agent       Role = "agent"
	HealthSync  Role = "health-sync"
)

// Topology has the tasks that a schedule may disturb.
type Topology struct {
	Tasks []Task
}

// Task is a task that exists from the beginning.
type Task struct {
	Name, Family string
	// Entry is the task that the traffic enters: one that must live.
	Entry      bool
	Containers []Container
	// Fail and Heal, if any, are URLs inside the task that make its application
	// unhealthy and healthy.
	Fail, Heal string
}

// Container is one that keeps running.
type Container struct {
	Name string
	Role Role
	// Program is the last element of the path of the program that does its work,
	// below what supervises it.
	Program string
	// Essential ends the task with it; with Restarts ECS starts it again
	// once it has run for restartAge.
	Essential, Restarts bool
}

// restartAge is how long a container has to have run for ECS to start it again:
// the least restartAttemptPeriod.
const restartAge = time.Minute

func (t Task) container(role Role) (Container, bool) {
	i := slices.IndexFunc(t.Containers, func(c Container) bool { return c.Role == role })
	if i < 0 {
		return Container{}, false
	}
	return t.Containers[i], true
}

func (t Task) named(name string) Container {
	i := slices.IndexFunc(t.Containers, func(c Container) bool { return c.Name == name })
	if i < 0 {
		return Container{}
	}
	return t.Containers[i]
}

// of returns the task of that name, or the one that a replacement stands for.
func (w Topology) of(name string, s Schedule) (Task, bool) {
	// A replacement may be one of a replacement, which was started before.
	for _, e := range slices.Backward(s.Events) {
		if e.By == name {
			name = e.Instead
		}
	}
	i := slices.IndexFunc(w.Tasks, func(t Task) bool { return t.Name == name })
	if i < 0 {
		return Task{}, false
	}
	return w.Tasks[i], true
}

// entry returns the name of the task that the traffic enters.
func (w Topology) entry() string {
	i := slices.IndexFunc(w.Tasks, func(t Task) bool { return t.Entry })
	if i < 0 {
		return ""
	}
	return w.Tasks[i].Name
}
