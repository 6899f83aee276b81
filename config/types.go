package config

import "net/netip"

// The generations, architectures that a document describes, as check tags and
// GenerationEnvVar have them.
const (
	agent     = "agent"     // that of 0.6: a Consul client agent runs in the task
	agentless = "agentless" // that of 0.10: the document has consulServers
)

// Config is a validated CONSUL_ECS_CONFIG_JSON document with every default
// applied.
type Config struct {
	// BootstrapDir is the shared volume of the task, normally /consul.
	BootstrapDir string `json:"bootstrapDir" check:"required,nonempty"`
	// LogLevel is TRACE, DEBUG, INFO, WARN or ERROR; INFO when absent.
	LogLevel string `json:"logLevel" check:"enum=TRACE|DEBUG|INFO|WARN|ERROR"`
	// LogJSON turns log lines into JSON objects.
	LogJSON bool `json:"logJSON"`
	// ConsulHTTPAddr is the Consul server used for login, replication reads
	// and logout, with or without a scheme. Empty: the Consul environment.
	ConsulHTTPAddr string `json:"consulHTTPAddr" check:"only=agent"`
	// ConsulCACertFile verifies ConsulHTTPAddr. Empty: the Consul environment.
	ConsulCACertFile string `json:"consulCACertFile" check:"only=agent"`
	// ConsulServers is nil in a document for tasks with an agent.
	ConsulServers *ConsulServers `json:"consulServers" check:"only=agentless,required"`
	ConsulLogin   ConsulLogin    `json:"consulLogin"`
	// HealthSyncContainers are the containers whose ECS health becomes a
	// Consul TTL check. Exclusive with Service.Checks.
	HealthSyncContainers []string   `json:"healthSyncContainers" check:"unique"`
	HealthSync           HealthSync `json:"healthSync"`
	// Service is nil when the document has none, which means port 0 and the name of
	// the task family.
	Service *Service `json:"service" check:"notnull,agent:open"`
	// Proxy is never nil after Parse: an absent block means its defaults.
	Proxy *Proxy `json:"proxy" check:"open"`
	// Gateway is nil unless the task is a gateway.
	Gateway *Gateway `json:"gateway" check:"notnull"`
	// TransparentProxy redirects the traffic of the task's containers.
	TransparentProxy TransparentProxy `json:"transparentProxy" check:"only=agentless"`
	// Controller configures the command controller.
	Controller Controller `json:"controller" check:"only=agentless"`
}

// Agentless reports whether the tasks have no Consul client agent.
func (c *Config) Agentless() bool { return c.ConsulServers != nil }

// GenerationName returns agent or agentless, for output.
func (c *Config) GenerationName() string {
	if c.Agentless() {
		return agentless
	}
	return agent
}

// ConsulServers is how a task without an agent reaches the Consul servers.
type ConsulServers struct {
	// Hosts is an IP address, a DNS name, or "exec=" and a command that prints IP
	// addresses. It has no port.
	Hosts string `json:"hosts" check:"required"`
	// SkipServerWatch keeps to what Hosts gives: the servers are not asked for their
	// peers, whose addresses the task may not reach.
	SkipServerWatch bool           `json:"skipServerWatch"`
	Defaults        ServerDefaults `json:"defaults" check:"open"`
	GRPC            ServerGRPC     `json:"grpc" check:"open"`
	HTTP            ServerHTTP     `json:"http" check:"open"`
}

// GRPCTLS reports whether connections to the servers' gRPC use TLS.
func (s *ConsulServers) GRPCTLS() bool {
	if s.GRPC.TLS != nil {
		return *s.GRPC.TLS
	}
	return s.Defaults.TLS
}

// ServerDefaults hold for both protocols unless they have their own.
type ServerDefaults struct {
	// TLS is true when absent. HTTP has its own, HTTPS.
	TLS           bool   `json:"tls" check:"default=true"`
	CACertFile    string `json:"caCertFile"`
	TLSServerName string `json:"tlsServerName"`
}

// ServerGRPC is how Envoy reaches the servers' xDS.
type ServerGRPC struct {
	// Port is 8503 when absent or 0.
	Port int `json:"port" check:"range=0-65535"`
	// TLS is that of Defaults when nil.
	TLS           *bool  `json:"tls"`
	CACertFile    string `json:"caCertFile"`
	TLSServerName string `json:"tlsServerName"`
}

