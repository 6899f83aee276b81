package reach

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Chain is a compiled discovery chain: what routers, splitters and resolvers make of a name.
type Chain struct {
	ServiceName, Datacenter, Protocol, StartNode string
	Nodes                                        map[string]Node
	Targets                                      map[string]Target
}

// Node is a step of a chain.
type Node struct {
	Type, Name string
	Routes     []struct {
		Definition *Route
		NextNode   string
	}
	Splits []struct {
		Weight   float64
		NextNode string
	}
	Resolver *struct {
		Target   string
		Failover *struct{ Targets []string }
	}
}

// Route is a route of a service-router entry.
type Route struct {
	Match       *struct{ HTTP *RouteMatch }
	Destination *struct{ PrefixRewrite string }
}

// RouteMatch is what a request must have to take a route.
type RouteMatch struct {
	PathExact, PathPrefix, PathRegex string
	CaseInsensitive                  bool
	Header, QueryParam               []Match
	Methods                          []string
}

// Target is what a chain can end at.
type Target struct {
	ID, Service, ServiceSubset, Namespace, Partition, Datacenter, Peer string
	Subset                                                             struct {
		Filter      string
		OnlyPassing bool
	}
	External bool
}

// String returns the target in the words of the configuration entries.
func (t Target) String() string {
	text := t.Service
	if t.ServiceSubset != "" {
		text += fmt.Sprintf(" (subset %s)", t.ServiceSubset)
	}
	if t.Peer != "" {
		text += " of peer " + t.Peer
	}
	return text
}

// leg is one way that a request may take through a chain.
type leg struct {
	percent float64
	// targets are those of the resolver: the first, then those of its failover.
	targets []string
	request Request // as it leaves the caller's proxy
	through []string
}

// maxNodes bounds the length of a way, against chains with a loop.
const maxNodes = 50

// follow returns the ways that a request may take. It fails when no route or split leads further.
func (c Chain) follow(r Request) ([]leg, error) {
	return c.from(c.StartNode, leg{percent: 100, request: r})
}

func (c Chain) from(name string, l leg) ([]leg, error) {
	node, found := c.Nodes[name]
	if !found || len(l.through) > maxNodes {
		return nil, fmt.Errorf("the discovery chain has no node %q", name)
	}
	l.through = append(slices.Clone(l.through), name)
	switch {
	case node.Resolver != nil:
		l.targets = []string{node.Resolver.Target}
		if node.Resolver.Failover != nil {
			l.targets = append(l.targets, node.Resolver.Failover.Targets...)
		}
		return []leg{l}, nil
	case len(node.Splits) > 0:
		return c.split(node, l)
	}
	for _, r := range node.Routes {
		if request, fits := r.Definition.take(l.request); fits {
			l.request = request
			return c.from(r.NextNode, l)
		}
	}
	return nil, fmt.Errorf("no route of service-router %q takes %s %s", c.ServiceName, l.request.Method, l.request.Path)
}

// split follows each split that gets requests.
func (c Chain) split(node Node, l leg) (all []leg, err error) {
	for _, s := range node.Splits {
		if s.Weight == 0 {
			continue
		}
		part := l
		part.percent = l.percent * s.Weight / 100
		legs, err := c.from(s.NextNode, part)
		if err != nil {
			return nil, err
		}
		all = append(all, legs...)
	}
	if len(all) == 0 {
		err = fmt.Errorf("service-splitter %q gives no split a weight", c.ServiceName)
	}
	return all, err
}

// take reports whether a request takes the route, and returns it as the route sends it on.
func (d *Route) take(r Request) (Request, bool) {
	if d == nil || d.Match == nil || d.Match.HTTP == nil {
		return r, true
	}
	m := d.Match.HTTP
	if !matchPath(m.PathExact, m.PathPrefix, m.PathRegex, r.Path, m.CaseInsensitive) || !m.others(r) {
		return r, false
	}
	if d.Destination != nil && d.Destination.PrefixRewrite != "" {
		matched := len(m.PathPrefix)
		if m.PathExact != "" {
			matched = len(r.Path)
		}
		r.Path = d.Destination.PrefixRewrite + r.Path[matched:]
	}
	return r, true
}

// others compares all but the path.
func (m *RouteMatch) others(r Request) bool {
	if len(m.Methods) > 0 && !slices.Contains(m.Methods, r.Method) {
		return false
	}
	for _, q := range m.QueryParam {
		if !q.fits(r.Query[q.Name]) {
			return false
		}
	}
	return matchHeaders(m.Header, r.Header)
}

// fits reports whether the permission is about the request.
func (p Permission) fits(r Request) bool {
	if p.HTTP == nil {
		return true
	}
	if len(p.HTTP.Methods) > 0 && !slices.Contains(p.HTTP.Methods, r.Method) {
		return false
	}
	return matchPath(p.HTTP.PathExact, p.HTTP.PathPrefix, p.HTTP.PathRegex, r.Path, false) &&
		matchHeaders(p.HTTP.Header, r.Header)
}

func matchHeaders(wanted []Match, have map[string][]string) bool {
	for _, m := range wanted {
		if m.fits(have[strings.ToLower(m.Name)]) == m.Invert {
			return false
		}
	}
	return true
}

// matchPath compares a path with the one condition that is set. Regular expressions match the whole path, as in Envoy.
func matchPath(exact, prefix, regex, path string, fold bool) bool {
	if fold {
		exact, prefix, path = strings.ToLower(exact), strings.ToLower(prefix), strings.ToLower(path)
		if regex != "" {
			regex = "(?i)" + regex
		}
	}
	switch {
	case exact != "":
		return path == exact
	case prefix != "":
		return strings.HasPrefix(path, prefix)
	case regex != "":
		return matchRegex(regex, path)
	}
	return true
}

func matchRegex(pattern, text string) bool {
	compiled, err := regexp.Compile(`^(?:` + pattern + `)$`)
	return err == nil && compiled.MatchString(text)
}

// fits compares the values of a header or parameter, not inverted.
func (m Match) fits(values []string) bool {
	if len(values) == 0 {
		return false
	}
	value := strings.Join(values, ",")
	exact, prefix, suffix, contains := m.Exact, m.Prefix, m.Suffix, m.Contains
	if m.IgnoreCase {
		value, exact, prefix = strings.ToLower(value), strings.ToLower(exact), strings.ToLower(prefix)
		suffix, contains = strings.ToLower(suffix), strings.ToLower(contains)
	}
	switch {
	case exact != "":
		return value == exact
	case prefix != "":
		return strings.HasPrefix(value, prefix)
	case suffix != "":
		return strings.HasSuffix(value, suffix)
	case contains != "":
		return strings.Contains(value, contains)
	case m.Regex != "":
		return matchRegex(m.Regex, value)
	}
	return true
}

// ImportedChain returns the chain of a service that a peer exports: its entries are in the cluster of the peer.
func ImportedChain(service, peer string) Chain {
	node := Node{Type: "resolver", Name: service}
	node.Resolver = &struct {
		Target   string
		Failover *struct{ Targets []string }
	}{Target: service}
	return Chain{
		ServiceName: service, StartNode: service, Nodes: map[string]Node{service: node},
		Targets: map[string]Target{service: {ID: service, Service: service, Peer: peer}},
	}
}
