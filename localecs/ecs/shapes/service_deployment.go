package shapes

// ServiceDeployment is a deployment of a service, also one that has ended. Lists have only what is not a
// pointer or a list.
type ServiceDeployment struct {
	ARN               string                   `json:"serviceDeploymentArn"`
	ServiceARN        string                   `json:"serviceArn"`
	ClusterARN        string                   `json:"clusterArn"`
	CreatedAt         Time                     `json:"createdAt"`
	StartedAt         Time                     `json:"startedAt"`
	FinishedAt        Time                     `json:"finishedAt,omitzero"`
	StoppedAt         Time                     `json:"stoppedAt,omitzero"`
	UpdatedAt         Time                     `json:"updatedAt,omitzero"`
	TargetRevisionARN string                   `json:"targetServiceRevisionArn,omitzero"`
	Sources           []RevisionSummary        `json:"sourceServiceRevisions,omitzero"`
	Target            *RevisionSummary         `json:"targetServiceRevision,omitzero"`
	Status            string                   `json:"status"`
	StatusReason      string                   `json:"statusReason,omitzero"`
	Configuration     *DeploymentConfiguration `json:"deploymentConfiguration,omitzero"`
	Rollback          *Rollback                `json:"rollback,omitzero"`
	Breaker           *BreakerState            `json:"deploymentCircuitBreaker,omitzero"`
	Alarms            *AlarmState              `json:"alarms,omitzero"`
}

// RevisionSummary is a revision of a service, and the tasks that it has.
type RevisionSummary struct {
	ARN       string `json:"arn"`
	Requested int    `json:"requestedTaskCount"`
	Running   int    `json:"runningTaskCount"`
	Pending   int    `json:"pendingTaskCount"`
}

// Rollback is the return to an earlier revision.
type Rollback struct {
	Reason      string `json:"reason"`
	StartedAt   Time   `json:"startedAt"`
	RevisionARN string `json:"serviceRevisionArn"`
}

// BreakerState is a circuit breaker at work: DISABLED, MONITORING, MONITORING_COMPLETE or TRIGGERED.
type BreakerState struct {
	Status    string `json:"status"`
	Failures  int    `json:"failureCount"`
	Threshold int    `json:"threshold"`
}

// AlarmState is DISABLED.
type AlarmState struct {
	Status string `json:"status"`
}

// ServiceRevision is what a deployment of a service consists of.
type ServiceRevision struct {
	ARN                      string                `json:"serviceRevisionArn"`
	ServiceARN               string                `json:"serviceArn"`
	ClusterARN               string                `json:"clusterArn"`
	TaskDefinition           string                `json:"taskDefinition"`
	CapacityProviderStrategy []StrategyItem        `json:"capacityProviderStrategy,omitzero"`
	LaunchType               string                `json:"launchType,omitzero"`
	PlatformVersion          string                `json:"platformVersion"`
	PlatformFamily           string                `json:"platformFamily"`
	NetworkConfiguration     *NetworkConfiguration `json:"networkConfiguration,omitzero"`
	ContainerImages          []ContainerImage      `json:"containerImages"`
	GuardDutyEnabled         bool                  `json:"guardDutyEnabled"`
	ServiceConnect           ServiceConnect        `json:"serviceConnectConfiguration"`
	ServiceRegistries        []ServiceRegistry     `json:"serviceRegistries,omitzero"`
	CreatedAt                Time                  `json:"createdAt"`
}

// ContainerImage is the image of a container.
type ContainerImage struct {
	Name   string `json:"containerName"`
	Digest string `json:"imageDigest"`
	Image  string `json:"image"`
}

// ListServiceDeploymentsInput names a service, and filters its deployments.
type ListServiceDeploymentsInput struct {
	Cluster   string   `json:"cluster"`
	Service   string   `json:"service"`
	Status    []string `json:"status"`
	CreatedAt Period   `json:"createdAt"`
	PageInput
}

// Period is the time between two moments; zero is none.
type Period struct {
	Before Time `json:"before"`
	After  Time `json:"after"`
}

// DescribeServiceDeploymentsInput names service deployments.
type DescribeServiceDeploymentsInput struct {
	ARNs []string `json:"serviceDeploymentArns"`
}

// ServiceDeploymentsOutput has what was found and, of descriptions, what was not.
type ServiceDeploymentsOutput struct {
	ServiceDeployments []ServiceDeployment `json:"serviceDeployments"`
	Failures           []Failure           `json:"failures,omitzero"`
	NextToken          string              `json:"nextToken,omitzero"`
}

// DescribeServiceRevisionsInput names revisions of services.
type DescribeServiceRevisionsInput struct {
	ARNs []string `json:"serviceRevisionArns"`
}

// ServiceRevisionsOutput has what was found, and what was not.
type ServiceRevisionsOutput struct {
	ServiceRevisions []ServiceRevision `json:"serviceRevisions"`
	Failures         []Failure         `json:"failures"`
}
