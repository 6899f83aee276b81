package reach

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"
)

// instances examines what the caller's proxy connects to.
func (e *examination) instances(t Target, way string) {
	services, endpoints := e.facts.Services[t.ID], e.facts.Endpoints[t.ID]
	switch {
	case len(services.Value) > 0:
		e.add("destination", OK, "", "%s is registered: %s", t.Service, instances(len(services.Value)))
	case services.Missing != "":
		e.missing("destination", services.Missing)
	case len(endpoints.Value) == 0:
		e.add("destination", Broken, "Look at the log of consul-ecs-mesh-init of its task, or correct the name.",
			"%s is not registered", t.Service)
		return
	}
	switch {
	case len(endpoints.Value) > 0:
		e.healthy(t, way, endpoints.Value)
	case endpoints.Missing != "":
		e.missing("instances", endpoints.Missing)
	case t.ServiceSubset != "":
		e.add("instances", Broken,
			"Correct the filter in service-resolver "+t.Service+", or the metadata of the instances.",
			"no instance of %s is in subset %s (%s)", t.Service, t.ServiceSubset, t.Subset.Filter)
	default:
		e.add("instances", Broken, "Register the service with its proxy, as mesh-init does.",
			"%s has no proxy in the catalog", t.Service)
	}
}

// healthy counts the instances that Envoy uses, and examines their ports.
func (e *examination) healthy(t Target, way string, all []Instance) {
	var used []Instance
	var reasons []string
	for _, i := range all {
		c, bad := i.unhealthy(t.Subset.OnlyPassing)
		if !bad {
			used = append(used, i)
			continue
		}
		reasons = append(reasons, fmt.Sprintf("%s: %s is %s%s", i.Service.ID, cmp.Or(c.Name, c.CheckID), c.Status,
			output(c.Output)))
	}
	const remedy = "Read the log of consul-ecs-health-sync of that task, and the health of its containers in ECS."
	switch missing := e.facts.Endpoints[t.ID].Missing; {
	case len(used) == 0 && missing != "":
		e.missing("instances", missing)
	case len(used) == 0:
		e.add("instances", Broken, remedy, "0 of %s of %s healthy; %s", instances(len(all)), way, strings.Join(reasons,
			"; "))
	case len(used) < len(all):
		e.add("instances", OK, "", "%d of %s of %s healthy; %s", len(used), instances(len(all)), way,
			strings.Join(reasons, "; "))
	default:
		e.add("instances", OK, "", "%d of %s of %s healthy", len(used), instances(len(all)), way)
	}
	e.ports(t, used)
}

// output returns a check's output as a part of a line.
func output(text string) string {
	const most = 200
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return ""
	}
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return fmt.Sprintf(" (%s)", text)
}

// ports examines where the caller's proxy connects to, and where the destination's connects to.
func (e *examination) ports(t Target, used []Instance) {
	var addresses []string
	for _, i := range used {
		if i.Service.Kind == "connect-proxy" && t.Peer == "" {
			e.application(t, i)
		}
		if i.Service.Port == 0 && i.Service.SocketPath == "" {
			e.add("proxy port", Broken, "Register the proxy with its port (20000).", "%s has no port", i.Service.ID)
			return
		}
		addresses = append(addresses, net.JoinHostPort(i.address(), fmt.Sprint(i.Service.Port)))
	}
	if len(addresses) == 0 {
		return
	}
	slices.Sort(addresses)
	const most = 3
	more := ""
	if len(addresses) > most {
		more = fmt.Sprintf(" and %d more", len(addresses)-most)
	}
	e.add("proxy port", OK, "", "the security group of %s must allow TCP from that of %s to %s%s", t.Service,
		e.question.Source, strings.Join(addresses[:min(most, len(addresses))], ", "), more)
}

// application examines the port that the destination's proxy connects to.
func (e *examination) application(t Target, proxy Instance) {
	p := proxy.Service.Proxy
	if p.LocalServiceSocketPath != "" {
		return
	}
	const remedy = "Set service.port of %s to the port on which the application listens."
	if p.LocalServicePort == 0 {
		e.add("application port", Broken, fmt.Sprintf(remedy, t.Service), "%s does not know the application's port",
			proxy.Service.ID)
		return
	}
	for _, s := range e.facts.Services[t.ID].Value {
		if s.Service.ID != p.DestinationServiceID {
			continue
		}
		if s.Service.Port != p.LocalServicePort {
			e.add("application port", Warning, fmt.Sprintf(remedy, t.Service),
				"%s connects to port %d, and %s is registered with port %d", proxy.Service.ID, p.LocalServicePort,
				s.Service.ID, s.Service.Port)
		}
		if c, bad := s.unhealthy(false); bad {
			e.add("application", Warning, "", "%s: %s is %s%s; the proxy gets requests all the same", s.Service.ID,
				cmp.Or(c.Name, c.CheckID), c.Status, output(c.Output))
		}
	}
}

