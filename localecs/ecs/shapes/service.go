package shapes

import "fmt"

// Draining is the status of a service that was deleted and still has tasks.
const Draining = "DRAINING"

// Service is a service as DescribeServices shows it.
type Service struct {
	ServiceARN               string                  `json:"serviceArn"`
	ServiceName              string                  `json:"serviceName"`
	ClusterARN               string                  `json:"clusterArn"`
	LoadBalancers            []struct{}              `json:"loadBalancers"`
	ServiceRegistries        []ServiceRegistry       `json:"serviceRegistries"`
	Status                   string                  `json:"status"`
	DesiredCount             int                     `json:"desiredCount"`
	RunningCount             int                     `json:"runningCount"`
	PendingCount             int                     `json:"pendingCount"`
	LaunchType               string                  `json:"launchType,omitzero"`
	CapacityProviderStrategy []StrategyItem          `json:"capacityProviderStrategy,omitzero"`
	PlatformVersion          string                  `json:"platformVersion"`
	PlatformFamily           string                  `json:"platformFamily"`
	TaskDefinition           string                  `json:"taskDefinition"`
	DeploymentConfiguration  DeploymentConfiguration `json:"deploymentConfiguration"`
	Deployments              []Deployment            `json:"deployments"`
	RoleARN                  string                  `json:"roleArn"`
	Events                   []ServiceEvent          `json:"events"`
	CreatedAt                Time                    `json:"createdAt"`
	CurrentDeployment        string                  `json:"currentServiceDeployment,omitzero"`
	CurrentRevisions         []RevisionSummary       `json:"currentServiceRevisions,omitzero"`
	CreatedBy                string                  `json:"createdBy,omitzero"`
	PlacementConstraints     []struct{}              `json:"placementConstraints"`
	PlacementStrategy        []struct{}              `json:"placementStrategy"`
	NetworkConfiguration     *NetworkConfiguration   `json:"networkConfiguration,omitzero"`
	HealthCheckGracePeriod   *int                    `json:"healthCheckGracePeriodSeconds,omitzero"`
	SchedulingStrategy       string                  `json:"schedulingStrategy"`
	DeploymentController     DeploymentController    `json:"deploymentController"`
	Tags                     []Tag                   `json:"tags,omitzero"`
	EnableECSManagedTags     bool                    `json:"enableECSManagedTags"`
	PropagateTags            string                  `json:"propagateTags"`
	EnableExecuteCommand     bool                    `json:"enableExecuteCommand"`
	// ZoneRebalancing is ENABLED or DISABLED; there is one zone here.
	ZoneRebalancing string `json:"availabilityZoneRebalancing"`
}

// Steady reports whether a service has reached its desired state: its one deployment is complete
// and has all its tasks, or it was deleted and has none. The error is the reason of a
// deployment that has failed, also when it was rolled back, until there is a newer one.
func (s Service) Steady() (bool, error) {
	if s.Status != Active {
		return s.Status == Inactive, nil
	}
	primary := s.Deployments[0]
	for _, d := range s.Deployments {
		if d.RolloutState == "FAILED" && !d.CreatedAt.Before(primary.CreatedAt.Time) {
			return false, fmt.Errorf("deployment %s: %s", d.ID, d.RolloutStateReason)
		}
	}
	return len(s.Deployments) == 1 && primary.RolloutState == "COMPLETED" && s.PendingCount == 0 &&
		s.RunningCount == s.DesiredCount, nil
}

// DeploymentController is ECS, the rolling one.
type DeploymentController struct {
	Type string `json:"type"`
}

// DeploymentConfiguration is how a service is rolled over. What is nil is
// as before, or AWS's default.
type DeploymentConfiguration struct {
	CircuitBreaker        *CircuitBreaker `json:"deploymentCircuitBreaker,omitzero"`
	MaximumPercent        *int            `json:"maximumPercent,omitzero"`
	MinimumHealthyPercent *int            `json:"minimumHealthyPercent,omitzero"`
	Strategy              string          `json:"strategy,omitzero"`
	// BakeTimeInMinutes is always 0 in answers; localecs refuses a service that uses it or one of the next.
	BakeTimeInMinutes int              `json:"bakeTimeInMinutes"`
	Alarms            *Alarms          `json:"alarms,omitzero"`
	LifecycleHooks    []map[string]any `json:"lifecycleHooks,omitzero"`
	Linear            map[string]any   `json:"linearConfiguration,omitzero"`
	Canary            map[string]any   `json:"canaryConfiguration,omitzero"`
	EarlySuccess      *EarlySuccess    `json:"earlySuccessCriteria,omitzero"`
}

