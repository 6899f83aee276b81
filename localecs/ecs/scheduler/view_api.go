package scheduler

import (
	"iter"
	"strings"
)

// The ECS API speaks of the same task in other words than the metadata
// endpoint. These derive them from a View.

// HealthUnknown is the ECS API's health status of a container that has no check or
// has not decided.
const HealthUnknown = "UNKNOWN"

// LastStatus returns the container's lastStatus of the ECS API: PENDING, RUNNING, STOPPED.
func (c ContainerView) LastStatus() string {
	switch c.KnownStatus {
	case StatusRunning, StatusStopped:
		return c.KnownStatus
	default:
		return "PENDING"
	}
}

// HealthStatus returns the container's healthStatus of the ECS API: HEALTHY, UNHEALTHY, UNKNOWN.
func (c ContainerView) HealthStatus() string {
	if c.Health == nil || c.Health.Status == HealthStarting {
		return HealthUnknown
	}
	return c.Health.Status
}

// Waiting describes why a container is not up, or not healthy; empty for one that is, or
// has ended.
func (c ContainerView) Waiting() string {
	switch {
	case c.KnownStatus == StatusStopped:
		return ""
	case c.DesiredStatus == StatusStopped:
		return "is stopping"
	case len(c.WaitsFor) > 0:
		return "waits for " + c.Awaited()
	case c.KnownStatus != StatusRunning:
		return "has not started"
	case c.Health != nil && c.Health.Status == HealthStarting:
		return "has no health yet"
	case c.Health != nil && c.Health.Status == HealthUnhealthy:
		return "is UNHEALTHY"
	}
	return ""
}

// Awaited lists WaitsFor.
func (c ContainerView) Awaited() string {
	var on []string
	for _, d := range c.WaitsFor {
		on = append(on, d.ContainerName+" "+d.Condition)
	}
	return strings.Join(on, " and ")
}

// HealthStatus returns the task's healthStatus of the ECS API: that of its essential containers,
// UNKNOWN where one has no health check. CheckedHealth ignores such containers.
func (v View) HealthStatus() string {
	var statuses []string
	for _, c := range v.Containers {
		if c.Essential {
			statuses = append(statuses, c.HealthStatus())
		}
	}
	return worstHealth(statuses)
}

// ContainerHealth is what CheckedHealth needs to know of a container.
type ContainerHealth struct {
	Essential bool
	// Status is the healthStatus of the ECS API, and empty without a health check.
	Status string
}

// CheckedHealth returns the health of a task by its essential containers that have a health check:
// UNHEALTHY if one is, else UNKNOWN if one is not HEALTHY, else HEALTHY. It is empty if none has a
// health check.
func CheckedHealth(containers iter.Seq[ContainerHealth]) string {
	var statuses []string
	for c := range containers {
		if c.Essential && c.Status != "" {
			statuses = append(statuses, c.Status)
		}
	}
	if len(statuses) == 0 {
		return ""
	}
	return worstHealth(statuses)
}

// CheckedHealth returns the CheckedHealth of the task's containers.
func (v View) CheckedHealth() string {
	return CheckedHealth(func(yield func(ContainerHealth) bool) {
		for _, c := range v.Containers {
			h := ContainerHealth{Essential: c.Essential}
			if c.Health != nil {
				h.Status = c.HealthStatus()
			}
			if !yield(h) {
				return
			}
		}
	})
}

// Runs reports whether the task is RUNNING and not asked to stop.
func (v View) Runs() bool { return v.KnownStatus == StatusRunning && v.DesiredStatus == StatusRunning }

// Serves reports whether a service's task is one for callers: it runs, and is healthy or has no health check.
func (v View) Serves() bool {
	health := v.CheckedHealth()
	return v.Runs() && (health == "" || health == HealthHealthy)
}

// worstHealth returns the worst status: UNHEALTHY, then UNKNOWN, which stands for any other status,
// then HEALTHY.
func worstHealth(statuses []string) string {
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
