package shapes

import (
	"strings"

	"github.com/meshtask/consul-ecs/taskdef"
)

// Statuses of a task.
const (
	Provisioning   = "PROVISIONING"
	Pending        = "PENDING"
	Activating     = "ACTIVATING"
	Running        = "RUNNING"
	Deprovisioning = "DEPROVISIONING"
	Stopped        = "STOPPED"
)

// Statuses of everything that lives longer than a task.
const (
	Active           = "ACTIVE"
	Inactive         = "INACTIVE"
	DeleteInProgress = "DELETE_IN_PROGRESS"
	// Missing is the reason of a failure about what does not exist.
	Missing = "MISSING"
)

// Fargate is the launch type that localecs has, and the name of its capacity
// provider.
const Fargate = "FARGATE"

// PlatformVersion is the one whose ways localecs has.
const PlatformVersion = "1.4.0"

// Tag is a tag of a resource.
type Tag = taskdef.Tag

// Failure is about one of several things that a call names.
type Failure struct {
	ARN    string `json:"arn,omitzero"`
	Reason string `json:"reason"`
}

// NameValue is a detail of an attachment, or an attribute.
type NameValue struct {
	Name  string `json:"name"`
	Value string `json:"value,omitzero"`
}

// Attachment is a task's network interface.
type Attachment struct {
	ID string `json:"id"`
	// Type is ElasticNetworkInterface.
	Type string `json:"type"`
	// Status is PRECREATED, ATTACHING, ATTACHED, DETACHING or DELETED.
	Status  string      `json:"status"`
	Details []NameValue `json:"details"`
}

// NetworkInterface is the same, seen from a container.
type NetworkInterface struct {
	AttachmentID string `json:"attachmentId"`
	IPv4         string `json:"privateIpv4Address"`
}

// Container is a container of a Task.
type Container struct {
	ContainerARN      string             `json:"containerArn"`
	TaskARN           string             `json:"taskArn"`
	Name              string             `json:"name"`
	Image             string             `json:"image"`
	ImageDigest       string             `json:"imageDigest,omitzero"`
	RuntimeID         string             `json:"runtimeId,omitzero"`
	LastStatus        string             `json:"lastStatus"`
	ExitCode          *int               `json:"exitCode,omitzero"`
	Reason            string             `json:"reason,omitzero"`
	NetworkInterfaces []NetworkInterface `json:"networkInterfaces"`
	HealthStatus      string             `json:"healthStatus,omitzero"`
	// CPU, Memory and MemoryReservation are decimal, in units and MiB.
	CPU               string `json:"cpu"`
	Memory            string `json:"memory,omitzero"`
	MemoryReservation string `json:"memoryReservation,omitzero"`
}

// Task is a task as DescribeTasks shows it.
type Task struct {
	Attachments          []Attachment      `json:"attachments"`
	Attributes           []NameValue       `json:"attributes"`
	AvailabilityZone     string            `json:"availabilityZone"`
	CapacityProviderName string            `json:"capacityProviderName,omitzero"`
	ClusterARN           string            `json:"clusterArn"`
	Connectivity         string            `json:"connectivity,omitzero"`
	ConnectivityAt       Time              `json:"connectivityAt,omitzero"`
	Containers           []Container       `json:"containers"`
	CPU                  string            `json:"cpu,omitzero"`
	CreatedAt            Time              `json:"createdAt"`
	DesiredStatus        string            `json:"desiredStatus"`
	EnableExecuteCommand bool              `json:"enableExecuteCommand"`
	ExecutionStoppedAt   Time              `json:"executionStoppedAt,omitzero"`
	Group                string            `json:"group"`
	HealthStatus         string            `json:"healthStatus,omitzero"`
	LastStatus           string            `json:"lastStatus"`
	LaunchType           string            `json:"launchType"`
	Memory               string            `json:"memory,omitzero"`
	Overrides            Overrides         `json:"overrides"`
	PlatformVersion      string            `json:"platformVersion"`
	PlatformFamily       string            `json:"platformFamily"`
	PullStartedAt        Time              `json:"pullStartedAt,omitzero"`
	PullStoppedAt        Time              `json:"pullStoppedAt,omitzero"`
	StartedAt            Time              `json:"startedAt,omitzero"`
	StartedBy            string            `json:"startedBy,omitzero"`
	StopCode             string            `json:"stopCode,omitzero"`
	StoppedAt            Time              `json:"stoppedAt,omitzero"`
	StoppedReason        string            `json:"stoppedReason,omitzero"`
	StoppingAt           Time              `json:"stoppingAt,omitzero"`
	Tags                 []Tag             `json:"tags"`
	TaskARN              string            `json:"taskArn"`
	TaskDefinitionARN    string            `json:"taskDefinitionArn"`
	Version              int               `json:"version"`
	EphemeralStorage     *EphemeralStorage `json:"ephemeralStorage,omitzero"`
	FargateStorage       *EphemeralStorage `json:"fargateEphemeralStorage,omitzero"`
}

// ID returns the last part of the task's ARN.
func (t Task) ID() string { return t.TaskARN[strings.LastIndex(t.TaskARN, "/")+1:] }

// Revision returns the last part of its task definition's ARN: family:number.
func (t Task) Revision() string {
	return t.TaskDefinitionARN[strings.LastIndex(t.TaskDefinitionARN, "/")+1:]
}

// Family returns the family of its task definition.
func (t Task) Family() string {
	family, _, _ := strings.Cut(t.Revision(), ":")
	return family
}

// EphemeralStorage is a task's disk.
type EphemeralStorage = taskdef.EphemeralStorage

// Overrides replace parts of a task definition for one task.
type Overrides struct {
	Containers       []ContainerOverride `json:"containerOverrides"`
	Accelerators     []map[string]any    `json:"inferenceAcceleratorOverrides"`
	CPU              string              `json:"cpu,omitzero"`
	Memory           string              `json:"memory,omitzero"`
	ExecutionRoleARN string              `json:"executionRoleArn,omitzero"`
	TaskRoleARN      string              `json:"taskRoleArn,omitzero"`
	EphemeralStorage *EphemeralStorage   `json:"ephemeralStorage,omitzero"`
}

// ContainerOverride replaces parts of one container.
type ContainerOverride struct {
	Name              string                        `json:"name,omitzero"`
	Command           []string                      `json:"command,omitzero"`
	Environment       []EnvironmentVariable         `json:"environment,omitzero"`
	EnvironmentFiles  []taskdef.EnvironmentFile     `json:"environmentFiles,omitzero"`
	CPU               *int                          `json:"cpu,omitzero"`
	Memory            *int                          `json:"memory,omitzero"`
	MemoryReservation *int                          `json:"memoryReservation,omitzero"`
	Resources         []taskdef.ResourceRequirement `json:"resourceRequirements,omitzero"`
}

// EnvironmentVariable is a variable of an override.
type EnvironmentVariable = taskdef.KeyValue

// NetworkConfiguration is where a task's interface is.
type NetworkConfiguration struct {
	AWSVPC *VPCConfiguration `json:"awsvpcConfiguration,omitzero"`
}

// VPCConfiguration is the only kind there is.
type VPCConfiguration struct {
	Subnets        []string `json:"subnets,omitzero"`
	SecurityGroups []string `json:"securityGroups,omitzero"`
	// AssignPublicIP is ENABLED or DISABLED.
	AssignPublicIP string `json:"assignPublicIp,omitzero"`
}

// StrategyItem is one item of a capacity provider strategy.
type StrategyItem struct {
	CapacityProvider string `json:"capacityProvider"`
	Weight           int    `json:"weight"`
	Base             int    `json:"base"`
}
