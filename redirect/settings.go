package redirect

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// The users and ports that task definitions and Consul agree on.
const (
	// ProxyUID is the user of the proxy's container, whose connections are not redirected.
	ProxyUID = 5995
	// healthSyncUID is the user of health-sync, which must reach Consul and ECS while
	// the proxy does not run.
	healthSyncUID = 5996
	// outboundPort is where Consul has the proxy listen for redirected connections.
	outboundPort = 15001
	// DNSPort is where the proxy answers DNS queries.
	DNSPort = 8600
)

// taskEndpoint serves the task's metadata and AWS credentials. Applications need
// both before the proxy serves and after it has stopped.
var taskEndpoint = netip.MustParsePrefix("169.254.170.2/32")

// Settings are all that the rules depend on.
type Settings struct {
	// InboundPort and OutboundPort are those of the proxy's listeners.
	InboundPort, OutboundPort int
	// ExcludeInboundPorts reach the program that listens there.
	ExcludeInboundPorts []int
	// ExcludeOutboundPorts, ExcludeOutbound and ExcludeUIDs leave the task without the
	// proxy: connections to these ports, to these addresses, of these users.
	ExcludeOutboundPorts []int
	ExcludeOutbound      []netip.Prefix
	ExcludeUIDs          []config.UIDs
	// DNSPort is where queries to 127.0.0.1:53 go; 0 leaves them alone.
	DNSPort int
	// IPv6 adds the same rules for IPv6. Consul has the proxy listen for outbound
	// connections at one loopback address only, that of IPv4 unless the servers
	// themselves use IPv6: without a listener connections are refused, and none leaves
	// the mesh unnoticed.
	IPv6 bool
}

// RedirectsIPv6 reports whether an outbound connection of IPv6 goes to the proxy, unless an
// exclusion other than that of all addresses matches.
func (s Settings) RedirectsIPv6() bool {
	return s.IPv6 && !slices.Contains(s.ExcludeOutbound, netip.PrefixFrom(netip.IPv6Unspecified(), 0))
}

// NewSettings computes the settings of a service's task from its configuration, the merged
// proxy, the registered port of the proxy, and the port where its readiness is asked for, 0
// for none. IPv6 is left to the caller: see HasIPv6. The error is permanent and names the
// setting of the proxy to change.
func NewSettings(c config.TransparentProxy, p bootstrap.Proxy, publicPort, readyPort int) (Settings, error) {
	ports, err := bootstrap.ReadPorts(p.Config)
	if err != nil {
		return Settings{}, &retry.PermanentError{Err: fmt.Errorf("redirect traffic to the proxy: %w", err)}
	}
	s := Settings{
		InboundPort:  cmp.Or(ports.Public, publicPort),
		OutboundPort: cmp.Or(p.OutboundListenerPort, outboundPort),
		ExcludeInboundPorts: portSet(c.ExcludeInboundPorts, []int{readyPort, ports.Prometheus, ports.Stats},
			p.ExposedPorts),
		ExcludeOutboundPorts: portSet(c.ExcludeOutboundPorts),
		ExcludeOutbound:      append([]netip.Prefix{taskEndpoint}, c.Prefixes...),
		ExcludeUIDs:          append([]config.UIDs{{First: healthSyncUID, Last: healthSyncUID}}, c.UIDs...),
	}
	if c.ConsulDNS.Enabled {
		s.DNSPort = DNSPort
	}
	return s, nil
}

// portSet returns the ports of all lists in order, each once. A port of 0 is not configured.
func portSet(lists ...[]int) []int {
	ports := slices.Concat(lists...)
	slices.Sort(ports)
	return slices.DeleteFunc(slices.Compact(ports), func(port int) bool { return port == 0 })
}
