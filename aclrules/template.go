package aclrules

import (
	"errors"
	"fmt"
	"maps"
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

// templates returns what the built-in ones mean.
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

// Template returns the policy that a built-in templated policy stands for, with the variable name where it
// has one. An unknown template is an error: its rules cannot be guessed.
func Template(templateName, name string) ([]*Rule, error) {
	t, ok := templates()[templateName]
	switch {
	case !ok:
		return nil, fmt.Errorf("templated policy %q: not among the built-in ones%s", templateName,
			hint(templateName, slices.Sorted(maps.Keys(templates()))))
	case t.named && name == "":
		return nil, fmt.Errorf("templated policy %q: needs the variable name", templateName)
	}
	if err := checkVariable(name); err != nil {
		return nil, fmt.Errorf("templated policy %q: %w", templateName, err)
	}
	var rules []*Rule
	for _, r := range t.rules {
		r.Segment = strings.ReplaceAll(r.Segment, "{name}", name)
		rules = append(rules, &r)
	}
	return rules, nil
}

// Render returns the policy of a templated policy's text, as a server gives it. Its rules have no lines: the
// text is not at hand.
func Render(text, name string) ([]*Rule, error) {
	if err := checkVariable(name); err != nil {
		return nil, err
	}
	text = strings.NewReplacer("{{.Name}}", name, "{{ .Name }}", name).Replace(text)
	if strings.Contains(text, "{{") {
		return nil, errors.New("the template needs more than a name")
	}
	rules, err := Parse(text)
	for _, r := range rules {
		r.Line = 0
	}
	return rules, err
}

// checkVariable refuses what would not stay a name inside a text.
func checkVariable(name string) error {
	if strings.ContainsAny(name, "\"\\${}") || strings.ContainsFunc(name, unicode.IsControl) {
		return fmt.Errorf("variable %q: contains a quote, backslash, brace, $ or control character", name)
	}
	return nil
}

// EqualRules reports whether two policies have the same rules, in whatever order.
func EqualRules(a, b []*Rule) bool { return slices.Equal(sortedTexts(a), sortedTexts(b)) }

func sortedTexts(rules []*Rule) []string {
	var all []string
	for _, r := range rules {
		all = append(all, r.HCL())
	}
	slices.Sort(all)
	return all
}

// identityRules returns those of a service or node identity, by the template of its kind.
func identityRules(template, name string) []*Rule {
	rules, _ := Template(template, name) // an identity without a name does not exist
	return rules
}

// builtin returns the rules of a built-in policy by its ID; nil for any other ID.
func builtin(id string) []*Rule {
	level := map[string]string{ManagementID: "write", readOnlyID: "read"}[id]
	if level == "" {
		return nil
	}
	var rules []*Rule
	for _, r := range Scalars() {
		rules = append(rules, &Rule{Resource: r, Level: level})
	}
	for _, r := range Segmented() {
		rule := &Rule{Resource: r, Prefix: true, Level: level}
		if r == Service {
			rule.Intentions = level
		}
		rules = append(rules, rule)
	}
	return rules
}