// Alarms are CloudWatch's that would fail a deployment, were they not disabled.
type Alarms struct {
	Names    []string `json:"alarmNames"`
	Rollback bool     `json:"rollback"`
	Enable   bool     `json:"enable"`
}

// EarlySuccess would complete a deployment early, were it not disabled.
type EarlySuccess struct {
	Enable         bool   `json:"enable"`
	HealthyPercent int    `json:"healthyPercent,omitzero"`
	Cleanup        string `json:"sourceServiceRevisionCleanup,omitzero"`
}

// CircuitBreaker ends rollouts whose tasks fail.
type CircuitBreaker struct {
	Enable   bool `json:"enable" yaml:"enable"`
	Rollback bool `json:"rollback" yaml:"rollback"`
	// Reset is true by default: a healthy task ends the count of failures.
	Reset     *bool             `json:"resetOnHealthyTask,omitzero" yaml:"resetOnHealthyTask"`
	Threshold *FailureThreshold `json:"thresholdConfiguration,omitzero" yaml:"thresholdConfiguration"`
}

// Types of a FailureThreshold.
const (
	Count            = "COUNT"
	BoundedPercent   = "BOUNDED_PERCENT"
	UnboundedPercent = "UNBOUNDED_PERCENT"
)

// FailureThreshold is how many failures end a rollout: a number of tasks, or a percentage of the
// desired count.
type FailureThreshold struct {
	Type  string `json:"type" yaml:"type"`
	Value int    `json:"value" yaml:"value"`
}

// Resets reports whether a healthy task sets the count of failures to 0.
func (c CircuitBreaker) Resets() bool { return c.Reset == nil || *c.Reset }

// Failures returns how many failed tasks open the circuit breaker of a service with so many desired
// ones. Without a threshold it is half of them, from 3 to 200, which are the bounds of BOUNDED_PERCENT.
func (c CircuitBreaker) Failures(desired int) int {
	t := FailureThreshold{Type: BoundedPercent, Value: 50}
	if c.Threshold != nil {
		t = *c.Threshold
	}
	if t.Type == Count {
		return t.Value
	}
	n := (desired*t.Value + 99) / 100
	if t.Type == UnboundedPercent {
		return max(1, n)
	}
	return max(3, min(200, n))
}

// Deployment is one version of a service that has tasks, or is to have.
type Deployment struct {
	ID string `json:"id"`
	// Status is PRIMARY or ACTIVE.
	Status                   string                `json:"status"`
	TaskDefinition           string                `json:"taskDefinition"`
	DesiredCount             int                   `json:"desiredCount"`
	PendingCount             int                   `json:"pendingCount"`
	RunningCount             int                   `json:"runningCount"`
	FailedTasks              int                   `json:"failedTasks"`
	CreatedAt                Time                  `json:"createdAt"`
	UpdatedAt                Time                  `json:"updatedAt"`
	LaunchType               string                `json:"launchType,omitzero"`
	CapacityProviderStrategy []StrategyItem        `json:"capacityProviderStrategy,omitzero"`
	PlatformVersion          string                `json:"platformVersion"`
	PlatformFamily           string                `json:"platformFamily"`
	NetworkConfiguration     *NetworkConfiguration `json:"networkConfiguration,omitzero"`
	RolloutState             string                `json:"rolloutState"`
	RolloutStateReason       string                `json:"rolloutStateReason"`
	ServiceConnect           *ServiceConnect       `json:"serviceConnectConfiguration,omitzero"`
}

// ServiceEvent is what happened to a service.
type ServiceEvent struct {
	ID        string `json:"id"`
	CreatedAt Time   `json:"createdAt"`
	Message   string `json:"message"`
}

