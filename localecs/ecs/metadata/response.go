package metadata

import "time"

// taskResponse is the answer of /task, in the agent's field order. V3 leaves
// the fields after Containers empty.
type taskResponse struct {
	Cluster            string
	TaskARN            string
	Family             string
	Revision           string
	DesiredStatus      string `json:",omitempty"`
	KnownStatus        string
	Limits             *TaskLimits         `json:",omitempty"`
	PullStartedAt      time.Time           `json:",omitzero"`
	PullStoppedAt      time.Time           `json:",omitzero"`
	ExecutionStoppedAt time.Time           `json:",omitzero"`
	AvailabilityZone   string              `json:",omitempty"`
	LaunchType         string              `json:",omitempty"`
	Containers         []containerResponse `json:",omitempty"`
	ClockDrift         *ClockDrift         `json:",omitempty"`
	EphemeralStorage   *EphemeralStorage   `json:"EphemeralStorageMetrics,omitempty"`
	// FaultInjectionEnabled is always there in V4, never in V3.
	FaultInjectionEnabled *bool `json:",omitempty"`
}

type containerResponse struct {
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
	Health        *healthResponse   `json:",omitempty"`
	LogDriver     string            `json:",omitempty"`
	LogOptions    map[string]string `json:",omitempty"`
	ContainerARN  string            `json:",omitempty"`
	Networks      []networkResponse `json:",omitempty"`
	Snapshotter   string            `json:",omitempty"`
	RestartCount  *int              `json:",omitempty"`
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

type networkResponse struct {
	NetworkMode              string
	IPv4Addresses            []string `json:",omitempty"`
	AttachmentIndex          *int     `json:",omitempty"`
	MACAddress               string   `json:",omitempty"`
	IPv4SubnetCIDRBlock      string   `json:",omitempty"`
	DomainNameServers        []string `json:",omitempty"`
	DomainNameSearchList     []string `json:",omitempty"`
	PrivateDNSName           string   `json:",omitempty"`
	SubnetGatewayIPv4Address string   `json:"SubnetGatewayIpv4Address,omitempty"`
}
