package scheduler

// The ECS API speaks of the same task in other words than the metadata
// endpoint. These derive them from a View.

// HealthUnknown is what the ECS API says of a container that has no check or
// has not decided.
const HealthUnknown = "UNKNOWN"

// LastStatus is the task's lastStatus of the ECS API, without the states of
// its network: PENDING, RUNNING, STOPPED.
func (v View) LastStatus() string { return lastStatus(v.KnownStatus) }

// LastStatus is the container's lastStatus of the ECS API: PENDING, RUNNING,
// STOPPED.
func (c ContainerView) LastStatus() string { return lastStatus(c.KnownStatus) }

// HealthStatus is the container's healthStatus of the ECS API: HEALTHY,
// UNHEALTHY, UNKNOWN.
func (c ContainerView) HealthStatus() string {
	if c.Health == nil || c.Health.Status == HealthStarting {
		return HealthUnknown
	}
	return c.Health.Status
}

// HealthStatus is the task's healthStatus of the ECS API. It looks at
// essential containers only; UNHEALTHY beats UNKNOWN beats HEALTHY.
func (v View) HealthStatus() string {
	status := HealthHealthy
	for _, c := range v.Containers {
		if !c.Essential {
			continue
		}
		switch c.HealthStatus() {
		case HealthUnhealthy:
			return HealthUnhealthy
		case HealthUnknown:
			status = HealthUnknown
		}
	}
	return status
}

func lastStatus(known string) string {
	switch known {
	case StatusRunning, StatusStopped:
		return known
	default:
		return "PENDING"
	}
}
