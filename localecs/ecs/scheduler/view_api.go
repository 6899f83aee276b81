package scheduler

// The ECS API speaks of the same task in other words than the metadata
// endpoint. These derive them from a View.

// HealthUnknown is the ECS API's health status of a container that has no check or
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

// HealthStatus is the task's healthStatus of the ECS API: that of its essential
// containers.
func (v View) HealthStatus() string {
	var statuses []string
	for _, c := range v.Containers {
		if c.Essential {
			statuses = append(statuses, c.HealthStatus())
		}
	}
	return WorstHealth(statuses)
}

// WorstHealth is the health of a task whose containers have these: UNHEALTHY beats
// UNKNOWN, which stands for any other status, and that beats HEALTHY.
func WorstHealth(statuses []string) string {
	worst := HealthHealthy
	for _, status := range statuses {
		switch status {
		case HealthUnhealthy:
			return HealthUnhealthy
		case HealthHealthy:
		default:
			worst = HealthUnknown
		}
	}
	return worst
}

func lastStatus(known string) string {
	switch known {
	case StatusRunning, StatusStopped:
		return known
	default:
		return "PENDING"
	}
}
