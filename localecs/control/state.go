package control

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// State is a snapshot of a run.
type State struct {
	// Name is that of the scenario; Command is run or serve.
	Name    string `json:"name"`
	Command string `json:"command"`
	// Version is the program's.
	Version string `json:"version"`
	// Directory holds its logs and volumes.
	Directory string `json:"directory"`
	// Tasks are in the order of their creation, with stopped ones for an hour.
	Tasks []Task `json:"tasks"`
	// Services are as DescribeServices shows them, without deleted ones.
	Services []shapes.Service `json:"services"`
	// Planned are tasks and services that have not started; nil if that is unknown.
	Planned []string `json:"planned"`
	// Consul is nil until there is a server.
	Consul *Consul `json:"consul,omitempty"`
	// Ended is set in the last state of a run.
	Ended bool `json:"ended,omitempty"`
}

// Task is a task as DescribeTasks shows it, with what only localecs knows, and without
// overrides, which may have secrets.
type Task struct {
	shapes.Task
	Name string `json:"name"`
	// Containers replace those of shapes.Task.
	Containers []Container `json:"containers"`
}

// Container is a container as DescribeTasks shows it, with what ECS has elsewhere: in the task
// definition and in the metadata of the task.
type Container struct {
	shapes.Container
	Essential bool `json:"essential"`
	// HealthCheck reports whether it has one. Without one its HealthStatus is UNKNOWN.
	HealthCheck  bool      `json:"healthCheck"`
	StartedAt    time.Time `json:"startedAt,omitzero"`
	FinishedAt   time.Time `json:"finishedAt,omitzero"`
	RestartCount int       `json:"restartCount,omitempty"`
	// Waiting is why it is not up, or not healthy.
	Waiting string `json:"waiting,omitempty"`
}

// Consul is a run's Consul server.
type Consul struct {
	// Address is its HTTP API in the cluster's network.
	Address string `json:"address"`
	// Token has all permissions; it is for localecs visit.
	Token string `json:"-"`
	// Passing is how many instances of each service Consul sends traffic to.
	Passing map[string]int `json:"passing"`
}

// hasPlan reports whether all tasks that may start are known: in a scenario, unless its tasks
// start others.
func (s State) hasPlan() bool { return s.Planned != nil }

// Stopped reports whether the task has stopped.
func (t Task) Stopped() bool { return t.LastStatus == shapes.Stopped }

// stopping reports whether it has stopped or is desired to stop.
func (t Task) stopping() bool { return t.Stopped() || t.DesiredStatus == shapes.Stopped }

func (t Task) of(service string) bool { return t.Group == "service:"+service }

// Status returns its last status as text, with ", stopping" while it stops.
func (t Task) Status() string {
	if t.stopping() && !t.Stopped() {
		return t.LastStatus + ", stopping"
	}
	return t.LastStatus
}

// Why returns its stop code and reason.
func (t Task) Why() string {
	if t.StopCode == "" {
		return t.StoppedReason
	}
	return t.StopCode + ": " + t.StoppedReason
}

// Address returns the address of its network interface, empty until it has one.
func (t Task) Address() string {
	for _, c := range t.Containers {
		for _, n := range c.NetworkInterfaces {
			return n.IPv4
		}
	}
	return ""
}

// Standing returns as text whether a service is steady.
func Standing(v shapes.Service) string {
	switch steady, err := v.Steady(); {
	case err != nil:
		return "failed: " + err.Error()
	case steady:
		return "steady"
	}
	return "not steady"
}

// Health returns its health, empty without a health check.
func (c Container) Health() string {
	if !c.HealthCheck {
		return ""
	}
	return c.HealthStatus
}

// health returns the health as scheduler.CheckedHealth has it; if no essential container has a health
// check, that of all containers with one. It is empty without any health check.
func (t Task) health() string {
	var containers []scheduler.ContainerHealth
	for _, c := range t.Containers {
		containers = append(containers, scheduler.ContainerHealth{Essential: c.Essential, Status: c.Health()})
	}
	if health := scheduler.CheckedHealth(slices.Values(containers)); health != "" {
		return health
	}
	for i := range containers {
		containers[i].Essential = true
	}
	return scheduler.CheckedHealth(slices.Values(containers))
}

// Healthy reports whether the task runs and its health is HEALTHY. It is false without any
// health check.
func (t Task) Healthy() bool {
	return t.health() == scheduler.HealthHealthy && t.LastStatus == shapes.Running && !t.stopping()
}

// Decider returns the essential container that exited first, or nil.
func (t Task) Decider() *Container {
	var first *Container
	for i, c := range t.Containers {
		if c.Essential && c.ExitCode != nil && (first == nil || c.FinishedAt.Before(first.FinishedAt)) {
			first = &t.Containers[i]
		}
	}
	return first
}

// minPrefix is the shortest part of a task ID that is accepted.
const minPrefix = 4

// Named returns the tasks that a word selects: the one of that name, ID or ARN; else those whose ID
// starts with it; else those of the service or family of that name that are not stopping, or the
// last one if all are.
func (s State) Named(word string) []Task {
	for _, t := range slices.Backward(s.Tasks) { // a name may be used again
		if t.Name == word || t.ID() == word || t.TaskARN == word {
			return []Task{t}
		}
	}
	var byID, group []Task
	for _, t := range s.Tasks {
		if len(word) >= minPrefix && strings.HasPrefix(t.ID(), word) {
			byID = append(byID, t)
		}
		if t.of(word) || t.Family() == word {
			group = append(group, t)
		}
	}
	if len(byID) > 0 {
		return byID
	}
	alive := slices.DeleteFunc(slices.Clone(group), Task.stopping)
	if len(alive) == 0 && len(group) > 0 {
		return group[len(group)-1:]
	}
	return alive
}

// One returns the only task that a word selects.
func (s State) One(word string) (Task, error) {
	switch found := s.Named(word); len(found) {
	case 1:
		return found[0], nil
	case 0:
		return Task{}, s.Unknown(word)
	default:
		return Task{}, fmt.Errorf("%q matches several tasks: name one of %s", word, strings.Join(names(found), ", "))
	}
}

// Unknown returns the error about a word that selects no task.
func (s State) Unknown(word string) error {
	if slices.Contains(s.Planned, word) {
		return fmt.Errorf("%s has not started yet", word)
	}
	return NoSuch("task", word, append(names(s.Tasks), s.Planned...))
}

func names(tasks []Task) (all []string) {
	for _, t := range tasks {
		all = append(all, t.Name)
	}
	return all
}

// NoSuch returns the error about an unknown name. It suggests known ones.
func NoSuch(kind, word string, known []string) error {
	slices.Sort(known)
	known = slices.Compact(known)
	switch near := config.Nearest(word, known); {
	case near != "":
		return fmt.Errorf("no %s %s; did you mean %s?", kind, word, near)
	case len(known) == 0:
		return fmt.Errorf("no %s %s; there are none yet", kind, word)
	}
	const many = 12
	if len(known) > many {
		known = append(known[:many:many], "...")
	}
	return fmt.Errorf("no %s %s; want one of %s", kind, word, strings.Join(known, ", "))
}
