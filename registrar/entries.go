package registrar

import (
	"cmp"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/workload"
)

// notReady is the output of a check that health-sync has not written yet.
const notReady = "the service is not ready: its health has not been written yet"

// health is what a check reports.
type health struct{ status, output string }

// entry returns the frame of all registrations: the node, which a task never changes. The
// controller keeps it.
func entry(w workload.Workload) *api.CatalogRegistration {
	return &api.CatalogRegistration{Node: w.Node, SkipNodeUpdate: true, Partition: w.Partition}
}

// nodeEntry also has what Consul needs to make the node, as it does without ACLs.
func nodeEntry(w workload.Workload, s *api.AgentService, checks api.HealthChecks) *api.CatalogRegistration {
	e := entry(w)
	e.Address, e.NodeMeta = w.Address, map[string]string{config.NodeMetaSynthetic: "true"}
	e.Service, e.Checks = s, checks
	return e
}

// serviceEntry returns the application's entry.
func serviceEntry(w workload.Workload, known map[string]health) *api.CatalogRegistration {
	s := catalogService(w)
	s.ID, s.Service, s.Port = w.ID, w.Name, w.Port
	return nodeEntry(w, s, checkEntries(w, w.ID, known))
}

// proxyEntry returns the sidecar's or the gateway's entry.
func proxyEntry(w workload.Workload, known map[string]health) *api.CatalogRegistration {
	p, s := w.Proxy, catalogService(w)
	s.ID, s.Service, s.Port = p.ID, p.Name, p.Port
	if !w.IsGateway() {
		s.Kind = api.ServiceKindConnectProxy
		s.Proxy = sidecar(w)
	} else {
		s.Kind = api.ServiceKind(w.Gateway)
		s.Address = cmp.Or(p.Address, w.Address)
		s.TaggedAddresses = taggedAddresses(p)
		if p.HasConfig {
			s.Proxy = &api.AgentServiceConnectProxyConfig{Config: p.Config}
		}
	}
	return nodeEntry(w, s, checkEntries(w, p.ID, known))
}

// catalogService returns what a service and its proxy have in common.
func catalogService(w workload.Workload) *api.AgentService {
	s := &api.AgentService{
		Address:           w.Address,
		Tags:              w.Tags,
		Meta:              w.Meta,
		EnableTagOverride: w.EnableTagOverride,
		Namespace:         w.Namespace,
		Partition:         w.Partition,
		Locality:          locality(w),
	}
	if w.Weights != nil {
		s.Weights = *weights(w.Weights)
	}
	if w.Transparent {
		// The service's port also in the proxy's registration: applications call that.
		s.TaggedAddresses = map[string]api.ServiceAddress{"virtual": {Address: w.Address, Port: w.Port}}
	}
	return s
}

// checkEntries returns the checks of one service of the workload. Those that are known keep
// what they report.
func checkEntries(w workload.Workload, serviceID string, known map[string]health) api.HealthChecks {
	var checks api.HealthChecks
	for _, c := range w.SyncChecks {
		if c.ServiceID != serviceID {
			continue
		}
		h, ok := known[c.ID]
		if !ok {
			h = health{api.HealthCritical, notReady}
		}
		checks = append(checks, checkEntry(w, c, h))
	}
	return checks
}

func checkEntry(w workload.Workload, c workload.SyncCheck, h health) *api.HealthCheck {
	return &api.HealthCheck{
		Node:      w.Node,
		CheckID:   c.ID,
		Name:      c.Name,
		Status:    h.status,
		Notes:     c.Notes,
		Output:    h.output,
		ServiceID: c.ServiceID,
		Type:      workload.CatalogCheckType,
		Namespace: w.Namespace,
		Partition: w.Partition,
	}
}
