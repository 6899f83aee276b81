package reach

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// State is what is known about a link, or about all of them.
type State string

// States. A warning does not keep the source from calling.
const (
	OK      State = "ok"
	Warning State = "warning"
	Broken  State = "broken"
	Unknown State = "unknown"
)

// Link is one thing that a call needs.
type Link struct {
	Name   string `json:"link"`
	State  State  `json:"state"`
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}

// Report is the answer. Links are in the order of a request's way.
type Report struct {
	Source      string `json:"source"`
	Destination string `json:"destination"`
	// Result is OK if the source can call the destination, Broken if not, Unknown if a part could not be read.
	Result State `json:"result"`
	// Cause is the first link that is broken or, if none is, unknown.
	Cause *Link  `json:"cause,omitempty"`
	Links []Link `json:"links"`
}

// examination collects the links.
type examination struct {
	question Question
	facts    Facts
	links    []Link
	upstream Upstream // of the caller's proxy; without a name if the proxy is transparent
}

// Examine answers the question from the facts.
func Examine(q Question, f Facts) Report {
	e := &examination{question: q, facts: f}
	if q.SourcePeer == "" {
		e.caller()
	}
	if q.Peer != "" {
		e.peering()
	}
	e.chain()
	e.roots()
	r := Report{Source: q.Source, Destination: q.Destination, Result: OK, Links: e.links}
	for _, state := range []State{Broken, Unknown} {
		if i := slices.IndexFunc(e.links, func(l Link) bool { return l.State == state }); i >= 0 {
			r.Result, r.Cause = state, &e.links[i]
			break
		}
	}
	return r
}

func (e *examination) add(name string, state State, remedy, text string, args ...any) {
	e.links = append(e.links, Link{Name: name, State: state, Remedy: remedy, Text: fmt.Sprintf(text, args...)})
}

// missing adds a link whose facts could not be read.
func (e *examination) missing(name, why string) { e.add(name, Unknown, "", "not known: %s", why) }

// caller examines the source: its registration, its proxy and the upstream.
func (e *examination) caller() {
	source := e.question.Source
	switch all := e.facts.Caller; {
	case len(all.Value) > 0:
		e.add("caller", OK, "", "%s is registered: %s", source, instances(len(all.Value)))
	case all.Missing != "":
		e.missing("caller", all.Missing)
	default:
		e.add("caller", Broken, "Look at the log of consul-ecs-mesh-init of its task, or correct the name.",
			"%s is not registered", source)
	}
	proxies := e.facts.CallerProxies
	var sidecars []Instance
	native := 0
	for _, p := range proxies.Value {
		switch {
		case p.Service.Kind == "connect-proxy":
			sidecars = append(sidecars, p)
		case p.Service.Connect.Native:
			native++
		}
	}
	switch {
	case len(sidecars) > 0:
		e.add("caller proxy", OK, "", "%s has %d proxies", source, len(sidecars))
		e.upstreams(sidecars)
	case native > 0:
		e.add("caller proxy", OK, "", "%s is Connect native and needs no proxy and no upstream", source)
	case proxies.Missing != "":
		e.missing("caller proxy", proxies.Missing)
	default:
		e.add("caller proxy", Broken, "Register the service with its proxy, as mesh-init does.",
			"%s has no proxy in the catalog", source)
	}
}

// upstreams examines how the application reaches the destination through its proxies.
func (e *examination) upstreams(sidecars []Instance) {
	explicit, transparent := 0, 0
	var similar []string
	for _, p := range sidecars {
		i := slices.IndexFunc(p.Service.Proxy.Upstreams, e.isUpstream)
		switch {
		case i >= 0:
			explicit++
			e.upstream = p.Service.Proxy.Upstreams[i]
		case p.Service.Proxy.Mode == "transparent":
			transparent++
		}
		for _, u := range p.Service.Proxy.Upstreams {
			similar = append(similar, upstreamText(u))
		}
	}
	slices.Sort(similar)
	similar = slices.Compact(similar)
	usable := explicit + transparent
	remedy := fmt.Sprintf("Add %s to proxy.upstreams of %s.", e.wanted(), e.question.Source)
	switch {
	case usable == 0 && e.facts.CallerProxies.Missing != "":
		e.missing("upstream", e.facts.CallerProxies.Missing)
	case usable == 0 && len(similar) == 0:
		e.add("upstream", Broken, remedy, "%s has no upstream", e.question.Source)
	case usable == 0:
		e.add("upstream", Broken, remedy, "%s has no upstream for %s; it has %s", e.question.Source, e.wanted(),
			strings.Join(similar, ", "))
	case usable < len(sidecars):
		e.add("upstream", Warning, remedy, "only %d of %d proxies of %s have an upstream for %s", usable, len(sidecars),
			e.question.Source, e.wanted())
	case explicit == 0:
		e.add("upstream", OK, "", "transparent proxy: %s is reached by its virtual address or name%s", e.wanted(),
			e.onlyMesh())
	case e.upstream.LocalBindSocketPath != "":
		e.add("upstream", OK, "", "the application connects to %s", e.upstream.LocalBindSocketPath)
	default:
		e.add("upstream", OK, "", "the application connects to %s:%d",
			cmp.Or(e.upstream.LocalBindAddress, "127.0.0.1"), e.upstream.LocalBindPort)
	}
}

// onlyMesh says what a transparent proxy does with addresses outside of the mesh.
func (e *examination) onlyMesh() string {
	if e.facts.Mesh.Value.TransparentProxy.MeshDestinationsOnly {
		return "; the mesh entry has MeshDestinationsOnly, so an address of a task is refused"
	}
	return ""
}

