package bootstrap

import "github.com/meshtask/consul-ecs/config"

// Kinds of proxies a bootstrap can be made for, as Consul writes them.
const (
	ConnectProxy       = "connect-proxy"
	MeshGateway        = config.KindMeshGateway
	TerminatingGateway = "terminating-gateway"
	APIGateway         = "api-gateway"
)

// IsGateway reports whether a proxy of the kind has its own callers and no
// application behind it.
func IsGateway(kind string) bool {
	return kind == MeshGateway || kind == TerminatingGateway || kind == APIGateway
}

// DefaultAdminBind is where Envoy's admin interface listens by default unless set
// otherwise, as with Consul's own command.
const DefaultAdminBind = "127.0.0.1:19000"

// Proxy is the part of a registered proxy that only Consul has. One answer of
// GET /v1/agent/service/<proxy ID>, or of /v1/health/service/<proxy name> with
// merge-central-config, asked after the registration, has all of
// it: Consul has merged proxy-defaults and service-defaults by then, the
// access logs included.
type Proxy struct {
	// Kind is ConnectProxy or the kind of a gateway (answer: Kind).
	Kind string
	// Service is the proxy's own service name, for a gateway the gateway's
	// (answer: Service).
	Service string
	// Destination is the service behind a sidecar proxy and empty for a
	// gateway (answer: Proxy.DestinationServiceName).
	Destination string
	// Datacenter is the agent's or the node's (answer: Datacenter).
	Datacenter string
	// Namespace and Partition are the answer's or, where it has none, those
	// the proxy was registered with. Empty means "default".
	Namespace, Partition string
	// Config is the merged opaque configuration (answer: Proxy.Config). Keys
	// that mean nothing to a bootstrap are ignored.
	Config map[string]any
	// AccessLogs is nil when none are configured (answer: Proxy.AccessLogs).
	AccessLogs *AccessLogs

	// What follows is for the redirection of traffic, and no part of a bootstrap.

	// OutboundListenerPort is where outbound traffic goes; 0 stands for Consul's
	// default (answer: Proxy.TransparentProxy.OutboundListenerPort).
	OutboundListenerPort int
	// ExposedPorts are the listeners of exposed paths, which callers outside the mesh
	// reach (answer: Proxy.Expose.Paths).
	ExposedPorts []int
}

// AccessLogs are the mesh-wide access log settings of proxy-defaults as far as
// a bootstrap has them: Envoy's admin interface logs in the same way.
// DisableListenerLogs is not here because it concerns listeners only, which
// come through xDS.
type AccessLogs struct {
	Enabled bool
	// Type is "stdout" (also when empty), "stderr" or "file".
	Type string
	// Path is the file of Type "file".
	Path string
	// JSONFormat is a JSON object, TextFormat a line. JSONFormat wins; with
	// neither, Consul's default JSON fields are logged.
	JSONFormat, TextFormat string
}

// Params is all that a bootstrap is made of.
type Params struct {
	Proxy Proxy
	// ProxyID is the service ID of the proxy; Consul's xDS server finds the
	// registration by it.
	ProxyID string
	// NodeName is the catalog node of a proxy that is registered with the servers
	// alone: they find the registration by it. Empty for a proxy of an agent.
	NodeName string
	// Relay reports that GRPC is a relay in the task, which adds the token: Token is not used.
	Relay bool
	// Token is the secret ID of the ACL token Envoy presents to Consul. It
	// ends up in the file. Empty without ACLs.
	Token string
	GRPC  GRPC
	// AdminBind is IP:port of Envoy's admin interface, "localhost" standing
	// for 127.0.0.1; DefaultAdminBind when empty.
	AdminBind string
	// ReadyBind is IP:port of a listener that answers /ready and nothing else,
	// for health checks from outside the container; none when empty.
	ReadyBind string
	// Env holds the environment variables that statsd addresses may refer
	// to: $NAME as the whole address, ${HOST_IP} within one.
	Env map[string]string
}

// GRPC is how Envoy reaches Consul's xDS server.
type GRPC struct {
	// Address is host:port, http://host:port, https://host:port or
	// unix:///path, or unix://@name for an abstract socket. The host is an IP address or "localhost" (127.0.0.1):
	// names are for the caller to resolve, this package does no I/O. https
	// means TLS, and so does a unix socket together with CAPEM.
	Address string
	// CAPEM are the CA certificates in PEM that the server must chain to.
	// Like Consul, we send no server name and check no host name.
	CAPEM string
}
