package taskdef

import (
	"slices"
	"strings"
)

// LinuxParameters are kernel settings of a container. Sizes are in MiB.
type LinuxParameters struct {
	Capabilities       *Capabilities `json:"capabilities,omitzero"`
	Devices            []Device      `json:"devices,omitzero"`
	InitProcessEnabled *bool         `json:"initProcessEnabled,omitzero"`
	SharedMemorySize   *int          `json:"sharedMemorySize,omitzero"`
	Tmpfs              []Tmpfs       `json:"tmpfs,omitzero"`
	MaxSwap            *int          `json:"maxSwap,omitzero"`
	Swappiness         *int          `json:"swappiness,omitzero"`
}

// Capabilities are Linux capabilities without the CAP_ prefix.
type Capabilities struct {
	Add  []string `json:"add,omitzero"`
	Drop []string `json:"drop,omitzero"`
}

// Adds reports whether the parameters, which may be nil, add a capability.
func (l *LinuxParameters) Adds(capability string) bool {
	return l != nil && l.Capabilities != nil && slices.Contains(l.Capabilities.Add, capability)
}

// Device is a host device.
type Device struct {
	HostPath      string   `json:"hostPath,omitzero"`
	ContainerPath string   `json:"containerPath,omitzero"`
	Permissions   []string `json:"permissions,omitzero"`
}

// Tmpfs is a memory file system; Size is in MiB.
type Tmpfs struct {
	ContainerPath string   `json:"containerPath,omitzero"`
	Size          int      `json:"size,omitzero"`
	MountOptions  []string `json:"mountOptions,omitzero"`
}

// Ulimit is one resource limit.
type Ulimit struct {
	Name      string `json:"name,omitzero"`
	SoftLimit int    `json:"softLimit"`
	HardLimit int    `json:"hardLimit"`
}

// HostEntry is a line of /etc/hosts.
type HostEntry struct {
	Hostname  string `json:"hostname,omitzero"`
	IPAddress string `json:"ipAddress,omitzero"`
}

// SystemControl is a namespaced sysctl.
type SystemControl struct {
	Namespace string `json:"namespace,omitzero"`
	Value     string `json:"value,omitzero"`
}

// TypeValue is a resource requirement such as a GPU, or a proxy's kind.
type TypeValue struct {
	Type  string `json:"type,omitzero"`
	Value string `json:"value,omitzero"`
}

// Firelens makes a container the task's log router.
type Firelens struct {
	Type    string            `json:"type,omitzero"`
	Options map[string]string `json:"options,omitzero"`
}

// RepositoryCredentials names the secret for a private registry.
type RepositoryCredentials struct {
	CredentialsParameter string `json:"credentialsParameter,omitzero"`
}

// Volume is a volume of the task: with no further key an empty directory that
// lives as long as the task.
type Volume struct {
	Name               string         `json:"name,omitzero"`
	Host               *HostVolume    `json:"host,omitzero"`
	ConfiguredAtLaunch *bool          `json:"configuredAtLaunch,omitzero"`
	Docker             *DockerVolume  `json:"dockerVolumeConfiguration,omitzero"`
	EFS                *EFSVolume     `json:"efsVolumeConfiguration,omitzero"`
	FSxWindows         map[string]any `json:"fsxWindowsFileServerVolumeConfiguration,omitzero"`
}

// HostVolume is a directory of the host; without SourcePath it is a per-task
// directory.
type HostVolume struct {
	SourcePath string `json:"sourcePath,omitzero"`
}

// DockerVolume is a volume of the Docker daemon.
type DockerVolume struct {
	Scope         string            `json:"scope,omitzero"`
	Autoprovision *bool             `json:"autoprovision,omitzero"`
	Driver        string            `json:"driver,omitzero"`
	DriverOpts    map[string]string `json:"driverOpts,omitzero"`
	Labels        map[string]string `json:"labels,omitzero"`
}

// EFSVolume is an Amazon EFS file system.
type EFSVolume struct {
	FileSystemID          string            `json:"fileSystemId,omitzero"`
	RootDirectory         string            `json:"rootDirectory,omitzero"`
	TransitEncryption     string            `json:"transitEncryption,omitzero"`
	TransitEncryptionPort *int              `json:"transitEncryptionPort,omitzero"`
	AuthorizationConfig   *EFSAuthorization `json:"authorizationConfig,omitzero"`
}

// EFSAuthorization is how an EFS volume is mounted.
type EFSAuthorization struct {
	AccessPointID string `json:"accessPointId,omitzero"`
	IAM           string `json:"iam,omitzero"`
}

// Tag is a resource tag.
type Tag struct {
	Key   string `json:"key,omitzero"`
	Value string `json:"value"`
}

// PlacementConstraint restricts the container instances; EC2 only.
type PlacementConstraint struct {
	Type       string `json:"type,omitzero"`
	Expression string `json:"expression,omitzero"`
}

// ProxyConfiguration is App Mesh's.
type ProxyConfiguration struct {
	Type          string     `json:"type,omitzero"`
	ContainerName string     `json:"containerName,omitzero"`
	Properties    []KeyValue `json:"properties,omitzero"`
}

// InferenceAccelerator is an Elastic Inference device.
type InferenceAccelerator struct {
	DeviceName string `json:"deviceName,omitzero"`
	DeviceType string `json:"deviceType,omitzero"`
}

// EphemeralStorage is the task's disk on Fargate.
type EphemeralStorage struct {
	SizeInGiB int `json:"sizeInGiB,omitzero"`
}

// RuntimePlatform is the processor and system a task needs.
type RuntimePlatform struct {
	CPUArchitecture       string `json:"cpuArchitecture,omitzero"`
	OperatingSystemFamily string `json:"operatingSystemFamily,omitzero"`
}

// IsWindows reports whether the task needs Windows of any version.
func (p *RuntimePlatform) IsWindows() bool {
	return p != nil && strings.HasPrefix(p.OperatingSystemFamily, "WINDOWS_")
}
