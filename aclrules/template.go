package aclrules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Names of Consul's built-in templated policies.
const (
	ServiceTemplate     = "builtin/service"
	NodeTemplate        = "builtin/node"
	DNSTemplate         = "builtin/dns"
	APIGatewayTemplate  = "builtin/api-gateway"
	NomadServerTemplate = "builtin/nomad-server"
	NomadClientTemplate = "builtin/nomad-client"
)

// IDs and names of Consul's built-in policies.
const (
	ManagementID = "00000000-0000-0000-0000-000000000001"
	readOnlyID   = "00000000-0000-0000-0000-000000000002"
	readOnlyName = "builtin/global-read-only"
)

// template is a templated policy: rules in which {name} stands for the
// variable, and whether it has that variable.
type template struct {
	rules []Rule
	named bool
}

// templates are what the built-in ones mean.
func templates() map[string]template {
	all := func(r Resource, level string) Rule { return Rule{Resource: r, Prefix: true, Level: level} }
	own := func(r Resource, segment string) Rule { return Rule{Resource: r, Segment: segment, Level: "write"} }
	return map[string]template{
		ServiceTemplate: {named: true, rules: []Rule{
			own(Service, "{name}"), own(Service, "{name}-sidecar-proxy"), all(Service, "read"), all(Node, "read"),
		}},
		NodeTemplate: {named: true, rules: []Rule{own(Node, "{name}"), all(Service, "read")}},
		DNSTemplate:  {rules: []Rule{all(Node, "read"), all(Service, "read"), all(PreparedQuery, "read")}},
		APIGatewayTemplate: {named: true, rules: []Rule{
			{Resource: Mesh, Level: "read"}, all(Node, "read"), all(Service, "read"), own(Service, "{name}"),
		}},
		NomadServerTemplate: {rules: []Rule{
			{Resource: ACL, Level: "write"}, all(Agent, "read"), all(Node, "read"), all(Service, "write"),
		}},
		NomadClientTemplate: {rules: []Rule{
			all(Agent, "read"), all(Node, "read"), all(Service, "write"), all(Key, "read"),
		}},
	}
}

// Template is the policy that a built-in templated policy stands for, with the
// variable name where it has one. An unknown template is an error: its rules
// cannot be guessed.
func Template(templateName, name string) (*ParsedPolicy, error) {
	t, ok := templates()[templateName]
	switch {
	case !ok:
		return nil, fmt.Errorf("templated policy %q: not among the built-in ones%s", templateName, hint(templateName, templateNames()))
	case t.named && name == "":
		return nil, fmt.Errorf("templated policy %q: needs the variable name", templateName)
	}
	if err := checkVariable(name); err != nil {
		return nil, fmt.Errorf("templated policy %q: %w", templateName, err)
	}
	p := &ParsedPolicy{}
	for _, r := range t.rules {
		r.Segment = strings.ReplaceAll(r.Segment, "{name}", name)
		p.Rules = append(p.Rules, &r)
	}
	return p, nil
}

// Render is the policy of a templated policy's text, as a server gives it. Its
// rules have no lines: the text is not at hand.
func Render(text, name string) (*ParsedPolicy, error) {
	if err := checkVariable(name); err != nil {
		return nil, err
	}
	text = strings.NewReplacer("{{.Name}}", name, "{{ .Name }}", name).Replace(text)
	if strings.Contains(text, "{{") {
		return nil, errors.New("the template needs more than a name")
	}
	p, err := Parse(text)
	if err != nil {
		return nil, err
	}
	for _, r := range p.Rules {
		r.Line = 0
	}
	return p, nil
}

// checkVariable refuses what would not stay a name inside a text.
func checkVariable(name string) error {
	if strings.ContainsAny(name, "\"\\${}") || strings.ContainsFunc(name, unicode.IsControl) {
		return fmt.Errorf("variable %q: not a name that can be judged", name)
	}
	return nil
}

// Equal reports whether two policies have the same rules, in whatever order.
func (p *ParsedPolicy) Equal(other *ParsedPolicy) bool { return slices.Equal(p.texts(), other.texts()) }

func (p *ParsedPolicy) texts() []string {
	var all []string
	for _, r := range p.Rules {
		all = append(all, r.HCL())
	}
	slices.Sort(all)
	return all
}

func templateNames() []string {
	var names []string
	for name := range templates() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// ServiceIdentity is the policy of a service identity.
func serviceIdentityPolicy(name string) *ParsedPolicy {
	p, _ := Template(ServiceTemplate, name) // an identity without a name does not exist
	return p
}

// NodeIdentity is the policy of a node identity.
func nodeIdentityPolicy(name string) *ParsedPolicy {
	p, _ := Template(NodeTemplate, name)
	return p
}

// builtin is a built-in policy by its ID; nil for any other ID.
func builtin(id string) *ParsedPolicy {
	level := map[string]string{ManagementID: "write", readOnlyID: "read"}[id]
	if level == "" {
		return nil
	}
	p := &ParsedPolicy{}
	for _, r := range Scalars() {
		p.Rules = append(p.Rules, &Rule{Resource: r, Level: level})
	}
	for _, r := range Segmented() {
		rule := &Rule{Resource: r, Prefix: true, Level: level}
		if r == Service {
			rule.Intentions = level
		}
		p.Rules = append(p.Rules, rule)
	}
	return p
}
