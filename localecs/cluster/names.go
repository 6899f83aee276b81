package cluster

import (
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
)

// TaskNames has what the DNS names of a task are made of.
type TaskNames struct {
	// Private is its private DNS name.
	Private string
	// Cluster is its ECS cluster; Service is empty without a service.
	Cluster, Name, Family, Service string
	// CloudMap are its names there, in lower case.
	CloudMap []string
}

// in reports whether a name in lower case is that word in the cluster's domain.
func (n TaskNames) in(name, word string) bool {
	return word != "" && name == strings.ToLower(word+"."+n.Cluster+".local")
}

// Has reports whether a name, in lower case, is one of the task's, whether it resolves
// to the task now or not. The private name counts only while it resolves.
func (n TaskNames) Has(name string) bool {
	return n.in(name, n.Family) || n.in(name, n.Name) || n.in(name, n.Service) || slices.Contains(n.CloudMap, name)
}

// Matches reports whether a name, in lower case, resolves to the task in its present state: the private name until the
// task has stopped, its family's and its own name while it is RUNNING and not asked to stop, and its service's names if
// it is also healthy or has no health check.
func (n TaskNames) Matches(name string, v scheduler.View) bool {
	switch {
	case name == strings.ToLower(n.Private):
		return v.KnownStatus != scheduler.StatusStopped
	case n.in(name, n.Family), n.in(name, n.Name):
		return v.Runs()
	}
	return n.Has(name) && v.Serves()
}

// taskList holds the tasks that have not ended.
type taskList struct {
	mu    sync.Mutex
	tasks []*Task
}

func (l *taskList) add(t *Task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tasks = append(l.tasks, t)
}

func (l *taskList) remove(t *Task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Other goroutines may be reading the old slice.
	l.tasks = slices.DeleteFunc(slices.Clone(l.tasks), func(o *Task) bool { return o == t })
}

// all returns the tasks. The caller must not modify the slice.
func (l *taskList) all() []*Task {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tasks
}

// resolve returns the addresses of a DNS name, and whether a task has that name.
func (l *taskList) resolve(name string) (addresses []netip.Addr, exists bool) {
	for _, t := range l.all() {
		names := t.resources.names
		if names.Matches(name, t.View()) {
			addresses = append(addresses, t.resources.ns.IP)
		}
		exists = exists || names.Has(name)
	}
	return addresses, exists || len(addresses) > 0
}