// ServerHTTP is how everything else reaches the servers.
type ServerHTTP struct {
	// Port is 8501 when absent or 0.
	Port int `json:"port" check:"range=0-65535"`
	// HTTPS is true when absent; it alone decides, whatever Defaults.TLS is.
	HTTPS bool `json:"https" check:"default=true"`
	// TLS is accepted and has no effect, as in 0.10.
	TLS           *bool  `json:"tls"`
	CACertFile    string `json:"caCertFile"`
	TLSServerName string `json:"tlsServerName"`
}

// TransparentProxy redirects all traffic of a service's containers to its proxy.
type TransparentProxy struct {
	// Enabled is true when absent, in a document with consulServers, and false for a
	// gateway whatever the document has.
	Enabled              bool      `json:"enabled" check:"default=true"`
	ExcludeInboundPorts  []int     `json:"excludeInboundPorts" check:"unique,range=1-65535"`
	ExcludeOutboundPorts []int     `json:"excludeOutboundPorts" check:"unique,range=1-65535"`
	ExcludeOutboundCIDRs []string  `json:"excludeOutboundCIDRs" check:"unique"`
	ExcludeUIDs          []string  `json:"excludeUIDs" check:"unique"`
	ConsulDNS            ConsulDNS `json:"consulDNS" check:"notnull"`
	// Prefixes and UIDs are ExcludeOutboundCIDRs and ExcludeUIDs as Parse has read them.
	Prefixes []netip.Prefix `json:"-"`
	UIDs     []UIDs         `json:"-"`
}

// ConsulDNS makes the task's containers resolve names through the proxy.
type ConsulDNS struct {
	// Enabled is false without TransparentProxy.Enabled whatever the document has.
	Enabled bool `json:"enabled"`
}

// Controller configures the command controller.
type Controller struct {
	// IAMRolePath is the path of the roles that may log in; /consul-ecs/ when absent
	// or empty.
	IAMRolePath       string `json:"iamRolePath"`
	PartitionsEnabled bool   `json:"partitionsEnabled"`
	// Partition is "default" when absent, and empty without PartitionsEnabled.
	Partition string `json:"partition"`
}

// ConsulLogin configures the login through Consul's aws-iam auth method.
type ConsulLogin struct {
	Enabled bool `json:"enabled"`
	// Method is the auth method; iam-ecs-service-token when absent or empty.
	Method string `json:"method"`
	// Datacenter is where the login goes; the servers' own when empty.
	Datacenter string `json:"datacenter" check:"only=agentless"`
	// IncludeEntity embeds a signed GetRole or GetUser; true when absent.
	IncludeEntity bool `json:"includeEntity" check:"default=true"`
	// Meta is added to the token's metadata, except for LoginMetaTaskID, LoginMetaCluster and
	// LoginMetaRenewed.
	Meta map[string]string `json:"meta"`
	// Region signs the requests; from the task ARN when empty.
	Region string `json:"region"`
	// STSEndpoint replaces the regional STS endpoint.
	STSEndpoint string `json:"stsEndpoint"`
	// ServerIDHeaderValue is signed into both requests against replay.
	ServerIDHeaderValue string `json:"serverIdHeaderValue"`
}

// HealthSync is how health-sync judges HealthSyncContainers.
type HealthSync struct {
	// Startup is, by container, what counts as passing until ECS has its first result: "tcp",
	// a connection to the service's port, or the path of an HTTP GET. Absent: nothing.
	Startup map[string]string `json:"startup" check:"probe"`
}

// Service is the application's registration.
type Service struct {
	// Name is the lower-cased task family when empty.
	Name              string            `json:"name" check:"name"`
	Port              int               `json:"port" check:"required,range=0-65535"`
	Tags              []string          `json:"tags" check:"unique"`
	EnableTagOverride bool              `json:"enableTagOverride"`
	Meta              map[string]string `json:"meta"`
	Weights           *Weights          `json:"weights"`
	Checks            []Check           `json:"checks" check:"only=agent"`
	Namespace         string            `json:"namespace"`
	Partition         string            `json:"partition"`
	// NetworkResilience is merged into the service's service-defaults; nil when absent.
	NetworkResilience *NetworkResilience `json:"networkResilienceConfig" check:"only=agentless"`
}

