package workload

import (
	"slices"
	"strings"
	"time"
)

// The end of a task. Every container has its stop timeout between TERM and
// KILL; those that need each other share it out by these, which is why they
// stand in one place.
const (
	// DefaultStopTimeout is ECS's own default of a container's stopTimeout.
	DefaultStopTimeout = 30 * time.Second
	// LeaveReserve is how long before KILL the agent leaves at the latest, and
	// logs out its own token after that.
	LeaveReserve = 10 * time.Second
	// LogOutReserve is how long before KILL the service token is logged out at
	// the latest: while the agent is still there.
	LogOutReserve = 12 * time.Second
)

// Applications are the containers of the task definition that are neither ours
// nor named in ignore, in the metadata's order. A shutdown waits for them.
func (t Task) Applications(ignore []string) []Container {
	return t.defined(func(name string) bool { return !ours(name) && !slices.Contains(ignore, name) })
}

// Siblings are all containers of the task definition but the Consul client's
// and those named in ignore, in the metadata's order. They may need the agent.
func (t Task) Siblings(ignore []string) []Container {
	return t.defined(func(name string) bool { return name != ContainerConsulClient && !slices.Contains(ignore, name) })
}

// defined are the wanted containers of the task definition, without those that
// the ECS agent adds.
func (t Task) defined(wanted func(name string) bool) []Container {
	var found []Container
	for _, c := range t.Containers {
		normal := c.Type == TypeNormal || c.Type == ""
		if normal && !strings.HasPrefix(c.Name, internalPrefix) && wanted(c.Name) {
			found = append(found, c)
		}
	}
	return found
}

// Lists reports whether the task has a container of that name.
func (t Task) Lists(name string) bool {
	return slices.ContainsFunc(t.Containers, func(c Container) bool { return c.Name == name })
}

// Restartable reports whether ECS may start the container again when it exits.
func (t Task) Restartable(name string) bool {
	return slices.ContainsFunc(t.Containers, func(c Container) bool { return c.Name == name && c.RestartCount != nil })
}

// Ended reports whether the container has stopped for good. One that is not listed
// has not: it may go by another name.
func (t Task) Ended(name string) bool {
	return slices.ContainsFunc(t.Containers, func(c Container) bool { return c.Name == name && c.Stopped() })
}

// Running are the names of those that have not stopped, sorted, since EC2
// lists containers in random order.
func Running(containers []Container) []string {
	var names []string
	for _, c := range containers {
		if !c.Stopped() {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}

func ours(name string) bool {
	switch name {
	case ContainerMeshInit, ContainerConsulClient, ContainerSidecarProxy,
		ContainerHealthSync, ContainerInstall, ContainerDataplane:
		return true
	}
	return false
}
