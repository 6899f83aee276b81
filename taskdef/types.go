package taskdef

// TaskDefinition is the input of RegisterTaskDefinition, and with the fields
// marked "output" also what DescribeTaskDefinition returns. Key names are those
// of the ECS API. Lists that registration always shows are empty and not nil
// after Parse.
type TaskDefinition struct {
	Family                  string                `json:"family,omitzero"`
	TaskRoleARN             string                `json:"taskRoleArn,omitzero"`
	ExecutionRoleARN        string                `json:"executionRoleArn,omitzero"`
	NetworkMode             string                `json:"networkMode,omitzero" ecs:"enum=awsvpc|bridge|host|none"`
	ContainerDefinitions    []Container           `json:"containerDefinitions,omitzero"`
	Volumes                 []Volume              `json:"volumes,omitzero"`
	PlacementConstraints    []PlacementConstraint `json:"placementConstraints,omitzero"`
	RequiresCompatibilities []string              `json:"requiresCompatibilities,omitzero" ecs:"enum=EC2|FARGATE|EXTERNAL|MANAGED_INSTANCES"`

	// CPU is in units of 1/1024 vCPU and Memory in MiB, as decimal strings.
	// Parse converts the spellings "1 vCPU" and "2 GB".
	CPU    string `json:"cpu,omitzero"`
	Memory string `json:"memory,omitzero"`

	Tags                  []Tag                  `json:"tags,omitzero"`
	PIDMode               string                 `json:"pidMode,omitzero" ecs:"enum=host|task"`
	IPCMode               string                 `json:"ipcMode,omitzero" ecs:"enum=host|task|none"`
	ProxyConfiguration    *ProxyConfiguration    `json:"proxyConfiguration,omitzero"`
	InferenceAccelerators []InferenceAccelerator `json:"inferenceAccelerators,omitzero"`
	EphemeralStorage      *EphemeralStorage      `json:"ephemeralStorage,omitzero"`
	RuntimePlatform       *RuntimePlatform       `json:"runtimePlatform,omitzero"`
	EnableFaultInjection  *bool                  `json:"enableFaultInjection,omitzero"`
	TrustedExecution      *TrustedExecution      `json:"trustedExecutionConfiguration,omitzero"`

	// Output fields. The times are numbers from the API and strings from the
	// command line, so they are kept as they come.
	TaskDefinitionARN  string     `json:"taskDefinitionArn,omitzero"`
	Revision           int        `json:"revision,omitzero"`
	Status             string     `json:"status,omitzero"`
	RequiresAttributes []KeyValue `json:"requiresAttributes,omitzero"`
	Compatibilities    []string   `json:"compatibilities,omitzero"`
	RegisteredAt       any        `json:"registeredAt,omitzero"`
	DeregisteredAt     any        `json:"deregisteredAt,omitzero"`
	DeleteRequestedAt  any        `json:"deleteRequestedAt,omitzero"`
	RegisteredBy       string     `json:"registeredBy,omitzero"`
}

// OutputKeys are the keys of the output fields.
var OutputKeys = []string{
	"taskDefinitionArn", "revision", "status", "requiresAttributes", "compatibilities",
	"registeredAt", "deregisteredAt", "deleteRequestedAt", "registeredBy",
}

// Container is one entry of containerDefinitions.
type Container struct {
	Name                  string                 `json:"name,omitzero"`
	Image                 string                 `json:"image,omitzero"`
	RepositoryCredentials *RepositoryCredentials `json:"repositoryCredentials,omitzero"`
	// CPU is in units of 1/1024 vCPU, Memory (hard limit) and
	// MemoryReservation (soft limit) in MiB.
	CPU               *int     `json:"cpu,omitzero"`
	Memory            *int     `json:"memory,omitzero"`
	MemoryReservation *int     `json:"memoryReservation,omitzero"`
	Links             []string `json:"links,omitzero"`
	// PortMappings are all reachable under awsvpc, mapped or not.
	PortMappings []PortMapping `json:"portMappings,omitzero"`
	// Essential is true by default; read it through IsEssential.
	Essential     *bool          `json:"essential,omitzero"`
	RestartPolicy *RestartPolicy `json:"restartPolicy,omitzero"`
	// EntryPoint drops both the image's ENTRYPOINT and its CMD; Command
	// replaces only CMD.
	EntryPoint       []string          `json:"entryPoint,omitzero"`
	Command          []string          `json:"command,omitzero"`
	Environment      []KeyValue        `json:"environment,omitzero"`
	EnvironmentFiles []EnvironmentFile `json:"environmentFiles,omitzero"`
	MountPoints      []MountPoint      `json:"mountPoints,omitzero"`
	VolumesFrom      []VolumeFrom      `json:"volumesFrom,omitzero"`
	LinuxParameters  *LinuxParameters  `json:"linuxParameters,omitzero"`
	Secrets          []Secret          `json:"secrets,omitzero"`
	DependsOn        []Dependency      `json:"dependsOn,omitzero"`
	// StartTimeout is in seconds, without default: absent means for ever.
	StartTimeout *int `json:"startTimeout,omitzero"`
	// StopTimeout is in seconds, 30 when absent.
	StopTimeout            *int                  `json:"stopTimeout,omitzero"`
	VersionConsistency     string                `json:"versionConsistency,omitzero" ecs:"enum=enabled|disabled"`
	Hostname               string                `json:"hostname,omitzero"`
	User                   string                `json:"user,omitzero"`
	WorkingDirectory       string                `json:"workingDirectory,omitzero"`
	DisableNetworking      *bool                 `json:"disableNetworking,omitzero"`
	Privileged             *bool                 `json:"privileged,omitzero"`
	ReadonlyRootFilesystem *bool                 `json:"readonlyRootFilesystem,omitzero"`
	DNSServers             []string              `json:"dnsServers,omitzero"`
	DNSSearchDomains       []string              `json:"dnsSearchDomains,omitzero"`
	ExtraHosts             []HostEntry           `json:"extraHosts,omitzero"`
	DockerSecurityOptions  []string              `json:"dockerSecurityOptions,omitzero"`
	Interactive            *bool                 `json:"interactive,omitzero"`
	PseudoTerminal         *bool                 `json:"pseudoTerminal,omitzero"`
	DockerLabels           map[string]string     `json:"dockerLabels,omitzero"`
	Ulimits                []Ulimit              `json:"ulimits,omitzero"`
	LogConfiguration       *LogConfiguration     `json:"logConfiguration,omitzero"`
	HealthCheck            *HealthCheck          `json:"healthCheck,omitzero"`
	SystemControls         []SystemControl       `json:"systemControls,omitzero"`
	ResourceRequirements   []ResourceRequirement `json:"resourceRequirements,omitzero"`
	FirelensConfiguration  *Firelens             `json:"firelensConfiguration,omitzero"`
	CredentialSpecs        []string              `json:"credentialSpecs,omitzero"`
}

