package scheduler

import (
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/taskdef"
)

// dependency is one edge to a container that must get somewhere first.
type dependency struct {
	on        *container
	condition string
}

// container is the state of one container of a Task.
type container struct {
	name, image  string
	essential    bool
	dependencies []dependency
	dependents   []*container

	startTimeout  time.Duration // 0: none
	stopTimeout   time.Duration
	restartPolicy *taskdef.RestartPolicy // nil: none
	restartPeriod time.Duration

	desired, known string
	// pulling and starting mean that an action has no result yet.
	pulling, starting bool
	// waitsFor are the dependencies that were not met when it was last to start.
	waitsFor []taskdef.Dependency

	startedAt    time.Time // first start
	runStartedAt time.Time // start of the present or last run
	finishedAt   time.Time
	exitCode     *int // of the last run that ended
	reason       string
	restarts     int

	signalledAt, killedAt time.Time
	// killed reports whether a Kill was requested; killedAt is zero unless it was for
	// the stop timeout.
	killed bool

	health *health // nil: no health check
}

func newContainer(def *taskdef.Container, opts Options) *container {
	c := &container{
		name: def.Name, image: def.Image, essential: def.IsEssential(),
		startTimeout: opts.scaled(taskdef.Or(def.StartTimeout, 0)),
		stopTimeout:  opts.scaled(taskdef.Or(def.StopTimeout, taskdef.DefaultStopTimeout)),
		desired:      StatusRunning, known: StatusNone,
	}
	if r := def.RestartPolicy; r != nil && r.Enabled {
		c.restartPolicy = r
		c.restartPeriod = opts.scaled(taskdef.Or(r.RestartAttemptPeriod, taskdef.DefaultRestartAttemptPeriod))
	}
	if def.HealthCheck.Enabled() {
		c.health = newHealth(def.HealthCheck, opts)
	}
	return c
}

func (c *container) signalled() bool { return !c.signalledAt.IsZero() }

// running reports whether a process runs; it does not between two runs of a
// restart policy.
func (c *container) running() bool { return c.known == StatusRunning && !c.starting }

// neverStarted reports whether the container is STOPPED without having run.
func (c *container) neverStarted() bool {
	return c.known == StatusStopped && c.startedAt.IsZero()
}

// mayRestart applies the restart policy to an exit at the given time.
func (c *container) mayRestart(code int, at time.Time) bool {
	return c.restartPolicy != nil && c.desired == StatusRunning &&
		!slices.Contains(c.restartPolicy.IgnoredExitCodes, code) &&
		at.Sub(c.runStartedAt) >= c.restartPeriod
}

// due lists when the container needs a Tick, but for the gate that it waits at.
func (c *container) due() []time.Time {
	var due []time.Time
	if c.running() && c.health != nil && !c.health.probing {
		due = append(due, c.health.nextProbe)
	}
	if c.running() && c.signalled() && !c.killed {
		due = append(due, c.signalledAt.Add(c.stopTimeout))
	}
	return due
}

// deadlines lists when the start timeouts end the container's wait at its gate.
func (c *container) deadlines() []time.Time {
	var due []time.Time
	for _, d := range c.dependencies {
		if at, limited := d.deadline(); limited && c.waiting() {
			due = append(due, at)
		}
	}
	return due
}

func (c *container) view() ContainerView {
	v := ContainerView{
		Name: c.name, Image: c.image, Essential: c.essential,
		DesiredStatus: c.desired, KnownStatus: c.known,
		StartedAt: c.startedAt, FinishedAt: c.finishedAt,
		WaitsFor: c.waitsFor, Reason: c.reason, SignalledAt: c.signalledAt, KilledAt: c.killedAt,
	}
	if c.exitCode != nil && c.known == StatusStopped {
		code := *c.exitCode
		v.ExitCode = &code
	}
	if c.restartPolicy != nil {
		count := c.restarts
		v.RestartCount = &count
	}
	if c.health != nil {
		health := c.health.shown
		v.Health = &health
	}
	return v
}