// NetworkResilience sets the passive health check of a service's callers.
type NetworkResilience struct {
	Enabled          bool              `json:"enabled" check:"notnull"`
	OutlierDetection *OutlierDetection `json:"outlierDetection"`
}

// OutlierDetection is Envoy's, by the names that Consul has for it. Parse leaves nil what
// the document does not have: registrar.EnsureResilience has the defaults.
type OutlierDetection struct {
	// Interval is in nanoseconds.
	Interval                           *int `json:"interval" check:"range=0-9223372036854775807"`
	MaxFailures                        *int `json:"maxFailures" check:"range=1-4294967295"`
	EnforcingConsecutive5xx            *int `json:"enforcingConsecutive5xx" check:"range=0-100"`
	Consecutive5xx                     *int `json:"consecutive5xx" check:"range=0-4294967295"`
	ConsecutiveGatewayFailure          *int `json:"consecutiveGatewayFailure" check:"range=0-4294967295"`
	EnforcingConsecutiveGatewayFailure *int `json:"enforcingConsecutiveGatewayFailure" check:"range=0-100"`
	MaxEjectionPercent                 *int `json:"maxEjectionPercent" check:"range=0-100"`
}

// Weights are DNS weights by health state.
type Weights struct {
	Passing int `json:"passing" check:"required,range=1-65535"`
	Warning int `json:"warning" check:"required,range=0-65535"`
}

// Check is a native Consul check that the agent runs, durations as Go strings.
type Check struct {
	CheckID                string              `json:"checkId" check:"notnull"`
	Name                   string              `json:"name" check:"notnull"`
	Args                   []string            `json:"args"`
	Interval               string              `json:"interval" check:"duration"`
	Timeout                string              `json:"timeout" check:"duration"`
	TTL                    string              `json:"ttl" check:"duration"`
	HTTP                   string              `json:"http"`
	Header                 map[string][]string `json:"header"`
	Method                 string              `json:"method"`
	Body                   string              `json:"body"`
	TCP                    string              `json:"tcp"`
	UDP                    string              `json:"udp"`
	Status                 string              `json:"status" check:"enum=passing|warning|critical|maintenance"`
	Notes                  string              `json:"notes"`
	TLSServerName          string              `json:"tlsServerName"`
	TLSSkipVerify          bool                `json:"tlsSkipVerify"`
	GRPC                   string              `json:"grpc"`
	GRPCUseTLS             bool                `json:"grpcUseTls"`
	H2PING                 string              `json:"h2ping"`
	H2PINGUseTLS           bool                `json:"h2pingUseTls"`
	AliasNode              string              `json:"aliasNode"`
	AliasService           string              `json:"aliasService"`
	SuccessBeforePassing   int                 `json:"successBeforePassing" check:"range=0-2147483647"`
	FailuresBeforeCritical int                 `json:"failuresBeforeCritical" check:"range=0-2147483647"`
}

// Proxy is the sidecar's registration.
type Proxy struct {
	// Config is opaque here and interpreted by Consul and the bootstrap.
	Config map[string]any `json:"config"`
	// PublicListenerPort is 20000 when absent or 0.
	PublicListenerPort int `json:"publicListenerPort" check:"range=0-65535"`
	// HealthCheckPort is where Envoy's readiness is asked for; 22000 when absent or 0.
	HealthCheckPort int `json:"healthCheckPort" check:"only=agentless,range=0-65535"`
	// LocalServiceAddress is where the proxy reaches the application; Consul's
	// default when empty.
	LocalServiceAddress string `json:"localServiceAddress" check:"only=agentless"`
	// Mode is ProxyDataplane, also when empty, or ProxyDirect.
	Mode      string     `json:"mode" check:"only=agentless,enum=dataplane|direct"`
	Upstreams []Upstream `json:"upstreams"`
	// NamedUpstreams gives each upstream a loopback address and a name in the hosts
	// files of the task's containers.
	NamedUpstreams bool         `json:"namedUpstreams" check:"only=agentless"`
	MeshGateway    *MeshGateway `json:"meshGateway" check:"open"`
	Expose         *Expose      `json:"expose" check:"open"`
}

