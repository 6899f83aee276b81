package admission

import (
	"strings"

	"github.com/meshtask/consul-ecs/aclrules"
)

// Kinds of usages. Those of the mesh are the kinds that Nomad gives its tasks.
const (
	useService     = "service"
	useProxy       = "connect-proxy"
	useNative      = "connect-native"
	useMesh        = "connect-mesh"
	useTerminating = "connect-terminating"
	useAPI         = "connect-api"
	useUpstream    = "upstream"
	usePeered      = "upstream of a peer"
	useQuery       = "prepared query"
	useKeys        = "key prefix"
	useKeyList     = "listed key prefix"
)

// useRule is what one kind of usage requires of Consul.
type useRule struct {
	Kind string
	// Operator is what the token of the one who submits the definition has to allow, and
	// Runtime what the token of the task needs.
	Operator, Runtime []need
}

// need is one right. Segment and Reason have the placeholder {name}.
type need struct {
	Resource aclrules.Resource
	Segment  string
	// Below is true for everything whose name begins with Segment.
	Below  bool
	Access aclrules.Access
	// Reason completes "in order to".
	Reason string
}

// Rule returns the smallest rule that grants the need of a usage with that name.
func (n need) Rule(name string) aclrules.Rule {
	return aclrules.Rule{Resource: n.Resource, Prefix: n.Below, Segment: named(n.Segment, name),
		Level: string(n.Access)}
}

func named(text, name string) string { return strings.ReplaceAll(text, "{name}", name) }

// useRules returns what each kind of usage requires, in the order of a report.
func useRules() []useRule {
	service := need{aclrules.Service, "{name}", false, aclrules.WriteAccess, "register the service {name}"}
	gateway := need{aclrules.Service, "{name}", false, aclrules.WriteAccess, "register the gateway {name}"}
	proxy := need{aclrules.Service, "{name}-sidecar-proxy", false, aclrules.WriteAccess,
		"register the proxy of the Connect service {name}"}
	native := need{aclrules.Service, "{name}", false, aclrules.WriteAccess,
		"get the certificate of the Connect service {name}"}
	upstream := need{aclrules.Service, "{name}", false, aclrules.ReadAccess, "find the upstream {name}"}
	meshWrite := need{aclrules.Mesh, "", false, aclrules.WriteAccess,
		"get the certificate of peerings for the mesh gateway {name}"}
	meshRead := need{aclrules.Mesh, "", false, aclrules.ReadAccess, "read the configuration of the API gateway {name}"}
	services := need{aclrules.Service, "", true, aclrules.ReadAccess, "discover services"}
	nodes := need{aclrules.Node, "", true, aclrules.ReadAccess, "discover nodes"}
	keys := need{aclrules.Key, "{name}", true, aclrules.ReadAccess, "read keys below the prefix {name}"}
	keyList := need{aclrules.Key, "{name}", true, aclrules.ListAccess, "list keys below the prefix {name}"}
	return []useRule{
		{useService, []need{service}, []need{service}},
		{useProxy, []need{service, proxy}, []need{service, proxy, services, nodes}},
		{useNative, []need{native}, []need{native, services, nodes}},
		{useMesh, []need{gateway, meshWrite}, []need{gateway, meshWrite, services, nodes}},
		{useTerminating, []need{gateway}, []need{gateway, services, nodes}},
		{useAPI, []need{gateway, meshRead}, []need{gateway, meshRead, services, nodes}},
		{useUpstream, []need{upstream}, []need{upstream, nodes}},
		// A token that may register any service finds those of peers; rules with their names do not count.
		{usePeered, nil, nil},
		// Any token may run a query. It answers with those instances that the token may read.
		{useQuery, nil, []need{services, nodes}},
		{useKeys, []need{keys}, []need{keys}},
		{useKeyList, []need{keyList}, []need{keyList}},
	}
}

// Holders of rights.
const (
	holderOperator = "operator"
	holderRuntime  = "runtime"
)

// Requirement is a right that an admitted definition requires.
type Requirement struct {
	// Namespace and Partition are empty for the default ones, the only ones without
	// Consul Enterprise.
	Namespace string            `json:"namespace"`
	Partition string            `json:"partition,omitempty"`
	Resource  aclrules.Resource `json:"resource"`
	Segment   string            `json:"segment"`
	// Below is true for everything whose name begins with Segment.
	Below  bool            `json:"below,omitempty"`
	Access aclrules.Access `json:"access"`
	// Holder is holderOperator or holderRuntime.
	Holder string `json:"holder"`
	Reason string `json:"reason"`
	// Path is where the definition asks for it, a JSON path in it.
	Path string `json:"path"`
}

// Query returns the requirement as a question about a token.
func (r Requirement) Query() aclrules.Query {
	return aclrules.Query{Resource: r.Resource, Segment: r.Segment, Access: r.Access}
}

// HCL returns the smallest policy that grants it.
func (r Requirement) HCL() string {
	rule := aclrules.Rule{Resource: r.Resource, Prefix: r.Below, Segment: r.Segment, Level: string(r.Access)}
	return rule.HCL()
}

// requirements returns what the uses require, each right once, the operator's first.
func requirements(uses []use) []Requirement {
	type right struct {
		namespace, partition, holder string
		rule                         aclrules.Rule
	}
	var all []Requirement
	known := map[right]bool{}
	add := func(u use, holder string, needs []need) {
		for _, n := range needs {
			key := right{u.Namespace, u.Partition, holder, n.Rule(u.Name)}
			if known[key] {
				continue
			}
			known[key] = true
			all = append(all, Requirement{
				Namespace: u.Namespace, Partition: u.Partition, Resource: n.Resource, Segment: named(n.Segment, u.Name),
				Below: n.Below, Access: n.Access, Holder: holder, Reason: named(n.Reason, u.Name), Path: u.Path,
			})
		}
	}
	rules := map[string]useRule{}
	for _, r := range useRules() {
		rules[r.Kind] = r
	}
	for _, u := range uses {
		add(u, holderOperator, rules[u.Kind].Operator)
	}
	for _, u := range uses {
		add(u, holderRuntime, rules[u.Kind].Runtime)
	}
	return all
}