// isUpstream reports whether an upstream is the one for the destination. Central defaults have no listener.
func (e *examination) isUpstream(u Upstream) bool {
	if u.CentrallyConfigured || (u.LocalBindPort == 0 && u.LocalBindSocketPath == "") {
		return false
	}
	local := e.facts.Chain.Value.Datacenter
	return u.DestinationType != "prepared_query" && u.DestinationName == e.question.Destination &&
		u.DestinationPeer == e.question.Peer && cmp.Or(u.Datacenter, local) == cmp.Or(e.question.Datacenter, local)
}

// wanted returns the destination as an upstream names it.
func (e *examination) wanted() string {
	return upstreamText(Upstream{DestinationName: e.question.Destination, DestinationPeer: e.question.Peer,
		Datacenter: e.question.Datacenter})
}

func upstreamText(u Upstream) string {
	text := u.DestinationName
	if u.DestinationType == "prepared_query" {
		text += " (prepared query)"
	}
	if u.DestinationPeer != "" {
		text += " of peer " + u.DestinationPeer
	}
	if u.Datacenter != "" {
		text += " of datacenter " + u.Datacenter
	}
	return text
}

// peering examines the connection to the destination's cluster.
func (e *examination) peering() {
	peer := e.question.Peer
	switch fact := e.facts.Peering; {
	case fact.Missing != "":
		e.missing("peering", fact.Missing)
	case fact.Value == nil:
		e.add("peering", Broken, "Correct the name, or establish the peering.", "there is no peer %s", peer)
	case fact.Value.State != "ACTIVE":
		e.add("peering", Broken,
			"Look at the servers' logs, and at the mesh gateways and port 8502 between the clusters.",
			"peering %s is %s", peer, fact.Value.State)
	case !slices.Contains(fact.Value.StreamStatus.ImportedServices, e.question.Destination):
		e.add("peering", Broken, "Write an exported-services entry there, with this cluster as a consumer.",
			"peer %s does not export %s to this cluster", peer, e.question.Destination)
	default:
		e.add("peering", OK, "", "peering %s is ACTIVE and exports %s", peer, e.question.Destination)
	}
}

// chain follows the discovery chain, and examines each way that a request may take.
func (e *examination) chain() {
	const remedy = "Read them: consul config read -kind service-router|service-splitter|service-resolver -name %s"
	destination := e.question.Destination
	fact := e.facts.Chain
	switch {
	case e.facts.ChainFault != "":
		e.add("discovery chain", Broken, fmt.Sprintf(remedy, destination), "%s", e.facts.ChainFault)
		return
	case fact.Missing != "":
		e.missing("discovery chain", fact.Missing)
		return
	}
	legs, err := fact.Value.follow(e.question.Request)
	if err != nil {
		e.add("discovery chain", Broken, fmt.Sprintf(remedy, destination), "%s", err)
		return
	}
	e.override()
	for _, l := range legs {
		e.leg(l, len(legs) > 1)
	}
}

// override warns of a protocol that the upstream sets for itself, because Consul compiles another chain for it.
func (e *examination) override() {
	protocol, _ := e.upstream.Config["protocol"].(string)
	if chain := e.facts.Chain.Value.Protocol; protocol != "" && chain != "" && !strings.EqualFold(protocol, chain) {
		e.add("protocol", Warning, "Remove it, and write a service-defaults entry for the destination.",
			"the upstream has protocol %s and the destination %s: routers and splitters have no effect", protocol,
			chain)
	}
}

// leg examines the target that gets the requests of one way: the first of its resolver that has healthy instances.
func (e *examination) leg(l leg, several bool) {
	chosen := l.targets[0]
	for _, id := range l.targets {
		if e.ready(id) {
			chosen = id
			break
		}
	}
	target := e.facts.Chain.Value.Targets[chosen]
	way := target.String()
	if several {
		way += fmt.Sprintf(" (%.4g%% of the requests)", l.percent)
	}
	if chosen != l.targets[0] {
		way += " by failover"
	}
	if target.Service != e.question.Destination || target.ServiceSubset != "" || several {
		e.add("discovery chain", OK, "", "%s leads to %s", e.question.Destination, way)
	}
	if target.External {
		e.add("instances", Warning, "", "%s is outside of the catalog: its health is not known", way)
		return
	}
	e.instances(target, way)
	e.intention(target, l.request)
}

// ready reports whether a target has an instance that Envoy uses.
func (e *examination) ready(id string) bool {
	only := e.facts.Chain.Value.Targets[id].Subset.OnlyPassing
	return slices.ContainsFunc(e.facts.Endpoints[id].Value, func(i Instance) bool {
		_, bad := i.unhealthy(only)
		return !bad
	})
}

// roots examines the certificate authority.
func (e *examination) roots() {
	switch fact := e.facts.Roots; {
	case fact.Missing != "":
		e.missing("certificates", fact.Missing)
	case !fact.Value.Active:
		e.add("certificates", Broken, "Set connect.enabled = true on the servers.",
			"the mesh has no active root certificate")
	case e.facts.Now.After(fact.Value.NotAfter):
		e.add("certificates", Broken, "Rotate the root: consul connect ca set-config.",
			"the active root certificate expired at %s", fact.Value.NotAfter.Format("2006-01-02T15:04:05Z07:00"))
	default:
		e.add("certificates", OK, "", "trust domain %s, root valid until %s", fact.Value.TrustDomain,
			fact.Value.NotAfter.Format("2006-01-02"))
	}
}

func instances(n int) string {
	if n == 1 {
		return "1 instance"
	}
	return fmt.Sprintf("%d instances", n)
}
