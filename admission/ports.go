package admission

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/redirect"
	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/workload"
)

// listener is a port that something in the task takes.
type listener struct {
	address string
	port    int
	owner   string
}

// checkPorts looks for ports that two take: containers of the user's, the mesh, and
// what the configuration binds.
func checkPorts(t *task) {
	taken := meshPorts(t.cfg)
	for _, u := range t.cfg.Proxy.Upstreams {
		l := listener{cmp.Or(u.LocalBindAddress, loopback), u.LocalBindPort, "the upstream " + u.DestinationName}
		if other, clash := l.clashes(taken); clash {
			t.doc.report(codeUpstream, t.annotations.pathOf(annotationUpstreams), "name", u.DestinationName, "message",
				fmt.Sprintf("its port %d is also that of %s", l.port, other))
		}
		taken = append(taken, l)
	}
	if e := t.cfg.Proxy.Expose; e != nil {
		for _, p := range e.Paths {
			l := listener{"", p.ListenerPort, "the exposed path " + p.Path}
			if other, clash := l.clashes(taken); clash {
				t.doc.report(codePort, t.annotations.pathOf(annotationExpose), "port", l.port, "one", l.owner, "other",
					other)
			}
			taken = append(taken, l)
		}
	}
	for i, c := range t.doc.Definition.ContainerDefinitions {
		if !workload.IsMeshContainer(c.Name) {
			checkContainerPorts(t.doc, i, c, taken)
		}
	}
}

func checkContainerPorts(d *document, i int, c taskdef.Container, taken []listener) {
	for j, p := range c.PortMappings {
		from, to := p.Ports()
		if p.Protocol == "udp" || from < 1 {
			continue
		}
		at := slices.IndexFunc(taken, func(l listener) bool { return from <= l.port && l.port <= to })
		if at >= 0 { // a container may listen at all addresses
			d.report(codePort, fmt.Sprintf("$.containerDefinitions[%d].portMappings[%d]", i, j), "port", taken[at].port,
				"one", "container "+c.Name, "other", taken[at].owner)
		}
	}
}

// clashes returns the owner of the first listener that excludes this one. No address
// means all.
func (l listener) clashes(taken []listener) (string, bool) {
	for _, other := range taken {
		if l.port == other.port && (l.address == "" || other.address == "" || l.address == other.address) {
			return other.owner, true
		}
	}
	return "", false
}

// meshPorts returns the ports of the proxy and of the agent.
func meshPorts(cfg *config.Config) []listener {
	ports := []listener{{"", 19000, "Envoy's admin interface"}}
	if cfg.Gateway == nil {
		ports = append(ports, listener{"", cfg.Proxy.PublicListenerPort, "Envoy's public listener"})
	}
	if !hasAgent(cfg) {
		ports = append(ports, listener{"", readyPort(cfg), "Envoy's readiness"})
	}
	if isTransparent(cfg) {
		ports = append(ports, listener{"", 15001, "the transparent proxy"})
	}
	if isTransparent(cfg) && cfg.TransparentProxy.ConsulDNS.Enabled {
		ports = append(ports, listener{"", redirect.DNSPort, "Consul DNS"})
	}
	if hasAgent(cfg) {
		for _, port := range []int{8301, 8500, 8502, 8600} {
			ports = append(ports, listener{"", port, "the Consul agent"})
		}
	}
	return ports
}