// IsEssential reports whether the task stops with this container; the default is
// true.
func (c *Container) IsEssential() bool { return c.Essential == nil || *c.Essential }

// Conditions of a Dependency.
const (
	ConditionStart    = "START"
	ConditionComplete = "COMPLETE"
	ConditionSuccess  = "SUCCESS"
	ConditionHealthy  = "HEALTHY"
)

// Dependency makes a container wait for another one of the task.
type Dependency struct {
	ContainerName string `json:"containerName,omitzero" ecs:"required"`
	Condition     string `json:"condition,omitzero"`
}

// HealthCheck is the container health check. Interval, Timeout and StartPeriod
// are in seconds.
type HealthCheck struct {
	// Command begins with CMD, CMD-SHELL or NONE; anything else is executed
	// directly.
	Command     []string `json:"command,omitzero"`
	Interval    *int     `json:"interval,omitzero"`
	Timeout     *int     `json:"timeout,omitzero"`
	Retries     *int     `json:"retries,omitzero"`
	StartPeriod *int     `json:"startPeriod,omitzero"`
}

// Enabled reports whether there is a check to run: ["NONE"] and nil are none.
func (h *HealthCheck) Enabled() bool {
	return h != nil && len(h.Command) > 0 && h.Command[0] != "NONE"
}

// RestartPolicy lets ECS restart a container that exits.
type RestartPolicy struct {
	Enabled          bool  `json:"enabled" ecs:"required"`
	IgnoredExitCodes []int `json:"ignoredExitCodes,omitzero"`
	// RestartAttemptPeriod is in seconds, 300 when absent.
	RestartAttemptPeriod *int `json:"restartAttemptPeriod,omitzero"`
}

// PortMapping is one port of a container.
type PortMapping struct {
	ContainerPort      *int   `json:"containerPort,omitzero"`
	HostPort           *int   `json:"hostPort,omitzero"`
	Protocol           string `json:"protocol,omitzero"`
	Name               string `json:"name,omitzero"`
	AppProtocol        string `json:"appProtocol,omitzero" ecs:"enum=http|http2|grpc"`
	ContainerPortRange string `json:"containerPortRange,omitzero"`
}

// KeyValue is a name with a value: an environment variable, a requirement, a
// proxy property.
type KeyValue struct {
	Name  string `json:"name,omitzero"`
	Value string `json:"value"`
	// TargetID and TargetType are set in requiresAttributes only.
	TargetID   string `json:"targetId,omitzero"`
	TargetType string `json:"targetType,omitzero"`
}

// EnvironmentFile is a file of NAME=value lines; Type is "s3".
type EnvironmentFile struct {
	Value string `json:"value,omitzero"`
	Type  string `json:"type,omitzero"`
}

// Secret is an environment variable or log option whose value is read from SSM
// or Secrets Manager.
type Secret struct {
	Name      string `json:"name,omitzero" ecs:"required"`
	ValueFrom string `json:"valueFrom,omitzero" ecs:"required"`
}

// MountPoint puts a volume into a container.
type MountPoint struct {
	SourceVolume  string `json:"sourceVolume,omitzero"`
	ContainerPath string `json:"containerPath,omitzero"`
	ReadOnly      *bool  `json:"readOnly,omitzero"`
}

// VolumeFrom gives a container the mounts of another one.
type VolumeFrom struct {
	SourceContainer string `json:"sourceContainer,omitzero"`
	ReadOnly        *bool  `json:"readOnly,omitzero"`
}

// LogConfiguration names a log driver.
type LogConfiguration struct {
	LogDriver     string            `json:"logDriver,omitzero" ecs:"enum=json-file|syslog|journald|gelf|fluentd|awslogs|splunk|awsfirelens"`
	Options       map[string]string `json:"options,omitzero"`
	SecretOptions []Secret          `json:"secretOptions,omitzero"`
}
