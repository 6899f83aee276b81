package metadata

import "time"

// taskV3 is the answer of /task, in the agent's field order.
type taskV3 struct {
	Cluster            string
	TaskARN            string
	Family             string
	Revision           string
	DesiredStatus      string `json:",omitempty"`
	KnownStatus        string
	Containers         []containerV3 `json:",omitempty"`
	Limits             *TaskLimits   `json:",omitempty"`
	PullStartedAt      time.Time     `json:",omitzero"`
	PullStoppedAt      time.Time     `json:",omitzero"`
	ExecutionStoppedAt time.Time     `json:",omitzero"`
	AvailabilityZone   string        `json:",omitempty"`
	LaunchType         string        `json:",omitempty"`
}

// taskV4 shows its own containers, after the embedded members, as the agent's does.
type taskV4 struct {
	taskV3
	Containers            []containerV4     `json:",omitempty"`
	ClockDrift            *ClockDrift       `json:",omitempty"`
	EphemeralStorage      *EphemeralStorage `json:"EphemeralStorageMetrics,omitempty"`
	FaultInjectionEnabled bool
}

type containerV3 struct {
	DockerID      string `json:"DockerId"`
	Name          string
	DockerName    string
	Image         string
	ImageID       string
	Ports         []Port            `json:",omitempty"`
	Labels        map[string]string `json:",omitempty"`
	DesiredStatus string
	KnownStatus   string
	ExitCode      *int `json:",omitempty"`
	Limits        containerLimits
	CreatedAt     time.Time `json:",omitzero"`
	StartedAt     time.Time `json:",omitzero"`
	FinishedAt    time.Time `json:",omitzero"`
	Type          string
	Networks      []networkV3       `json:",omitempty"`
	Health        *healthResponse   `json:",omitempty"`
	LogDriver     string            `json:",omitempty"`
	LogOptions    map[string]string `json:",omitempty"`
	ContainerARN  string            `json:",omitempty"`
}

type containerV4 struct {
	containerV3
	Networks     []networkV4 `json:",omitempty"`
	Snapshotter  string      `json:",omitempty"`
	RestartCount *int        `json:",omitempty"`
}

type containerLimits struct {
	CPU    int64
	Memory *int64 `json:",omitempty"`
}

type healthResponse struct {
	Status   string    `json:"status,omitempty"`
	Since    time.Time `json:"statusSince,omitzero"`
	ExitCode int       `json:"exitCode,omitempty"`
	Output   string    `json:"output,omitempty"`
}

type networkV3 struct {
	NetworkMode   string
	IPv4Addresses []string `json:",omitempty"`
}

type networkV4 struct {
	networkV3
	AttachmentIndex          int
	MACAddress               string   `json:",omitempty"`
	IPv4SubnetCIDRBlock      string   `json:",omitempty"`
	DomainNameServers        []string `json:",omitempty"`
	DomainNameSearchList     []string `json:",omitempty"`
	PrivateDNSName           string   `json:",omitempty"`
	SubnetGatewayIPv4Address string   `json:"SubnetGatewayIpv4Address,omitempty"`
}
