package metadata

import (
	"math"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
)

// Snapshot is the state of a task for one request: its constant facts and the
// scheduler's state.
type Snapshot struct {
	Facts Facts
	View  scheduler.View
	// Clock and Storage change independently of the scheduler; nil leaves them out.
	Clock   *ClockDrift
	Storage *EphemeralStorage
}

// statusLag is how long the metadata of a task that runs have it as NONE. Fargate's first answer
// does, while it has the asking container as RUNNING; for how long is not published. The ECS
// agent on EC2 derives the task's status in the same step as the container's.
const statusLag = time.Second

// At returns a snapshot of a task of Fargate, on a machine whose clock is synchronized and whose
// storage is empty.
func At(now time.Time, f Facts, v scheduler.View) Snapshot {
	if v.DesiredStatus == scheduler.StatusRunning && v.KnownStatus == scheduler.StatusRunning &&
		now.Sub(v.StartedAt) < statusLag {
		v.KnownStatus = scheduler.StatusNone
	}
	return Snapshot{
		Facts: f, View: v,
		Clock:   &ClockDrift{ClockErrorBound: 0.5, ReferenceTimestamp: now, ClockSynchronizationStatus: "SYNCHRONIZED"},
		Storage: &EphemeralStorage{Utilized: 208, Reserved: 20496},
	}
}

// Facts are the constant attributes of a task.
type Facts struct {
	ClusterARN       string
	TaskARN          string
	Family           string
	Revision         string
	AvailabilityZone string
	// Limits are the task's: vCPU and MiB; nil when the task has none.
	Limits *TaskLimits
	// ServiceName is not shown; a task without one cannot be protected.
	ServiceName string
	// HasRole reports whether there is a task role, which protection needs.
	HasRole bool
	Network Network
	// FaultInjection is enableFaultInjection of the task definition.
	FaultInjection bool
	// Containers are by container name. A container of the View that is not
	// here is left out.
	Containers map[string]ContainerFacts
}

// TaskLimits are a task's resources.
type TaskLimits struct {
	// CPU is in vCPU, 0.5 for 512 units.
	CPU float64 `json:"CPU,omitempty"`
	// Memory is in MiB.
	Memory int64 `json:"Memory,omitempty"`
}

// Network is the task's only interface (awsvpc).
type Network struct {
	// IP is the task's address, MAC its interface's.
	IP, MAC string
	// CIDR is the subnet's, e.g. 10.0.1.0/24; Gateway its router's address.
	CIDR, Gateway string
	// Resolver is the name server's address.
	Resolver string
	// PrivateDNSName is ip-10-0-1-23.<region>.compute.internal; what follows
	// its first dot is the search domain.
	PrivateDNSName string
}

// ContainerFacts are the constant attributes of a container.
type ContainerFacts struct {
	// EndpointID is the last part of ECS_CONTAINER_METADATA_URI_V4: <32-hex task
	// ID>-<10 digits>, equal to DockerID.
	EndpointID string
	DockerID   string
	// ImageID is sha256:<hex>.
	ImageID string
	// Labels are the task definition's dockerLabels; the agent's own are added.
	Labels map[string]string
	// CPU (units) and Memory (hard limit, MiB) are 0 when unset.
	CPU, Memory int64
	LogDriver   string
	LogOptions  map[string]string
	// ContainerARN is arn:...:container/<cluster>/<task ID>/<uuid>.
	ContainerARN string
	Ports        []Port
}

// Port is a declared port.
type Port struct {
	ContainerPort uint16 `json:"ContainerPort,omitempty"`
	// Protocol is tcp or udp.
	Protocol string `json:"Protocol,omitempty"`
	HostPort uint16 `json:"HostPort,omitempty"`
}

// ClockDrift is Fargate's report on the host clock.
type ClockDrift struct {
	// ClockErrorBound is in milliseconds.
	ClockErrorBound float64 `json:"ClockErrorBound,omitempty"`
	// ReferenceTimestamp is shown in seconds.
	ReferenceTimestamp time.Time `json:"ReferenceTimestamp,omitzero"`
	// ClockSynchronizationStatus is SYNCHRONIZED or NOT_SYNCHRONIZED.
	ClockSynchronizationStatus string `json:"ClockSynchronizationStatus,omitempty"`
}

// EphemeralStorage is the task's disk, in MiB.
type EphemeralStorage struct {
	Utilized int64
	Reserved int64
}

func (f Facts) container(endpointID string) (string, ContainerFacts, bool) {
	for name, c := range f.Containers {
		if c.EndpointID == endpointID {
			return name, c, true
		}
	}
	return "", ContainerFacts{}, false
}

// under returns the snapshot by the clock of the condition: the agent's own, which stamps all times. A
// clock that is off is one that is not synchronized.
func (m Snapshot) under(c iam.Condition) Snapshot {
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
		for _, t := range []*time.Time{&container.StartedAt, &container.FinishedAt} {
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