// intention examines whether the target's proxy lets the request in.
func (e *examination) intention(t Target, r Request) {
	if t.Peer != "" {
		e.add("intention", Unknown,
			fmt.Sprintf("Ask a server there: consul-ecs why -source-peer PEER %s %s, where PEER is "+
				"its name for this cluster.", e.question.Source, t.Service),
			"intentions for %s are in the cluster of peer %s", t.Service, t.Peer)
		return
	}
	fact := e.facts.Intentions[t.ID]
	if fact.Missing != "" && fact.Value.Default {
		e.add("intention", OK, "", "the server allows %s to call %s; not all intentions could be read",
			e.question.Source,
			t.Service)
		return
	}
	if fact.Missing != "" {
		e.missing("intention", fact.Missing)
		return
	}
	remedy := fmt.Sprintf("Allow it: consul intention create -allow -replace %s %s", e.question.Source, t.Service)
	i, found := e.deciding(t, fact.Value.Intentions)
	switch {
	case !found && !fact.Value.Default:
		e.add("intention", Broken, remedy, "no intention allows %s to call %s, and the default is deny",
			e.question.Source,
			t.Service)
	case !found:
		e.add("intention", OK, "", "no intention is about %s and %s, and the default is allow", e.question.Source,
			t.Service)
	case len(i.Permissions) > 0:
		e.permissions(t, i, fact.Value, r)
	case i.Action != "allow":
		e.add("intention", Broken, remedy, "intention %s denies", i)
	default:
		e.add("intention", OK, "", "intention %s allows", i)
	}
	if found && fact.Value.JWT && isHTTP(e.protocol(t)) {
		e.add("intention", Unknown, "", "service-intentions %s wants a JSON Web Token of each request", t.Service)
	}
}

// deciding returns the intention with the highest precedence that is about the caller.
func (e *examination) deciding(t Target, all []Intention) (decides Intention, found bool) {
	for _, i := range all {
		about := (i.SourceName == e.question.Source || i.SourceName == "*") && i.SourcePeer == e.question.SourcePeer &&
			(i.DestinationName == t.Service || i.DestinationName == "*")
		if about && (!found || i.Precedence > decides.Precedence) {
			decides, found = i, true
		}
	}
	return decides, found
}

// permissions compares the request with the permissions of an intention. Envoy has them for HTTP only; Consul gives
// it a denial for other protocols.
func (e *examination) permissions(t Target, i Intention, a Authorization, r Request) {
	protocol := e.protocol(t)
	if missing := e.facts.Endpoints[t.ID].Missing; missing != "" && !isHTTP(protocol) {
		e.missing("intention", missing)
		return
	}
	if !isHTTP(protocol) {
		e.add("intention", Broken, fmt.Sprintf("Write service-defaults %s with protocol http.", t.Service),
			"intention %s has permissions of layer 7, and the protocol of %s is %s: Consul denies", i, t.Service,
			protocol)
		return
	}
	what := fmt.Sprintf("%s %s", r.Method, r.Path)
	remedy := fmt.Sprintf("Change the permissions in service-intentions %s.", i.DestinationName)
	n := slices.IndexFunc(i.Permissions, func(p Permission) bool { return p.fits(r) })
	switch {
	case n < 0 && !a.DefaultPermission:
		e.add("intention", Broken, remedy, "no permission of intention %s fits %s, and the default is deny", i, what)
	case n < 0:
		e.add("intention", OK, "", "no permission of intention %s fits %s, and the default is allow", i, what)
	case i.Permissions[n].Action != "allow":
		e.add("intention", Broken, remedy, "permission %d of intention %s denies %s", n+1, i, what)
	case i.Permissions[n].JWT != nil:
		e.add("intention", Unknown, "", "permission %d of intention %s wants a JSON Web Token", n+1, i)
	default:
		e.add("intention", OK, "", "permission %d of intention %s allows %s", n+1, i, what)
	}
}

// protocol returns the protocol of the target's proxies.
func (e *examination) protocol(t Target) string {
	for _, i := range e.facts.Endpoints[t.ID].Value {
		if p := i.Service.Proxy.config("protocol"); p != "" {
			return p
		}
	}
	return "tcp"
}

func isHTTP(protocol string) bool {
	return slices.Contains([]string{"http", "http2", "grpc"}, protocol)
}

// String returns source and destination as Consul writes them.
func (i Intention) String() string {
	source := i.SourceName
	if i.SourcePeer != "" {
		source += " of peer " + i.SourcePeer
	}
	return source + " => " + i.DestinationName
}
