package reach

import (
	"cmp"
	"strings"
	"time"
)

// Question is what is asked: whether Source can send the request to Destination.
type Question struct {
	Source, Destination string
	// Peer imports the destination, Datacenter has it; empty means the local one.
	Peer, Datacenter string
	// SourcePeer is the peer of the caller, as seen from the destination. The links on the caller's side are not
	// examined then, as they are in the catalog of the peer.
	SourcePeer string
	Request    Request
}

// Request is the HTTP request that routes and intentions of layer 7 are compared with.
type Request struct {
	Method, Path string              // path is without a query
	Header       map[string][]string // names in lower case
	Query        map[string][]string
}

// Fact is an answer of Consul.
type Fact[T any] struct {
	Value T
	// Missing says why the answer, or a part of it, is not known, and which right would show it; empty when all is.
	Missing string
}

// Facts is what Consul knows about a question. Maps have an element for each ID of Targets.
type Facts struct {
	Now           time.Time
	Caller        Fact[[]Instance] // instances of the source
	CallerProxies Fact[[]Instance]
	Chain         Fact[Chain]
	// ChainFault is Consul's text about configuration entries that do not fit together.
	ChainFault string
	Services   map[string]Fact[[]Instance] // instances of the target's service
	Endpoints  map[string]Fact[[]Instance] // what the caller's proxy may connect to: proxies, native services, gateways
	Intentions map[string]Fact[Authorization]
	Mesh       Fact[Mesh]
	Peering    Fact[*Peering] // of Question.Peer; nil if there is none
	Roots      Fact[Roots]
}

// Instance is one instance of a service, with its checks and those of its node.
type Instance struct {
	Node    struct{ Node, Address, Datacenter string }
	Service Service
	Checks  []Check
}

// Service is the registration of an instance.
type Service struct {
	ID, Kind, Service, Address string
	Port                       int
	SocketPath                 string
	Weights                    struct{ Passing, Warning int }
	Connect                    struct{ Native bool }
	Proxy                      Proxy
}

// Proxy is the part of a proxy's registration that decides, merged with the configuration entries.
type Proxy struct {
	DestinationServiceName, DestinationServiceID, Mode string
	LocalServiceAddress, LocalServiceSocketPath        string
	LocalServicePort                                   int
	Config                                             map[string]any
	Upstreams                                          []Upstream
}

// Upstream is what a proxy listens for on behalf of its application.
type Upstream struct {
	DestinationType, DestinationName, DestinationPeer, Datacenter string
	LocalBindAddress, LocalBindSocketPath                         string
	LocalBindPort                                                 int
	Config                                                        map[string]any
	CentrallyConfigured                                           bool
}

// Check is a health check.
type Check struct{ CheckID, Name, Status, Output string }

// Authorization is what decides about calls of the source at one target.
type Authorization struct {
	// Intentions are those of the target as destination.
	Intentions []Intention
	// Default is the server's own answer, without permissions of layer 7. It decides when no intention is about the
	// source. DefaultPermission is the one when no permission of an intention fits the request.
	Default, DefaultPermission bool
	// JWT says that the entry wants a JSON Web Token of each request.
	JWT bool
}

// Intention is one source of a service-intentions entry.
type Intention struct {
	SourceName, SourcePeer, DestinationName, Action string
	Permissions                                     []Permission
	Precedence                                      int
}

// Permission is a rule of layer 7.
type Permission struct {
	Action string
	HTTP   *PermissionMatch
	JWT    *struct{}
}

// PermissionMatch is what a request must have for the permission to apply.
type PermissionMatch struct {
	PathExact, PathPrefix, PathRegex string
	Methods                          []string
	Header                           []Match
}

// Match compares a header or a query parameter.
type Match struct {
	Name                                   string
	Present                                bool
	Exact, Prefix, Suffix, Contains, Regex string
	Invert, IgnoreCase                     bool
}

// Mesh is the mesh entry.
type Mesh struct {
	TransparentProxy struct{ MeshDestinationsOnly bool }
}

// Peering is the connection to another cluster.
type Peering struct {
	Name, State  string
	StreamStatus struct{ ImportedServices []string }
}

// Roots is the certificate authority of the mesh.
type Roots struct {
	TrustDomain string
	Active      bool
	NotAfter    time.Time
}

// address returns where others connect to the instance.
func (i Instance) address() string { return cmp.Or(i.Service.Address, i.Node.Address) }

// unhealthy returns the check that keeps Envoy from using the instance, and whether there is one. Consul gives Envoy
// instances with weight 0 as unhealthy.
func (i Instance) unhealthy(onlyPassing bool) (Check, bool) {
	weight := i.Service.Weights.Passing
	for _, c := range i.Checks {
		if c.Status == "critical" || (onlyPassing && c.Status != "passing") {
			return c, true
		}
		if c.Status == "warning" {
			weight = i.Service.Weights.Warning
		}
	}
	return Check{Name: "the weight of the instance", Status: "0"}, weight < 1
}

// config returns a text of the proxy's configuration, in lower case.
func (p Proxy) config(key string) string {
	text, _ := p.Config[key].(string)
	return strings.ToLower(text)
}
