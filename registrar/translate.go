package registrar

import (
	"cmp"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/workload"
)

// The check of a proxy's listener. Consul's shortest interval: the check is
// what keeps a started proxy out of traffic (0.6 had 10s).
const (
	listenerInterval   = "1s"
	deregisterCritical = "10m"
)

// serviceIDs returns the IDs of the proxy and, unless that is a gateway, the service.
func serviceIDs(w workload.Workload) []string {
	if w.IsGateway() {
		return []string{w.Proxy.ID}
	}
	return []string{w.Proxy.ID, w.ID}
}

// serviceRegistration returns the application's registration. It has no address: the agent's
// applies.
func serviceRegistration(w workload.Workload) *api.AgentServiceRegistration {
	return &api.AgentServiceRegistration{
		ID:                w.ID,
		Name:              w.Name,
		Port:              w.Port,
		Tags:              w.Tags,
		Meta:              w.Meta,
		EnableTagOverride: w.EnableTagOverride,
		Weights:           weights(w.Weights),
		Checks:            serviceChecks(w),
		Namespace:         w.Namespace,
		Partition:         w.Partition,
		Locality:          locality(w),
	}
}

// proxyRegistration returns the sidecar's or the gateway's registration.
func proxyRegistration(w workload.Workload) *api.AgentServiceRegistration {
	if w.IsGateway() {
		return gatewayRegistration(w)
	}
	p := w.Proxy
	return &api.AgentServiceRegistration{
		Kind:              api.ServiceKindConnectProxy,
		ID:                p.ID,
		Name:              p.Name,
		Port:              p.Port,
		Tags:              w.Tags,
		Meta:              w.Meta,
		EnableTagOverride: w.EnableTagOverride,
		Weights:           weights(w.Weights),
		Proxy:             sidecar(w),
		Checks: api.AgentServiceChecks{
			listenerCheck("Proxy Public Listener", p.ListenerCheck),
			{Name: "Destination Alias", AliasService: w.ID, Status: aliasStatus(serviceChecks(w))},
		},
		Namespace: w.Namespace,
		Partition: w.Partition,
		Locality:  locality(w),
	}
}

// sidecar returns the proxy settings of a service.
func sidecar(w workload.Workload) *api.AgentServiceConnectProxyConfig {
	p := w.Proxy
	c := &api.AgentServiceConnectProxyConfig{
		DestinationServiceName: w.Name,
		DestinationServiceID:   w.ID,
		LocalServiceAddress:    p.LocalServiceAddress,
		LocalServicePort:       w.Port,
		Config:                 p.Config,
		Upstreams:              upstreams(p.Upstreams),
		MeshGateway:            meshGateway(p.MeshGateway),
		Expose:                 expose(p.Expose),
	}
	if w.Transparent {
		c.Mode = api.ProxyModeTransparent
	}
	return c
}

func gatewayRegistration(w workload.Workload) *api.AgentServiceRegistration {
	p := w.Proxy
	r := &api.AgentServiceRegistration{
		Kind:            api.ServiceKind(w.Gateway),
		ID:              p.ID,
		Name:            p.Name,
		Port:            p.Port,
		Address:         p.Address,
		TaggedAddresses: taggedAddresses(p),
		Tags:            w.Tags,
		Meta:            w.Meta,
		Checks:          api.AgentServiceChecks{listenerCheck(w.Gateway+" listener", p.ListenerCheck)},
		Namespace:       w.Namespace,
		Partition:       w.Partition,
		Locality:        locality(w),
	}
	if p.HasConfig {
		r.Proxy = &api.AgentServiceConnectProxyConfig{Config: p.Config}
	}
	return r
}

func taggedAddresses(p workload.Proxy) map[string]api.ServiceAddress {
	tagged := map[string]api.ServiceAddress{}
	for tag, a := range map[string]*config.Address{"lan": p.LAN, "wan": p.WAN} {
		if a != nil {
			tagged[tag] = api.ServiceAddress{Address: a.Address, Port: a.Port}
		}
	}
	return tagged
}

func listenerCheck(name, address string) *api.AgentServiceCheck {
	return &api.AgentServiceCheck{
		Name:                           name,
		TCP:                            address,
		Interval:                       listenerInterval,
		DeregisterCriticalServiceAfter: deregisterCritical,
	}
}

// aliasStatus returns what the alias check of a service with these checks begins
// with: the status it is about to take. A check that starts critical (the
// default) and turns passing at once can be lost: an agent that registers the
// proxy a second time in that moment, because mesh-wide defaults changed, does
// not send the change to the servers before its next full sync, a minute later.
func aliasStatus(checks api.AgentServiceChecks) string {
	for _, c := range checks {
		if c.Status != api.HealthPassing {
			return ""
		}
	}
	return api.HealthPassing
}

