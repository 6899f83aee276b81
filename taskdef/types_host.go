package taskdef

import "strings"

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

// Device is a host device.
type Device struct {
	HostPath      string   `json:"hostPath,omitzero" ecs:"required"`
	ContainerPath string   `json:"containerPath,omitzero"`
	Permissions   []string `json:"permissions,omitzero" ecs:"enum=read|write|mknod"`
}

// Tmpfs is a memory file system; Size is in MiB.
type Tmpfs struct {
	ContainerPath string   `json:"containerPath,omitzero" ecs:"required"`
	Size          int      `json:"size,omitzero"`
	MountOptions  []string `json:"mountOptions,omitzero"`
}

// Ulimit is one resource limit.
type Ulimit struct {
	Name      string `json:"name,omitzero" ecs:"required"`
	SoftLimit int    `json:"softLimit" ecs:"required"`
	HardLimit int    `json:"hardLimit" ecs:"required"`
}

// HostEntry is a line of /etc/hosts.
type HostEntry struct {
	Hostname  string `json:"hostname,omitzero" ecs:"required"`
	IPAddress string `json:"ipAddress,omitzero" ecs:"required"`
}

// SystemControl is a namespaced sysctl.
type SystemControl struct {
	Namespace string `json:"namespace,omitzero"`
	Value     string `json:"value,omitzero"`
}

// ResourceRequirement is a device that a container needs, such as a GPU.
type ResourceRequirement struct {
	Type            string           `json:"type,omitzero" ecs:"required,enum=GPU|InferenceAccelerator|NeuronDevice"`
	Value           string           `json:"value,omitzero"`
	SharingStrategy *SharingStrategy `json:"sharingStrategy,omitzero"`
}

// SharingStrategy is how containers share a GPU.
type SharingStrategy struct {
	NVIDIAMPS *NVIDIAMPS `json:"nvidiaMps,omitzero"`
}

// NVIDIAMPS are the limits of a container in NVIDIA's Multi-Process Service.
type NVIDIAMPS struct {
	Memory            *int `json:"memory,omitzero" ecs:"required,range=1-2147483647"`
	MaxComputePercent *int `json:"maxComputePercent,omitzero" ecs:"range=1-100"`
}

// Firelens makes a container the task's log router.
type Firelens struct {
	Type    string            `json:"type,omitzero" ecs:"required,enum=fluentd|fluentbit"`
	Options map[string]string `json:"options,omitzero"`
}

// RepositoryCredentials names the secret for a private registry.
type RepositoryCredentials struct {
	CredentialsParameter string `json:"credentialsParameter,omitzero" ecs:"required"`
}

// Volume is a volume of the task: with no further key an empty directory that
// lives as long as the task.
type Volume struct {
	Name               string            `json:"name,omitzero"`
	Host               *HostVolume       `json:"host,omitzero"`
	ConfiguredAtLaunch *bool             `json:"configuredAtLaunch,omitzero"`
	Docker             *DockerVolume     `json:"dockerVolumeConfiguration,omitzero"`
	EFS                *EFSVolume        `json:"efsVolumeConfiguration,omitzero"`
	S3Files            *S3FilesVolume    `json:"s3filesVolumeConfiguration,omitzero"`
	FSxWindows         *FSxWindowsVolume `json:"fsxWindowsFileServerVolumeConfiguration,omitzero"`
}

// HostVolume is a directory of the host; without SourcePath it is a per-task
// directory.
type HostVolume struct {
	SourcePath string `json:"sourcePath,omitzero"`
}

// DockerVolume is a volume of the Docker daemon.
type DockerVolume struct {
	Scope         string            `json:"scope,omitzero" ecs:"enum=task|shared"`
	Autoprovision *bool             `json:"autoprovision,omitzero"`
	Driver        string            `json:"driver,omitzero"`
	DriverOpts    map[string]string `json:"driverOpts,omitzero"`
	Labels        map[string]string `json:"labels,omitzero"`
}

