package config

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// inert finds settings that parse but do nothing. It looks at the document
// before its defaults are applied; root has its fields as they were given.
func inert(cfg *Config, root map[string]json.RawMessage) []Finding {
	var ws warnings
	ws.login(cfg)
	if s := cfg.Service; s != nil {
		ws.reserved("$.service.meta", s.Meta, "services of stopped tasks can be found", MetaTaskID, MetaTaskARN,
			MetaSource)
	}
	for container := range cfg.HealthSync.Startup {
		ws.add(!slices.Contains(cfg.HealthSyncContainers, container), field("$.healthSync.startup", container),
			"no effect: the container is not in healthSyncContainers")
	}
	ws.gateway(cfg, given(root, "transparentProxy"))
	if cfg.Agentless() {
		ws.servers(cfg.ConsulServers)
		ws.agentless(cfg, given(root, "controller"))
	}
	return ws
}

func given(root map[string]json.RawMessage, name string) bool {
	value, ok := root[name]
	return ok && string(value) != "null"
}

type warnings []Finding

func (ws *warnings) add(condition bool, path, message string) {
	if condition {
		*ws = append(*ws, Finding{path, message})
	}
}

func (ws *warnings) reserved(path string, meta map[string]string, why string, keys ...string) {
	for _, key := range keys {
		_, given := meta[key]
		ws.add(given, field(path, key), "no effect: consul-ecs sets this key itself, so that "+why)
	}
}

func (ws *warnings) login(cfg *Config) {
	l := cfg.ConsulLogin
	if l.Enabled {
		ws.reserved("$.consulLogin.meta", l.Meta, "tokens of stopped tasks can be found", LoginMetaTaskID,
			LoginMetaCluster)
		ws.reserved("$.consulLogin.meta", l.Meta, "the controller knows which tokens are replaced before they expire",
			LoginMetaRenewed)
		return
	}
	const off = "no effect while consulLogin.enabled is not true"
	ws.add(l.Method != "", "$.consulLogin.method", off)
	ws.add(l.Datacenter != "", "$.consulLogin.datacenter", off)
	ws.add(!l.IncludeEntity, "$.consulLogin.includeEntity", off)
	ws.add(len(l.Meta) > 0, "$.consulLogin.meta", off)
	ws.add(l.Region != "", "$.consulLogin.region", off)
	ws.add(l.STSEndpoint != "", "$.consulLogin.stsEndpoint", off)
	ws.add(l.ServerIDHeaderValue != "", "$.consulLogin.serverIdHeaderValue", off)
}

func (ws *warnings) gateway(cfg *Config, transparent bool) {
	g := cfg.Gateway
	if g == nil {
		return
	}
	const gateway = "no effect in a gateway task"
	ws.reserved("$.gateway.meta", g.Meta, "services of stopped tasks can be found", MetaTaskID, MetaTaskARN, MetaSource)
	ws.add(cfg.Service != nil, "$.service", gateway)
	ws.add(cfg.Proxy != nil, "$.proxy", gateway+"; use gateway.proxy")
	ws.add(len(cfg.HealthSyncContainers) > 0, "$.healthSyncContainers", gateway)
	ws.add(transparent && cfg.TransparentProxy.Enabled, "$.transparentProxy", gateway)
	if g.Kind == KindMeshGateway {
		ws.add(g.WANAddress != nil && g.WANAddress.Address == "" && g.WANAddress.Port != 0, "$.gateway.wanAddress.port",
			"no effect without wanAddress.address")
		return
	}
	const other = "no effect: only a mesh-gateway has it"
	ws.add(g.LANAddress != nil, "$.gateway.lanAddress", other)
	ws.add(g.WANAddress != nil, "$.gateway.wanAddress", other)
}

func (ws *warnings) servers(s *ConsulServers) {
	tls := s.GRPCTLS()
	const plain, both = "no effect while gRPC is without TLS", "no effect while gRPC and HTTP are without TLS"
	ws.add(s.Hosts == "", "$.consulServers.hosts", "is empty, so that no server is found: set an IP address, a DNS "+
		"name, or exec= and a command that prints addresses")
	ws.add(!tls && !s.HTTP.HTTPS && s.Defaults.CACertFile != "", "$.consulServers.defaults.caCertFile", both)
	ws.add(!tls && !s.HTTP.HTTPS && s.Defaults.TLSServerName != "", "$.consulServers.defaults.tlsServerName", both)
	ws.add(!tls && s.GRPC.CACertFile != "", "$.consulServers.grpc.caCertFile", plain)
	ws.add(!tls && s.GRPC.TLSServerName != "", "$.consulServers.grpc.tlsServerName", plain)
	const http = "no effect while consulServers.http.https is false"
	ws.add(!s.HTTP.HTTPS && s.HTTP.CACertFile != "", "$.consulServers.http.caCertFile", http)
	ws.add(!s.HTTP.HTTPS && s.HTTP.TLSServerName != "", "$.consulServers.http.tlsServerName", http)
	ws.add(s.HTTP.TLS != nil, "$.consulServers.http.tls", "no effect: consulServers.http.https alone decides")
}

func (ws *warnings) agentless(cfg *Config, controller bool) {
	ws.add(cfg.Service == nil && cfg.Gateway == nil && !controller, "$.service",
		"is absent: mesh-init registers a service of the task family's name at port 0")
	if s := cfg.Service; s != nil && s.NetworkResilience != nil {
		ws.add(!s.NetworkResilience.Enabled && s.NetworkResilience.OutlierDetection != nil,
			"$.service.networkResilienceConfig.outlierDetection",
			"no effect while service.networkResilienceConfig.enabled is not true")
	}
	servers := cfg.ConsulServers
	ws.add(strings.HasPrefix(servers.Hosts, "exec=") && servers.GRPCTLS() &&
		cmp.Or(servers.GRPC.TLSServerName, servers.Defaults.TLSServerName) == "" && !cfg.Direct() && !controller,
		"$.consulServers.grpc.tlsServerName", "is absent: with a command in consulServers.hosts, consul-dataplane "+
			"needs a name in the servers' certificates to verify them")
	if p := cfg.Proxy; p != nil && p.Expose != nil {
		ws.add(p.Expose.Checks, "$.proxy.expose.checks",
			"no effect without a Consul client agent, whose checks it is about; use proxy.expose.paths")
	}
	const off = "no effect while transparentProxy.enabled is false"
	t := cfg.TransparentProxy
	if t.Enabled {
		return
	}
	ws.add(len(t.ExcludeInboundPorts) > 0, "$.transparentProxy.excludeInboundPorts", off)
	ws.add(len(t.ExcludeOutboundPorts) > 0, "$.transparentProxy.excludeOutboundPorts", off)
	ws.add(len(t.ExcludeOutboundCIDRs) > 0, "$.transparentProxy.excludeOutboundCIDRs", off)
	ws.add(len(t.ExcludeUIDs) > 0, "$.transparentProxy.excludeUIDs", off)
	ws.add(t.ConsulDNS.Enabled, "$.transparentProxy.consulDNS", off)
}
