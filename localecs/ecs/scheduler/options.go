package scheduler

import "time"

// Options are what differs between agents, and conveniences. The zero value
// is today's Fargate, except that gates open at once.
type Options struct {
	// AtOnce signals every container of a stopping task at once, as older agents do.
	// Otherwise a container is signalled when everything that depends on it has
	// stopped: agent 1.26.0 and later, Fargate platform 1.3.0 and later.
	AtOnce bool
	// GatePeriod is how long the agent polls while only dependencies keep containers from
	// starting, 5 s. Events are recorded meanwhile and acted on after it: gates open, start
	// timeouts and failed dependencies count, and a stop signals the others. 0 means at once.
	GatePeriod time.Duration
	// TimeScale divides every duration of the task definition; 0 means 1.
	TimeScale float64
}

// scaled turns seconds of a task definition into a duration.
func (o Options) scaled(seconds int) time.Duration {
	d := time.Duration(seconds) * time.Second
	if o.TimeScale > 0 {
		d = time.Duration(float64(d) / o.TimeScale)
	}
	return d
}