// serviceChecks returns the user's own checks or those that health-sync feeds; the
// configuration cannot have both.
func serviceChecks(w workload.Workload) api.AgentServiceChecks {
	var checks api.AgentServiceChecks
	for _, c := range w.Checks {
		checks = append(checks, nativeCheck(c))
	}
	for _, c := range w.SyncChecks {
		checks = append(checks, &api.AgentServiceCheck{CheckID: c.ID, Name: c.Name, TTL: ttl.String(), Notes: c.Notes})
	}
	return checks
}

func nativeCheck(c config.Check) *api.AgentServiceCheck {
	return &api.AgentServiceCheck{
		CheckID:                c.CheckID,
		Name:                   c.Name,
		Args:                   c.Args,
		Interval:               c.Interval,
		Timeout:                c.Timeout,
		TTL:                    c.TTL,
		HTTP:                   c.HTTP,
		Header:                 c.Header,
		Method:                 c.Method,
		Body:                   c.Body,
		TCP:                    c.TCP,
		UDP:                    c.UDP,
		Status:                 c.Status,
		Notes:                  c.Notes,
		TLSServerName:          c.TLSServerName,
		TLSSkipVerify:          c.TLSSkipVerify,
		GRPC:                   c.GRPC,
		GRPCUseTLS:             c.GRPCUseTLS,
		H2PING:                 c.H2PING,
		H2PingUseTLS:           c.H2PINGUseTLS,
		AliasNode:              c.AliasNode,
		AliasService:           c.AliasService,
		SuccessBeforePassing:   c.SuccessBeforePassing,
		FailuresBeforeCritical: c.FailuresBeforeCritical,
	}
}

// checkRegistration returns a TTL check alone, for a service that exists. status
// counts only when the agent does not have the check yet.
func checkRegistration(w workload.Workload, c workload.SyncCheck, status string) *api.AgentCheckRegistration {
	return &api.AgentCheckRegistration{
		ID:                c.ID,
		Name:              c.Name,
		Notes:             c.Notes,
		ServiceID:         c.ServiceID,
		AgentServiceCheck: api.AgentServiceCheck{TTL: ttl.String(), Status: status},
		Namespace:         w.Namespace,
		Partition:         w.Partition,
	}
}

// locality returns where the task runs. Agents and servers before Consul 1.16 ignore it.
func locality(w workload.Workload) *api.Locality {
	return &api.Locality{Region: w.Locality.Region, Zone: w.Locality.Zone}
}

func weights(w *config.Weights) *api.AgentWeights {
	if w == nil {
		return nil
	}
	return &api.AgentWeights{Passing: w.Passing, Warning: w.Warning}
}

func upstreams(us []config.Upstream) []api.Upstream {
	var out []api.Upstream
	for _, u := range us {
		out = append(out, api.Upstream{
			DestinationType:      api.UpstreamDestType(u.DestinationType),
			DestinationPeer:      u.DestinationPeer,
			DestinationNamespace: u.DestinationNamespace,
			DestinationPartition: u.DestinationPartition,
			DestinationName:      u.DestinationName,
			Datacenter:           u.Datacenter,
			LocalBindAddress:     u.LocalBindAddress,
			LocalBindPort:        u.LocalBindPort,
			Config:               u.Config,
			MeshGateway:          meshGateway(u.MeshGateway),
		})
	}
	return out
}

func meshGateway(m *config.MeshGateway) api.MeshGatewayConfig {
	if m == nil {
		return api.MeshGatewayConfig{}
	}
	return api.MeshGatewayConfig{Mode: api.MeshGatewayMode(m.Mode)}
}

func expose(e *config.Expose) api.ExposeConfig {
	if e == nil {
		return api.ExposeConfig{}
	}
	out := api.ExposeConfig{Checks: e.Checks}
	for _, p := range e.Paths {
		out.Paths = append(out.Paths, api.ExposePath{
			ListenerPort: p.ListenerPort, Path: p.Path, LocalPathPort: p.LocalPathPort, Protocol: p.Protocol,
		})
	}
	return out
}

// effectiveProxy returns what Consul answered, for the bootstrap. Consul CE does not
// answer namespace and partition.
func effectiveProxy(s *api.AgentService, w workload.Workload) bootstrap.Proxy {
	p := bootstrap.Proxy{
		Kind:       string(s.Kind),
		Service:    s.Service,
		Datacenter: s.Datacenter,
		Namespace:  cmp.Or(s.Namespace, w.Namespace),
		Partition:  cmp.Or(s.Partition, w.Partition),
	}
	if s.Proxy == nil {
		return p
	}
	p.Destination = s.Proxy.DestinationServiceName
	p.Config = s.Proxy.Config
	if t := s.Proxy.TransparentProxy; t != nil {
		p.OutboundListenerPort = t.OutboundListenerPort
	}
	for _, path := range s.Proxy.Expose.Paths {
		p.ExposedPorts = append(p.ExposedPorts, path.ListenerPort)
	}
	if l := s.Proxy.AccessLogs; l != nil {
		p.AccessLogs = &bootstrap.AccessLogs{
			Enabled: l.Enabled, Type: string(l.Type), Path: l.Path,
			JSONFormat: l.JSONFormat, TextFormat: l.TextFormat,
		}
	}
	return p
}