// ServiceInput is what CreateService and UpdateService take; they call the
// service by different names. What is absent stays as it is, or gets AWS's
// default.
type ServiceInput struct {
	Cluster                  string                   `json:"cluster"`
	ServiceName              string                   `json:"serviceName"`
	Service                  string                   `json:"service"`
	ClientToken              string                   `json:"clientToken"`
	TaskDefinition           string                   `json:"taskDefinition"`
	DesiredCount             *int                     `json:"desiredCount"`
	DeploymentConfiguration  *DeploymentConfiguration `json:"deploymentConfiguration"`
	ForceNewDeployment       bool                     `json:"forceNewDeployment"`
	HealthCheckGracePeriod   *int                     `json:"healthCheckGracePeriodSeconds"`
	LaunchType               string                   `json:"launchType"`
	CapacityProviderStrategy []StrategyItem           `json:"capacityProviderStrategy"`
	PlatformVersion          string                   `json:"platformVersion"`
	NetworkConfiguration     *NetworkConfiguration    `json:"networkConfiguration"`
	PlacementConstraints     []map[string]any         `json:"placementConstraints"`
	PlacementStrategy        []map[string]any         `json:"placementStrategy"`
	PropagateTags            string                   `json:"propagateTags"`
	Tags                     []Tag                    `json:"tags"`
	EnableECSManagedTags     *bool                    `json:"enableECSManagedTags"`
	EnableExecuteCommand     *bool                    `json:"enableExecuteCommand"`
	SchedulingStrategy       string                   `json:"schedulingStrategy"`
	DeploymentController     *DeploymentController    `json:"deploymentController"`
	LoadBalancers            []map[string]any         `json:"loadBalancers"`
	ServiceRegistries        []ServiceRegistry        `json:"serviceRegistries"`
	ServiceConnect           *ServiceConnect          `json:"serviceConnectConfiguration"`
	VolumeConfigurations     []map[string]any         `json:"volumeConfigurations"`
	VPCLattice               []map[string]any         `json:"vpcLatticeConfigurations"`
	ZoneRebalancing          string                   `json:"availabilityZoneRebalancing"`
	Role                     string                   `json:"role"`
	GatewayConnectors        []map[string]any         `json:"gatewayConnectors"`
	Monitoring               map[string]any           `json:"monitoring"`
}

// ServiceConnect makes tasks part of a namespace of Service Connect. What is about its proxy, such as its logs,
// timeouts and TLS, is answered as it was given.
type ServiceConnect struct {
	Enabled          bool             `json:"enabled"`
	Namespace        string           `json:"namespace,omitzero"`
	Services         []ConnectService `json:"services,omitzero"`
	LogConfiguration map[string]any   `json:"logConfiguration,omitzero"`
	AccessLogs       map[string]any   `json:"accessLogConfiguration,omitzero"`
	Containers       []map[string]any `json:"containerConfigurations,omitzero"`
}

// ConnectService is a port of a service's tasks that other tasks find by names.
type ConnectService struct {
	PortName      string         `json:"portName"`
	DiscoveryName string         `json:"discoveryName,omitzero"` // PortName if empty
	Aliases       []ConnectAlias `json:"clientAliases,omitzero"`
	IngressPort   *int           `json:"ingressPortOverride,omitzero"`
	Timeout       map[string]any `json:"timeout,omitzero"`
	TLS           map[string]any `json:"tls,omitzero"`
}

// ConnectAlias is a name and port for callers. Without a name it is <discoveryName>.<namespace>.
type ConnectAlias struct {
	Port    int            `json:"port"`
	DNSName string         `json:"dnsName,omitzero"`
	Test    map[string]any `json:"testTrafficRules,omitzero"`
}

// ServiceRegistry is a service of Cloud Map in which the tasks are registered.
type ServiceRegistry struct {
	RegistryARN   string `json:"registryArn"`
	Port          *int   `json:"port,omitzero"`
	ContainerName string `json:"containerName,omitzero"`
	ContainerPort *int   `json:"containerPort,omitzero"`
}

// IsEnabled reports whether the tasks get a proxy.
func (c *ServiceConnect) IsEnabled() bool { return c != nil && c.Enabled }

// Route is a name, in lower case, and a port of Service Connect, and the addresses of the tasks that serve it.
type Route struct {
	Name    string
	Port    uint16
	Targets []string
}

// ServiceOutput is one service.
type ServiceOutput struct {
	Service Service `json:"service"`
}

// DeleteServiceInput names a service. Force deletes one that still wants tasks.
type DeleteServiceInput struct {
	Cluster string `json:"cluster"`
	Service string `json:"service"`
	Force   bool   `json:"force"`
}

// DescribeServicesInput names services. Include may have TAGS.
type DescribeServicesInput struct {
	Cluster  string   `json:"cluster"`
	Services []string `json:"services"`
	Include  []string `json:"include"`
}

// DescribeServicesOutput has what was found, and what was not.
type DescribeServicesOutput struct {
	Services []Service `json:"services"`
	Failures []Failure `json:"failures"`
}

// ListServicesInput is the filters of ListServices, and the page.
type ListServicesInput struct {
	Cluster            string `json:"cluster"`
	LaunchType         string `json:"launchType"`
	SchedulingStrategy string `json:"schedulingStrategy"`
	// ManagementType is CUSTOMER, as of all services here, or ECS.
	ManagementType string `json:"resourceManagementType"`
	PageInput
}

// ListServicesOutput is a page of services.
type ListServicesOutput struct {
	ServiceARNs []string `json:"serviceArns"`
	NextToken   string   `json:"nextToken,omitzero"`
}
