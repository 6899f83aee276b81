package workload

import "github.com/meshtask/consul-ecs/config"

// Task is the answer of the task metadata endpoint V4 at /task, reduced to what we read.
type Task struct {
	// Cluster is an ARN on Fargate and the short name on EC2.
	Cluster          string      `json:"Cluster"`
	TaskARN          string      `json:"TaskARN"`
	Family           string      `json:"Family"`
	DesiredStatus    string      `json:"DesiredStatus"`
	AvailabilityZone string      `json:"AvailabilityZone"`
	Containers       []Container `json:"Containers"`
}

// Container is one container of a Task.
type Container struct {
	Name string `json:"Name"`
	// Image is the reference in the task definition.
	Image string `json:"Image"`
	// Type is NORMAL for containers of the task definition; the ECS agent's
	// own (pause) containers carry other values.
	Type          string `json:"Type"`
	DesiredStatus string `json:"DesiredStatus"`
	KnownStatus   string `json:"KnownStatus"`
	ExitCode      *int   `json:"ExitCode"`
	// Health is nil for a container without an ECS health check.
	Health   *Health   `json:"Health"`
	Networks []Network `json:"Networks"`
	// RestartCount is there with an enabled restart policy only, from 0.
	RestartCount *int `json:"RestartCount"`
}

// Health is the state of a container's ECS health check; Status is empty before its first
// result.
type Health struct {
	Status string `json:"status"`
}

// HealthStatus returns the last result of the container's ECS health check; empty without one.
func (c Container) HealthStatus() string {
	if c.Health == nil {
		return ""
	}
	return c.Health.Status
}

// Network is one attachment of a container.
type Network struct {
	NetworkMode   string   `json:"NetworkMode"`
	IPv4Addresses []string `json:"IPv4Addresses"`
	IPv6Addresses []string `json:"IPv6Addresses"`
}

// Workload is what a task is in Consul: a service with its sidecar proxy, or
// a gateway. It is one plain value, complete after New, and goes down the
// call chain unchanged.
type Workload struct {
	// TaskID and TaskARN identify the ECS task.
	TaskID, TaskARN string

	// Node is the catalog's node for all tasks of the cluster, the cluster's ARN, and
	// Address the task's IP address. Both are empty in a task with an agent, which is
	// the node.
	Node, Address string
	Locality      Locality
	// Transparent reports that the traffic of the task's containers is redirected to
	// the proxy.
	Transparent bool

	// Gateway is the gateway kind, such as "mesh-gateway", or empty for a service.
	Gateway string
	// Namespace and Partition are Consul Enterprise coordinates.
	Namespace, Partition string

	// Name and ID are the Consul service name and ID. For a gateway they are
	// the gateway's.
	Name, ID string
	// Port is the application's port; 0 when it listens on none.
	Port              int
	Tags              []string
	Meta              map[string]string
	EnableTagOverride bool
	Weights           *config.Weights
	// Checks are the user's native checks, SyncChecks those that health-sync
	// feeds, with an aggregate last for each service; at most one of the two is set.
	Checks     []config.Check
	SyncChecks []SyncCheck

	Proxy Proxy
}

// Locality is where a task runs.
type Locality struct {
	// Region is AWS_REGION, or that of the task ARN; Zone is an availability zone of it, and
	// empty when the metadata do not name one.
	Region, Zone string
}

// SyncCheck mirrors one container's ECS health. It is a TTL check in a task with an
// agent.
type SyncCheck struct {
	// ID is the Consul check ID, Container the ECS container's name.
	ID, Container string
	Name, Notes   string
	// ServiceID is the service that the check belongs to: the workload's or the
	// proxy's.
	ServiceID string
	// Aggregate marks the check that is passing only while the container and those of
	// all other checks are healthy. Its container is the proxy's: ContainerDataplane,
	// or ContainerSidecarProxy with proxy.mode direct, where Task.Proxies finds both.
	Aggregate bool
}

// Proxy is the sidecar's, or the gateway's, own registration.
type Proxy struct {
	// Name and ID equal the Workload's for a gateway.
	Name, ID string
	// Address is set for a mesh gateway with a LAN address only.
	Address string
	Port    int
	// LocalServiceAddress is where the proxy reaches the application; Consul's
	// default when empty.
	LocalServiceAddress string
	// LAN and WAN are a gateway's tagged addresses; nil when not configured.
	LAN, WAN *config.Address
	// ListenerCheck is the host:port that proves the proxy is listening.
	ListenerCheck string
	// HasConfig is false for a gateway without a proxy block.
	HasConfig   bool
	Config      map[string]any
	Upstreams   []config.Upstream
	MeshGateway *config.MeshGateway
	Expose      *config.Expose
}

// IsGateway reports whether the workload is a gateway.
func (w Workload) IsGateway() bool { return w.Gateway != "" }
