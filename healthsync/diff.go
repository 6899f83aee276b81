package healthsync

import (
	"slices"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

// observation is what a valid metadata answer has about one container: its
// ECS health status, or one of the words below. It is the only vocabulary that
// is remembered; Consul's words follow from it.
type observation string

const (
	healthy observation = workload.HealthHealthy
	// none: a container that is starting, or whose health check is.
	none observation = ""
	// unchecked: a container that runs without a health check of ECS, and whose port does not
	// count either. It stays so. Only observe makes this observation.
	unchecked observation = "UNCHECKED"
	// stopped: ECS has stopped the container or is about to. Its last health
	// may still read HEALTHY.
	stopped observation = workload.StatusStopped
	// missing: a valid answer does not list the container.
	missing observation = "MISSING"
	// listening: as none, but the container serves, which healthSync.startup of the
	// configuration lets count until ECS has a result. Only observe makes it.
	listening observation = "LISTENING"
	// stopping: the task ends. Only drain makes this observation.
	stopping observation = "STOPPING"
	// refusing: the metadata endpoint is away, and the port does not accept connections
	// any more. Only evidence makes this observation.
	refusing observation = "REFUSING"
)

// status returns the Consul status of an observation. Everything but HEALTHY, and what
// the user lets count before it, is critical: missing knowledge never counts as healthy.
func (o observation) status() string {
	if o == healthy || o == listening {
		return api.HealthPassing
	}
	return api.HealthCritical
}

// output returns the check's output. It depends on nothing else, so that the refresh of an
// observation that stays repeats it, and nothing is written to the servers.
func (o observation) output(container string) string {
	name := `container "` + container + `" `
	switch o {
	case none:
		return name + "has no ECS health status"
	case unchecked:
		return name + "has no ECS health check: add healthCheck to its container definition " +
			"(ECS ignores the image's HEALTHCHECK), or name it in healthSync.startup"
	case listening:
		return name + "serves at its port and has no ECS health status yet"
	case missing:
		return name + "is not in the task metadata"
	case stopped:
		return name + "is STOPPED in ECS"
	case refusing:
		return name + "does not accept connections any more, and the ECS metadata endpoint does not answer"
	case stopping:
		return name + "belongs to a task that is stopping"
	default:
		return name + "is " + string(o) + " in ECS"
	}
}

// observe looks one container up in a valid metadata answer. serving has the containers for
// which serving counts, and whether they do.
func observe(containers []workload.Container, name string, serving map[string]bool) observation {
	for i := range containers {
		c := &containers[i]
		if c.Name != name {
			continue
		}
		if c.KnownStatus == string(stopped) || c.DesiredStatus == string(stopped) {
			return stopped
		}
		return observeHealth(c, serving)
	}
	return missing
}

// observeHealth observes a container that has not stopped.
func observeHealth(c *workload.Container, serving map[string]bool) observation {
	serves, counts := serving[c.Name]
	switch observed := observation(c.HealthStatus()); {
	case observed == none && serves:
		return listening
	case c.Health == nil && c.KnownStatus == workload.StatusRunning && !counts:
		return unchecked
	case observed == listening, observed == refusing, observed == unchecked:
		return none // no status of ECS
	default:
		return observed
	}
}

// decisive returns the observation that decides about a check, and the container that it is
// about. An aggregate is as bad as its proxy or, when that is well, as the first other
// container that is not.
func decisive(
	check workload.SyncCheck, checks []workload.SyncCheck, containers []workload.Container, serving map[string]bool,
) (string, observation) {
	if !check.Aggregate {
		return check.Container, observe(containers, check.Container, serving)
	}
	proxy := proxyOf(containers)
	observed := observe(containers, proxy, serving)
	if observed.status() != api.HealthPassing {
		return proxy, observed
	}
	for _, other := range checks {
		if other.Aggregate {
			continue
		}
		if bad := observe(containers, other.Container, serving); bad.status() != api.HealthPassing {
			return other.Container, bad
		}
	}
	return proxy, observed
}

// proxyOf returns the name of the proxy's container in a task without an agent.
func proxyOf(containers []workload.Container) string {
	for _, name := range workload.ProxyContainers() {
		if slices.ContainsFunc(containers, func(c workload.Container) bool { return c.Name == name }) {
			return name
		}
	}
	return workload.ContainerDataplane
}

// written is the last observation of a check that Consul accepted.
type written struct {
	container string
	observed  observation
	at        time.Time
}

// same reports whether it is that observation of the container.
func (w written) same(container string, observed observation) bool {
	return w.container == container && w.observed == observed
}

// change is one write to make.
type change struct {
	check workload.SyncCheck
	// container is the one that was observed; for an aggregate, the one that decides.
	container string
	observed  observation
	// previous is the observation written before; first is true when there was none.
	previous observation
	first    bool
	// refresh repeats the status that is written: a TTL must not run out, and Consul may
	// have lost the check. readBack is for one that Consul may have changed a moment ago.
	refresh, readBack bool
	// explanation follows the output.
	explanation string
}

// update returns the change for the registrar.
func (c change) update() registrar.Update {
	return registrar.Update{
		Check: c.check, Status: c.observed.status(), Output: c.observed.output(c.container) + c.explanation,
		First: c.first, Refresh: c.refresh, ReadBack: c.readBack, Last: c.observed == stopping,
	}
}

// diff compares a valid metadata answer with what was last written, by check
// ID, and returns the writes to make in the order of checks; refresh is the time
// between two writes of the same status. It returns nil when there is nothing to do,
// which is the case on most ticks. Another reason for the same status waits for
// the refresh: it moves no traffic, and in a catalog each write costs every server. What ECS
// reports takes the place of refusing at once: a port that accepts must not outdo it later.
func diff(
	now time.Time, refresh time.Duration, checks []workload.SyncCheck, containers []workload.Container,
	serving map[string]bool, last map[string]written,
) []change {
	var changes []change
	for _, check := range checks {
		container, observed := decisive(check, checks, containers, serving)
		before, ok := last[check.ID]
		c := change{check: check, container: container, observed: observed, previous: before.observed, first: !ok}
		switch {
		case !ok:
		case before.observed.status() != observed.status(), before.observed == refusing:
		case now.Sub(before.at) >= refresh-tick/2:
			// Half a tick early: a tick that comes a moment too soon must not
			// put the refresh off by a whole one.
			c.refresh = true
		default:
			continue
		}
		changes = append(changes, c)
	}
	return changes
}
