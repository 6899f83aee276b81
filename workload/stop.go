package workload

import (
	"errors"
	"slices"
	"time"
)

// ProxyEnd is how long Envoy takes to end when no callers remain.
const ProxyEnd = time.Second

// StopBudget is how the containers of a task share the time between TERM and KILL.
// All times count from TERM, and each is a limit: what is done earlier ends earlier.
type StopBudget struct {
	// MinDelay is how long an automatic shutdown delay lasts at least, MaxDelay at
	// most.
	MinDelay, MaxDelay time.Duration
	// Criticals is when health-sync stops trying to write critical, so that time is
	// left for the logouts.
	Criticals time.Duration
	// ServiceLogout is when health-sync logs the service token out although
	// applications may still run: before the agent leaves.
	ServiceLogout time.Duration
	// Deregister is when health-sync removes a task without an agent from the catalog
	// although its proxy may still run.
	Deregister time.Duration
	// Gateway is when health-sync no longer waits for a gateway's Envoy: that ends after
	// the wait for its callers.
	Gateway time.Duration
	// HealthSync is when health-sync ends.
	HealthSync time.Duration
	// Leave is when the agent leaves although other containers still run.
	Leave time.Duration
	// KillAgent is when an agent that has not left is killed.
	KillAgent time.Duration
	// ClientLogout is when client-entrypoint stops trying to log its tokens out.
	ClientLogout time.Duration
}

// NewStopBudget divides a stop timeout. A leave takes consul 3 to 4 s and has 7.5 of
// 30: an agent that has not left stays in the catalog as failed, while the controller
// removes a token that was not logged out.
func NewStopBudget(stop time.Duration) StopBudget {
	const (
		minDelay, maxDelay = 1250 * time.Millisecond, 5 * time.Second
		logoutReserve      = 12 * time.Second
		leaveReserve       = 10 * time.Second
		exitReserve        = 3 * time.Second
		deregisterReserve  = 4 * time.Second
	)
	delay := min(maxDelay, stop/6)
	healthSync := stop - min(exitReserve, stop/10)
	reserve := min(leaveReserve, stop)
	return StopBudget{
		MinDelay:      min(minDelay, stop/6),
		MaxDelay:      delay,
		Criticals:     healthSync * 2 / 3,
		ServiceLogout: max(0, stop-logoutReserve),
		Deregister:    healthSync - min(deregisterReserve, healthSync/3),
		Gateway:       delay + ProxyEnd,
		HealthSync:    healthSync,
		Leave:         stop - reserve,
		KillAgent:     stop - reserve/4,
		ClientLogout:  stop - reserve/20,
	}
}

// Delay returns when an application gets TERM at the latest.
func (b StopBudget) Delay(d ShutdownDelay) time.Duration {
	if d.Auto {
		return b.MaxDelay
	}
	return d.Fixed
}

const delayAuto = "auto"

// ShutdownDelay is how long app-entrypoint holds TERM back: while callers remain, within
// MinDelay and MaxDelay of the budget, or for a fixed time, whatever the budget is.
type ShutdownDelay struct {
	Auto  bool
	Fixed time.Duration
}

// ParseShutdownDelay reads the value of -shutdown-delay.
func ParseShutdownDelay(text string) (ShutdownDelay, error) {
	if text == delayAuto {
		return ShutdownDelay{Auto: true}, nil
	}
	fixed, err := time.ParseDuration(text)
	if err != nil || fixed < 0 {
		return ShutdownDelay{}, errors.New("want auto, or a time of 0 or more such as 10s")
	}
	return ShutdownDelay{Fixed: fixed}, nil
}

func (d ShutdownDelay) String() string {
	if d.Auto {
		return delayAuto
	}
	return d.Fixed.String()
}

// Applications returns the containers of the task definition that are neither ours nor named in ignore, in
// the metadata's order. A shutdown waits for them.
func (t Task) Applications(ignore Ignored) []Container {
	return t.defined(func(name string) bool { return !IsMeshContainer(name) && !ignore.Has(name) })
}

// Siblings returns all containers of the task definition but the Consul client's and those named in ignore,
// in the metadata's order. They may need the agent.
func (t Task) Siblings(ignore Ignored) []Container {
	return t.defined(func(name string) bool { return name != ContainerConsulClient && !ignore.Has(name) })
}

// defined returns the wanted containers of the task definition, without those that AWS adds.
func (t Task) defined(wanted func(name string) bool) []Container {
	var found []Container
	for _, c := range t.Containers {
		normal := c.Type == typeNormal || c.Type == ""
		if normal && !IsAWSContainer(c.Name) && wanted(c.Name) {
			found = append(found, c)
		}
	}
	return found
}

// ProxyContainers returns the names that the proxy's container may have.
func ProxyContainers() []string { return []string{ContainerDataplane, ContainerSidecarProxy} }

// Proxies returns the containers through which callers come.
func (t Task) Proxies() []Container {
	return t.defined(func(name string) bool { return slices.Contains(ProxyContainers(), name) })
}

// Proxied reports whether a proxy of the task runs.
func (t Task) Proxied() bool { return len(Running(t.Proxies())) > 0 }

// Lists reports whether the task has a container of that name.
func (t Task) Lists(name string) bool {
	return slices.ContainsFunc(t.Containers, func(c Container) bool { return c.Name == name })
}

// Restartable reports whether ECS may start the container again when it exits.
func (t Task) Restartable(name string) bool {
	return slices.ContainsFunc(t.Containers, func(c Container) bool { return c.Name == name && c.RestartCount != nil })
}

// Ended reports whether the container has stopped and will not be restarted. One that is not
// listed has not: it may have another name.
func (t Task) Ended(name string) bool {
	return slices.ContainsFunc(t.Containers, func(c Container) bool { return c.Name == name && c.Stopped() })
}

// Running returns the names of those that have not stopped, sorted, since EC2 lists containers in random
// order.
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
