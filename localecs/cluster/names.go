package cluster

import (
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
)

// TaskNames are the DNS names of a task.
type TaskNames struct {
	private string
	running []string
	service string // empty without a service
}

// NamedTask has what a task's names are made of.
type NamedTask struct {
	// Private is its private DNS name.
	Private string
	// Cluster is its ECS cluster.
	Cluster               string
	Name, Family, Service string
}

// NewTaskNames returns the names of a task.
func NewTaskNames(t NamedTask) TaskNames {
	in := func(word string) string { return strings.ToLower(word + "." + t.Cluster + ".local") }
	n := TaskNames{private: strings.ToLower(t.Private), running: []string{in(t.Family), in(t.Name)}}
	if t.Service != "" {
		n.service = in(t.Service)
	}
	return n
}

// Has reports whether a name, in lower case, is one of the task's, whether it resolves
// to the task now or not. The private name counts only while it resolves.
func (n TaskNames) Has(name string) bool {
	return slices.Contains(n.running, name) || n.service != "" && name == n.service
}

// Matches reports whether a name, in lower case, resolves to the task in its present
// state: the private name until the task has stopped, its family's and its own name
// while it is RUNNING and not asked to stop, and its service's name if it is also
// healthy or has no health check.
func (n TaskNames) Matches(name string, v scheduler.View) bool {
	runs := v.KnownStatus == scheduler.StatusRunning && v.DesiredStatus == scheduler.StatusRunning
	switch {
	case name == n.private:
		return v.KnownStatus != scheduler.StatusStopped
	case slices.Contains(n.running, name):
		return runs
	}
	return n.Has(name) && runs && healthy(v)
}

// healthy reports whether all essential containers that have a health check pass it.
func healthy(v scheduler.View) bool {
	var statuses []string
	for _, c := range v.Containers {
		if c.Essential && c.Health != nil {
			statuses = append(statuses, c.HealthStatus())
		}
	}
	return scheduler.WorstHealth(statuses) == scheduler.HealthHealthy
}