// EFSVolume is an Amazon EFS file system.
type EFSVolume struct {
	FileSystemID          string            `json:"fileSystemId,omitzero" ecs:"required"`
	RootDirectory         string            `json:"rootDirectory,omitzero"`
	TransitEncryption     string            `json:"transitEncryption,omitzero" ecs:"enum=ENABLED|DISABLED"`
	TransitEncryptionPort *int              `json:"transitEncryptionPort,omitzero"`
	AuthorizationConfig   *EFSAuthorization `json:"authorizationConfig,omitzero"`
}

// EFSAuthorization is how an EFS volume is mounted.
type EFSAuthorization struct {
	AccessPointID string `json:"accessPointId,omitzero"`
	IAM           string `json:"iam,omitzero" ecs:"enum=ENABLED|DISABLED"`
}

// S3FilesVolume is an Amazon S3 Files file system.
type S3FilesVolume struct {
	FileSystemARN         string `json:"fileSystemArn,omitzero" ecs:"required"`
	RootDirectory         string `json:"rootDirectory,omitzero"`
	TransitEncryptionPort *int   `json:"transitEncryptionPort,omitzero"`
	AccessPointARN        string `json:"accessPointArn,omitzero"`
}

// FSxWindowsVolume is an Amazon FSx for Windows File Server file system.
type FSxWindowsVolume struct {
	FileSystemID        string            `json:"fileSystemId,omitzero" ecs:"required" cfn:"FileSystemId"`
	RootDirectory       string            `json:"rootDirectory,omitzero" ecs:"required"`
	AuthorizationConfig *FSxAuthorization `json:"authorizationConfig,omitzero" ecs:"required"`
}

// FSxAuthorization is the account with which an FSx volume is mounted.
type FSxAuthorization struct {
	CredentialsParameter string `json:"credentialsParameter,omitzero" ecs:"required"`
	Domain               string `json:"domain,omitzero" ecs:"required"`
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
	Type          string     `json:"type,omitzero" ecs:"enum=APPMESH"`
	ContainerName string     `json:"containerName,omitzero"`
	Properties    []KeyValue `json:"properties,omitzero"`
}

// InferenceAccelerator is an Elastic Inference device.
type InferenceAccelerator struct {
	DeviceName string `json:"deviceName,omitzero" ecs:"required"`
	DeviceType string `json:"deviceType,omitzero" ecs:"required"`
}

// EphemeralStorage is the task's disk on Fargate.
type EphemeralStorage struct {
	SizeInGiB int `json:"sizeInGiB,omitzero"`
}

// RuntimePlatform is the processor and system a task needs.
type RuntimePlatform struct {
	CPUArchitecture       string `json:"cpuArchitecture,omitzero" ecs:"enum=X86_64|ARM64"`
	OperatingSystemFamily string `json:"operatingSystemFamily,omitzero" ecs:"enum=LINUX|WINDOWS_SERVER_2025_FULL|WINDOWS_SERVER_2025_CORE|WINDOWS_SERVER_2022_FULL|WINDOWS_SERVER_2022_CORE|WINDOWS_SERVER_2019_FULL|WINDOWS_SERVER_2019_CORE|WINDOWS_SERVER_2016_FULL|WINDOWS_SERVER_2004_CORE|WINDOWS_SERVER_20H2_CORE"`
}

// TrustedExecution is how a task is kept apart from the rest of its host.
type TrustedExecution struct {
	IsolationMode     string `json:"isolationMode,omitzero" ecs:"required,enum=SHARED|ISOLATED_SANDBOX|CONFIDENTIAL_SANDBOX"`
	AttestationPolicy string `json:"attestationPolicy,omitzero"`
}

// IsWindows reports whether the task needs Windows of any version.
func (p *RuntimePlatform) IsWindows() bool {
	return p != nil && strings.HasPrefix(p.OperatingSystemFamily, "WINDOWS_")
}
