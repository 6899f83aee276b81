package scheduler

import (
	"time"

	"github.com/meshtask/consul-ecs/taskdef"
)

// Statuses of containers and tasks as the task metadata endpoint spells them, as far as Fargate shows them: a task is
// never PULLED, and nothing is ever CREATED without RUNNING.
const (
	StatusNone    = "NONE"
	StatusPulled  = "PULLED"
	StatusRunning = "RUNNING"
	StatusStopped = "STOPPED"
)

// Health statuses of a container. A container with a health check that has
// not decided yet has the empty status.
const (
	HealthStarting  = ""
	HealthHealthy   = "HEALTHY"
	HealthUnhealthy = "UNHEALTHY"
)

// Stop codes of a task.
const (
	StopEssentialContainerExited = "EssentialContainerExited"
	StopTaskFailedToStart        = "TaskFailedToStart"
	StopUserInitiated            = "UserInitiated"
	StopServiceScheduler         = "ServiceSchedulerInitiated"
	StopSpotInterruption         = "SpotInterruption"
	StopTerminationNotice        = "TerminationNotice"
	StopInfrastructureHealth     = "InfrastructureHealth"
)

// StoppedByUser is the reason that goes with StopUserInitiated unless the call has one.
const StoppedByUser = "Task stopped by user"

// SpotReason goes with StopSpotInterruption, in AWS's words ("Fargate Spot
// termination notices").
const SpotReason = "Your Spot Task was interrupted."

// EssentialExited is the reason that goes with StopEssentialContainerExited.
const EssentialExited = "Essential container in task exited"

// CannotPull begins the reason of a container whose image could not be pulled.
const CannotPull = "CannotPullContainerError"

// OutOfMemory is the reason of a container that the kernel has ended for its memory.
const OutOfMemory = "OutOfMemoryError: Container killed due to memory usage"

// View is what a task looks like from outside at one moment: a copy that
// the Task does not change. Times that have not come yet are zero.
type View struct {
	// DesiredStatus is RUNNING or STOPPED. KnownStatus is NONE until every
	// container is RUNNING or STOPPED, then RUNNING, then STOPPED.
	DesiredStatus, KnownStatus string
	// StopCode and StoppedReason are empty until the task begins to stop.
	StopCode, StoppedReason string

	PullStartedAt, PullStoppedAt time.Time
	// StartedAt is when the task became RUNNING, StoppingAt when its desired
	// status became STOPPED. Only the ECS API shows them.
	StartedAt, StoppingAt time.Time
	// ExecutionStoppedAt is when the first essential container was seen
	// STOPPED; StoppedAt when the last container was.
	ExecutionStoppedAt, StoppedAt time.Time

	// Containers are in the order of the task definition.
	Containers []ContainerView
}

// ContainerView is one container of a View.
type ContainerView struct {
	Name, Image string
	Essential   bool
	// DesiredStatus stays RUNNING when a non-essential container exits by
	// itself.
	DesiredStatus, KnownStatus string

	// WaitsFor are the dependencies that keep the container from starting, or kept one that
	// never will until it was dropped. No endpoint shows them.
	WaitsFor []taskdef.Dependency

	// StartedAt remains the first start when a restart policy starts the container again.
	StartedAt, FinishedAt time.Time
	// SignalledAt is when it was sent its stop signal, KilledAt when it was killed
	// since its stop timeout was over. No endpoint shows them.
	SignalledAt, KilledAt time.Time

	// ExitCode is nil while running, when it never started, and when it is
	// between two runs of a restart policy.
	ExitCode *int
	// Reason explains a container that failed; never shown by the metadata
	// endpoint, only by the ECS API.
	Reason string
	// Health is nil for a container without a health check.
	Health *HealthView
	// RestartCount is nil without an enabled restart policy.
	RestartCount *int
}

// HealthView is the health of one container as of its last status change.
type HealthView struct {
	// Status is HealthStarting, HealthHealthy or HealthUnhealthy.
	Status string
	Since  time.Time
	// ExitCode is the probe's code on becoming unhealthy; recovery does not
	// clear it.
	ExitCode int
	// Output is that of the deciding probe, at most 1024 bytes.
	Output string
}

// Container returns the container of that name.
func (v View) Container(name string) (ContainerView, bool) {
	for _, c := range v.Containers {
		if c.Name == name {
			return c, true
		}
	}
	return ContainerView{}, false
}
