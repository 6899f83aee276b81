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

// Service is a service. Its exported fields are what Reconcile uses.
type Service struct {
	Name string
	// Desired is the number of tasks.
	Desired int
	// Draining means that the service was deleted: all its tasks stop.
	Draining bool
	// MinHealthy and Max are percentages of Desired.
	MinHealthy, Max int
	Breaker         shapes.CircuitBreaker
	// HealthyAfter is how long a task without a health check runs before it counts as healthy.
	HealthyAfter time.Duration
	// Grace is how long after its start an unhealthy task is left alone.
	Grace time.Duration
	// Deployments begin with the primary one; there is always one.
	Deployments []*Deployment

	history []*Deployment // since the service was created, newest first
	began   int           // deployments so far

	steady  bool
	blocked string // why it cannot make progress, in the last event about it

	cluster string
	// status is ACTIVE, DRAINING or INACTIVE.
	status         string
	propagate      string
	rebalance      string // between zones
	tags           []shapes.Tag
	grace          *int // nil until a call sets it
	alarms         *shapes.Alarms
	early          *shapes.EarlySuccess
	created, ended time.Time
	createdBy      string
	events         []shapes.ServiceEvent // newest first
	first          string                // fingerprint of CreateService
}

// Deployment is one version of a service.
type Deployment struct {
	// ID is ecs-svc/ and digits.
	ID string
	// Rollout is IN_PROGRESS, COMPLETED or FAILED; Reason is its description.
	Rollout, Reason  string
	Created, Updated time.Time
	// FailedTasks counts tasks that failed before they were healthy. The first healthy one sets it
	// to 0, and unless the circuit breaker does not reset, tasks are not counted any more.
	FailedTasks int

	run        shapes.RunTaskInput    // its tasks; TaskDefinition is an ARN
	connect    *shapes.ServiceConnect // nil without
	registries []shapes.ServiceRegistry

	proven    bool            // a task has been healthy since the rollout began
	completed bool            // once, so that a rollback may return to it
	counted   map[string]bool // tasks that have failed
	healthy   map[string]bool // tasks that have been healthy
	rounds    int             // of failures since a task was healthy
	notBefore time.Time       // when the next task may start
	failed    time.Time       // when the circuit breaker ended it
	outcome   outcome
}

// NewDeployment returns the start of a rollout.
func NewDeployment(id string, now time.Time) *Deployment {
	return &Deployment{
		ID: id, Rollout: InProgress, Reason: "ECS deployment " + id + " in progress.", Created: now, Updated: now,
		counted: map[string]bool{}, healthy: map[string]bool{}, outcome: newOutcome(),
	}
}

// Task is a task of a service.
type Task struct {
	ID, Deployment string
	// Last and Wanted are the statuses of the API.
	Last, Wanted, StopCode string
	// Health is its View.CheckedHealth of package scheduler.
	Health string
	// Started is when the task was RUNNING, zero before.
	Started time.Time
	// Protected is from scale-in and deployments.
	Protected bool
}

func (t Task) live() bool { return t.Wanted == shapes.Running && t.Last != shapes.Stopped }

// Running reports whether the task is in its service's runningCount.
func (t Task) Running() bool { return t.live() && t.Last == shapes.Running }

// Stop is a task to stop, and the reason that the task will show.
type Stop struct{ Task, Reason string }

// Actions are the result of Reconcile. Events are for the service's list, oldest
// first.
type Actions struct {
	Start  int // tasks of the primary deployment
	Stop   []Stop
	Events []string
}

// Began makes a deployment the primary one.
func (s *Service) Began(d *Deployment) {
	s.record(d)
	s.Deployments = append([]*Deployment{d}, s.Deployments...)
	s.steady = false
}