// Modes of a task's proxy without an agent.
const (
	// ProxyDataplane leaves Envoy to the consul-dataplane program.
	ProxyDataplane = "dataplane"
	// ProxyDirect runs Envoy below envoy-entrypoint, which reaches the servers.
	ProxyDirect = "direct"
)

// Upstream is one destination reachable through a local port.
type Upstream struct {
	DestinationType      string         `json:"destinationType" check:"enum=service|prepared_query"`
	DestinationNamespace string         `json:"destinationNamespace"`
	DestinationPartition string         `json:"destinationPartition"`
	DestinationPeer      string         `json:"destinationPeer" check:"only=agentless"`
	DestinationName      string         `json:"destinationName" check:"required,nonempty"`
	Datacenter           string         `json:"datacenter"`
	LocalBindAddress     string         `json:"localBindAddress"`
	LocalBindPort        int            `json:"localBindPort" check:"required,range=1-65535"`
	Config               map[string]any `json:"config"`
	MeshGateway          *MeshGateway   `json:"meshGateway" check:"open"`
}

// Direct reports whether the task's Envoy, of the service or the gateway, runs without
// consul-dataplane, as it does beside an agent.
func (c *Config) Direct() bool {
	switch {
	case !c.Agentless():
		return true
	case c.Gateway == nil:
		return c.Proxy != nil && c.Proxy.Mode == ProxyDirect
	}
	return c.Gateway.Proxy != nil && c.Gateway.Proxy.Mode == ProxyDirect
}

// ReadyPort returns the port at which the task's Envoy, of the service or the gateway, is asked for its
// readiness.
func (c *Config) ReadyPort() int {
	if c.Gateway == nil {
		return c.Proxy.HealthCheckPort
	}
	return c.Gateway.HealthCheckPort
}

// MeshGateway is how traffic to other datacenters leaves: none, local, remote.
type MeshGateway struct {
	Mode string `json:"mode" check:"required,enum=none|local|remote"`
}

// Expose lets plain-text callers reach single HTTP paths through the proxy.
type Expose struct {
	Checks bool         `json:"checks"`
	Paths  []ExposePath `json:"paths" check:"open"`
}

// ExposePath is one exposed path.
type ExposePath struct {
	ListenerPort  int    `json:"listenerPort" check:"required,range=1-65535"`
	Path          string `json:"path" check:"required,nonempty"`
	LocalPathPort int    `json:"localPathPort" check:"required,range=1-65535"`
	Protocol      string `json:"protocol" check:"protocol"`
}

// Gateway makes the task a gateway instead of a service.
type Gateway struct {
	// Kind is mesh-gateway; without an agent also terminating-gateway or api-gateway.
	Kind string `json:"kind" check:"required,agent:enum=mesh-gateway,agentless:enum=mesh-gateway|terminating-gateway|api-gateway"`
	// Name is the lower-cased task family when empty.
	Name       string            `json:"name" check:"name"`
	LANAddress *Address          `json:"lanAddress"`
	WANAddress *Address          `json:"wanAddress"`
	Tags       []string          `json:"tags" check:"unique"`
	Meta       map[string]string `json:"meta"`
	Namespace  string            `json:"namespace"`
	Partition  string            `json:"partition"`
	Proxy      *GatewayProxy     `json:"proxy" check:"open"`
	// HealthCheckPort is as that of Proxy.
	HealthCheckPort int `json:"healthCheckPort" check:"only=agentless,range=0-65535"`
}

// KindMeshGateway is the kind of gateway that both generations have.
const KindMeshGateway = "mesh-gateway"

// Address is an address and port; port 0 means 8443.
type Address struct {
	Address string `json:"address"`
	Port    int    `json:"port" check:"range=0-65535"`
}

// GatewayProxy carries the gateway's opaque proxy configuration.
type GatewayProxy struct {
	Config map[string]any `json:"config"`
	// Mode is as that of Proxy.
	Mode string `json:"mode" check:"only=agentless,enum=dataplane|direct"`
}
