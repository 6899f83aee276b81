package workload

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"

	"github.com/meshtask/consul-ecs/config"
)

// loopback is where a proxy's listener is checked from the same task.
const loopback = "127.0.0.1"

// New returns what the task is in Consul. It fails if the task's family is needed
// as a name and Consul does not take it, in a network mode without a mesh, or with
// ErrIncomplete if the metadata lack what is needed: the cluster, the family or the task's
// address. region is AWS_REGION, which may be empty.
func New(cfg *config.Config, t Task, region string) (Workload, error) {
	w := Workload{TaskID: t.ID(), TaskARN: t.TaskARN,
		Locality: Locality{cmp.Or(region, t.Region()), t.AvailabilityZone}}
	if t.ClusterARN() == "" {
		return Workload{}, fmt.Errorf("describe workload: %w: no cluster", ErrIncomplete)
	}
	err := checkMode(cfg, t)
	switch {
	case err != nil:
	case cfg.Gateway != nil:
		err = w.setGateway(cfg, t)
	default:
		err = w.setService(cfg, t)
	}
	switch {
	case err != nil:
	case cfg.Agentless():
		err = w.setCatalog(cfg, t)
	default:
		w.setAgentChecks(cfg)
	}
	if err != nil {
		return Workload{}, fmt.Errorf("describe workload: %w", err)
	}
	return w, nil
}

// checkMode refuses network modes in which the containers of a task do not share a loopback, or
// the task has no address that others reach. With an agent, which may be given an address, the
// host's network will do.
func checkMode(cfg *config.Config, t Task) error {
	switch mode := t.networkMode(); {
	case mode == "", mode == modeAWSVPC, mode == modeHost && !cfg.Agentless():
		return nil
	default:
		return refuseMode(mode)
	}
}

func (w *Workload) setService(cfg *config.Config, t Task) error {
	s := cfg.Service
	if s == nil {
		s = &config.Service{}
	}
	var err error
	if w.Name, err = NameOf(cfg, t); err != nil {
		return err
	}
	w.ID = ServiceID(w.Name, w.TaskID)
	w.Namespace, w.Partition = s.Namespace, s.Partition
	w.Port = s.Port
	w.Tags = s.Tags
	w.Meta = w.meta(s.Meta, t)
	w.EnableTagOverride = s.EnableTagOverride
	w.Weights = s.Weights
	w.Checks = s.Checks
	p := cfg.Proxy
	w.Proxy = Proxy{
		Name:                ProxyName(w.Name),
		ID:                  ProxyID(w.ID),
		Port:                p.PublicListenerPort,
		LocalServiceAddress: p.LocalServiceAddress,
		ListenerCheck:       net.JoinHostPort(loopback, strconv.Itoa(p.PublicListenerPort)),
		HasConfig:           true,
		Config:              p.Config,
		Upstreams:           p.Upstreams,
		MeshGateway:         p.MeshGateway,
		Expose:              p.Expose,
	}
	return nil
}

func (w *Workload) setGateway(cfg *config.Config, t Task) error {
	g := cfg.Gateway
	var err error
	if w.Name, err = NameOf(cfg, t); err != nil {
		return err
	}
	w.Gateway = g.Kind
	w.ID = ServiceID(w.Name, w.TaskID)
	w.Namespace, w.Partition = g.Namespace, g.Partition
	w.Tags = g.Tags
	w.Meta = w.meta(g.Meta, t)
	w.Proxy = Proxy{Name: w.Name, ID: w.ID, Port: config.DefaultGatewayPort}
	if g.Kind == config.KindMeshGateway { // no other kind has its own addresses
		if g.LANAddress != nil {
			// A port counts without an address, but is no tagged address then.
			w.Proxy.Address, w.Proxy.Port = g.LANAddress.Address, g.LANAddress.Port
			w.Proxy.LAN = tagged(g.LANAddress)
		}
		w.Proxy.WAN = tagged(g.WANAddress)
	}
	host, err := listenerHost(w.Proxy.Address, t)
	if err != nil {
		return err
	}
	w.Proxy.ListenerCheck = net.JoinHostPort(host, strconv.Itoa(w.Proxy.Port))
	if g.Proxy != nil {
		w.Proxy.HasConfig, w.Proxy.Config = true, g.Proxy.Config
	}
	return nil
}

// tagged returns a when it has an address.
func tagged(a *config.Address) *config.Address {
	if a == nil || a.Address == "" {
		return nil
	}
	return a
}

// listenerHost returns where the agent connects to prove that a gateway listens. A gateway binds the task's
// own address. On the host's network the metadata have none, and loopback is checked in its place, as before,
// rather than refusing to start: a wrong guess shows as a critical check.
func listenerHost(lan string, t Task) (string, error) {
	switch {
	case lan != "":
		return lan, nil
	case t.networkMode() == modeHost:
		return loopback, nil
	}
	return t.NodeIP()
}

// meta returns the user's with the keys of consul-ecs over it, which clean-up needs.
func (w *Workload) meta(user map[string]string, t Task) map[string]string {
	meta := map[string]string{}
	for _, c := range t.Containers {
		if version := EnvoyVersion(c.Image); c.Name == ContainerSidecarProxy && version != "" {
			meta[config.MetaEnvoyVersion] = version
		}
	}
	maps.Copy(meta, user)
	maps.Copy(meta, map[string]string{
		config.MetaTaskID:  w.TaskID,
		config.MetaTaskARN: w.TaskARN,
		config.MetaSource:  config.SourceValue,
	})
	return meta
}

// NameOf returns the name in Consul of the task's service or gateway.
func NameOf(cfg *config.Config, t Task) (string, error) {
	switch {
	case cfg.Gateway != nil:
		return nameOf(cfg.Gateway.Name, "gateway.name", t)
	case cfg.Service != nil:
		return nameOf(cfg.Service.Name, "service.name", t)
	}
	return nameOf("", "service.name", t)
}

// nameOf returns the configured name, or the task's family in lower case. An upper-case name could never
// match a service identity.
func nameOf(configured, setting string, t Task) (string, error) {
	if configured != "" {
		return configured, nil
	}
	if t.Family == "" {
		return "", fmt.Errorf("%w: no family", ErrIncomplete)
	}
	name := strings.ToLower(t.Family)
	if !config.ValidName(name) {
		return "", fmt.Errorf("task family %q is no Consul service name (a-z, 0-9, - and _, a letter or digit at "+
			"both ends): set %s", t.Family, setting)
	}
	return name, nil
}
