// Package names is what tasks are called in the VPC.
//
// Owns: <name>.<cluster>.local, as a service discovery namespace named after the
// cluster would have it. Never does: answer a query.
// Start reading at: Names.
package names

import (
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/scheduler"
)

// Names are those of a task.
type Names struct {
	private string
	running []string
	service string
}

// Task says what makes a task's names.
type Task struct {
	// Private is its private DNS name.
	Private string
	// Cluster is the ECS cluster that it is of.
	Cluster               string
	Name, Family, Service string
}

// New are the names of a task.
func New(t Task) Names {
	in := func(word string) string { return strings.ToLower(word + "." + t.Cluster + ".local") }
	n := Names{private: strings.ToLower(t.Private), running: []string{in(t.Family), in(t.Name)}}
	if t.Service != "" {
		n.service = in(t.Service)
	}
	return n
}

// Shared are the names that stay when the task has gone: others may have them.
func (n Names) Shared() []string { return append(slices.Clone(n.running), n.service) }

// Mean says whether a name, in lower case, means the task as it is now: the private
// one until it has stopped, those of its family and its own as long as it is to run,
// and that of its service when it is healthy besides, or has no check.
func (n Names) Mean(name string, v scheduler.View) bool {
	runs := v.KnownStatus == scheduler.StatusRunning && v.DesiredStatus == scheduler.StatusRunning
	switch {
	case name == n.private:
		return v.KnownStatus != scheduler.StatusStopped
	case slices.Contains(n.running, name):
		return runs
	}
	return name == n.service && runs && healthy(v)
}

// healthy says whether all essential containers that have a health check pass it.
func healthy(v scheduler.View) bool {
	return !slices.ContainsFunc(v.Containers, func(c scheduler.ContainerView) bool {
		return c.Essential && c.Health != nil && c.Health.Status != scheduler.HealthHealthy
	})
}
