package controlplane

import (
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// States of a rollout.
const (
	InProgress = "IN_PROGRESS"
	Completed  = "COMPLETED"
	Failed     = "FAILED"
)

// Service is a service as its scheduler knows it.
type Service struct {
	Name string
	// Desired is how many tasks there are to be.
	Desired int
	// Draining says that the service was deleted: all its tasks go.
	Draining bool
	// MinHealthy and Max are percentages of Desired.
	MinHealthy, Max int
	Breaker         Breaker
	// Grace is how long after its start an unhealthy task is left alone.
	Grace time.Duration
	// Deployments begin with the primary one; there is always one.
	Deployments []*Deployment

	steady  bool
	blocked string // why it cannot go on, as an event has said
}

// Breaker is the deployment circuit breaker.
type Breaker struct{ Enable, Rollback bool }

// Deployment is one version of a service.
type Deployment struct {
	// ID is ecs-svc/ and digits.
	ID string
	// Rollout is IN_PROGRESS, COMPLETED or FAILED; Reason says more.
	Rollout, Reason  string
	Created, Updated time.Time
	// FailedTasks counts tasks that failed before the first one was well; from
	// then on it is 0.
	FailedTasks int

	proven    bool            // a task has been well since the rollout began
	completed bool            // once, so that a rollback may return to it
	counted   map[string]bool // tasks that have failed
	healthy   map[string]bool // tasks that have been well
	rounds    int             // of failures to start
	notBefore time.Time       // when the next task may start
}

// NewDeployment begins a rollout.
func NewDeployment(id string, now time.Time) *Deployment {
	return &Deployment{
		ID: id, Rollout: InProgress, Reason: "ECS deployment " + id + " in progress.", Created: now, Updated: now,
		counted: map[string]bool{}, healthy: map[string]bool{},
	}
}

// Task is a task of a service.
type Task struct {
	ID, Deployment string
	// Last and Wanted are the statuses of the API.
	Last, Wanted, StopCode string
	// Probed says that the definition has health checks; Health is their result.
	Probed bool
	Health string
	// Started is when the task was RUNNING, zero before.
	Started time.Time
	// Protected is from scale-in and deployments.
	Protected bool
}

// live reports whether the task counts at all.
func (t Task) live() bool { return t.Wanted == shapes.Running && t.Last != shapes.Stopped }

// Running reports whether the task is in its service's runningCount.
func (t Task) Running() bool { return t.live() && t.Last == shapes.Running }

// Pending reports whether the task is in its service's pendingCount.
func (t Task) Pending() bool { return t.live() && t.Last != shapes.Running }

// well reports whether the task counts for minimumHealthyPercent.
func (t Task) well() bool { return t.Running() && (!t.Probed || t.Health == "HEALTHY") }

// Stop is a task to stop, and the reason that the task will show.
type Stop struct{ Task, Reason string }

// Actions are what is to be done. Events are for the service's list, oldest
// first.
type Actions struct {
	Start  int // tasks of the primary deployment
	Stop   []Stop
	Events []string
}

// Began makes a deployment the primary one. One that has been superseded before
// it was complete is no aim of a rollback.
func (s *Service) Began(d *Deployment) {
	s.Deployments = append([]*Deployment{d}, s.Deployments...)
	s.steady = false
}

// Changed says that the wish has changed: a steady state is to be told again.
func (s *Service) Changed() { s.steady = false }
