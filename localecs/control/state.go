package control

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
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
	// Tasks are in the order of their start, with stopped ones for an hour.
	Tasks    []Task    `json:"tasks"`
	Services []Service `json:"services"`
	// Planned are tasks and services that have not started; nil if that is unknown.
	Planned []string `json:"planned"`
	// Consul is nil until there is a server.
	Consul *Consul `json:"consul,omitempty"`
	// Ended is set in the last state of a run.
	Ended bool `json:"ended,omitempty"`
}

// Task is a task with the names and values of the ECS API.
type Task struct {
	Name              string      `json:"name"`
	ID                string      `json:"id"`
	TaskARN           string      `json:"taskArn"`
	TaskDefinitionARN string      `json:"taskDefinitionArn"`
	Family            string      `json:"family"`
	Cluster           string      `json:"cluster"`
	Service           string      `json:"service,omitempty"`
	LastStatus        string      `json:"lastStatus"`
	DesiredStatus     string      `json:"desiredStatus"`
	HealthStatus      string      `json:"healthStatus"`
	Address           string      `json:"address,omitempty"`
	StartedAt         time.Time   `json:"startedAt,omitzero"`
	StoppedAt         time.Time   `json:"stoppedAt,omitzero"`
	StopCode          string      `json:"stopCode,omitempty"`
	StoppedReason     string      `json:"stoppedReason,omitempty"`
	Containers        []Container `json:"containers"`
}

// Container is a container of a Task.
type Container struct {
	Name       string `json:"name"`
	Image      string `json:"image"`
	Essential  bool   `json:"essential"`
	LastStatus string `json:"lastStatus"`
	// HealthStatus is empty for a container without a health check.
	HealthStatus string    `json:"healthStatus,omitempty"`
	StartedAt    time.Time `json:"startedAt,omitzero"`
	FinishedAt   time.Time `json:"finishedAt,omitzero"`
	// ExitCode is nil until it has exited.
	ExitCode     *int   `json:"exitCode,omitempty"`
	Reason       string `json:"reason,omitempty"`
	RestartCount int    `json:"restartCount,omitempty"`
}

// Service is an ECS service.
type Service struct {
	Name         string `json:"name"`
	Cluster      string `json:"cluster"`
	DesiredCount int    `json:"desiredCount"`
	RunningCount int    `json:"runningCount"`
	PendingCount int    `json:"pendingCount"`
	// Steady is set when its only deployment is complete and has all its tasks; Failed is why that
	// cannot happen.
	Steady bool   `json:"steady"`
	Failed string `json:"failed,omitempty"`
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
func (t Task) Stopped() bool { return t.LastStatus == "STOPPED" }

// stopping reports whether it has stopped or is desired to stop.
func (t Task) stopping() bool { return t.Stopped() || t.DesiredStatus == "STOPPED" }

// Status is its last status as text, with ", stopping" while it stops.
func (t Task) Status() string {
	if t.stopping() && !t.Stopped() {
		return t.LastStatus + ", stopping"
	}
	return t.LastStatus
}

// Why is its stop code and reason.
func (t Task) Why() string {
	if t.StopCode == "" {
		return t.StoppedReason
	}
	return t.StopCode + ": " + t.StoppedReason
}

// Standing is its deployment's standing as text.
func (v Service) Standing() string {
	switch {
	case v.Failed != "":
		return "failed: " + v.Failed
	case v.Steady:
		return "steady"
	}
	return "not steady"
}

// health is the task's health as scheduler.CheckedHealth has it; if no essential container has a
// health check, that of all containers with one. It is empty without any health check.
func (t Task) health() string {
	var containers []scheduler.ContainerHealth
	for _, c := range t.Containers {
		containers = append(containers, scheduler.ContainerHealth{Essential: c.Essential, Status: c.HealthStatus})
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
	return t.health() == scheduler.HealthHealthy && t.LastStatus == "RUNNING" && !t.stopping()
}

// Decider is the essential container that exited first, or nil.
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
		if t.Name == word || t.ID == word || t.TaskARN == word {
			return []Task{t}
		}
	}
	var byID, group []Task
	for _, t := range s.Tasks {
		if len(word) >= minPrefix && strings.HasPrefix(t.ID, word) {
			byID = append(byID, t)
		}
		if t.Service == word || t.Family == word {
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

// Unknown is the error about a word that selects no task.
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

// NoSuch is the error about an unknown name. It suggests known ones.
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
