package metadata

import (
	"math"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
)

// under is the moment by the clock of the condition: the agent's own, which
// stamps all times. A clock that is off is one that is not synchronized.
func (m Moment) under(c iam.Condition) Moment {
	if c.Ahead == 0 {
		return m
	}
	v := &m.View
	for _, t := range []*time.Time{&v.PullStartedAt, &v.PullStoppedAt, &v.ExecutionStoppedAt} {
		*t = c.Shift(*t)
	}
	v.Containers = slices.Clone(v.Containers)
	for i := range v.Containers {
		container := &v.Containers[i]
		for _, t := range []*time.Time{&container.CreatedAt, &container.StartedAt, &container.FinishedAt} {
			*t = c.Shift(*t)
		}
		if container.Health != nil {
			health := *container.Health
			health.Since = c.Shift(health.Since)
			container.Health = &health
		}
	}
	if m.Clock != nil {
		m.Clock = &ClockDrift{
			ClockErrorBound:            math.Abs(float64(c.Ahead.Milliseconds())),
			ReferenceTimestamp:         c.Shift(m.Clock.ReferenceTimestamp),
			ClockSynchronizationStatus: "NOT_SYNCHRONIZED",
		}
	}
	return m
}
