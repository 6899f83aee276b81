package aclrules

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// written returns a policy as lines.
func written(rules []*Rule) string {
	var lines []string
	for _, r := range rules {
		lines = append(lines, r.HCL())
	}
	return strings.Join(lines, "; ")
}

// The texts are those that Consul generates for identities.
func TestBuiltInPolicies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		got  []*Rule
		want string
	}{
		"service identity": {identityRules(ServiceTemplate, "web"), `service "web" { policy = "write" }; service "web-sidecar-proxy" { policy = "write" }; service_prefix "" { policy = "read" }; node_prefix "" { policy = "read" }`},
		"node identity":    {identityRules(NodeTemplate, "n1"), `node "n1" { policy = "write" }; service_prefix "" { policy = "read" }`},
		"read only": {builtin(readOnlyID), `acl = "read"; keyring = "read"; operator = "read"; mesh = "read"; peering = "read"; agent_prefix "" { policy = "read" }; event_prefix "" { policy = "read" }; key_prefix "" { policy = "read" }; node_prefix "" { policy = "read" }; query_prefix "" { policy = "read" }; ` +
			`service_prefix "" { policy = "read" intentions = "read" }; session_prefix "" { policy = "read" }`},
		"management": {builtin(ManagementID), `acl = "write"; keyring = "write"; operator = "write"; mesh = "write"; peering = "write"; agent_prefix "" { policy = "write" }; event_prefix "" { policy = "write" }; key_prefix "" { policy = "write" }; node_prefix "" { policy = "write" }; query_prefix "" { policy = "write" }; ` +
			`service_prefix "" { policy = "write" intentions = "write" }; session_prefix "" { policy = "write" }`},
	} {
		if got := written(c.got); got != c.want {
			t.Errorf("%s: got %s", name, got)
		}
	}
	if builtin("00000000-0000-0000-0000-000000000003") != nil {
		t.Error("a third built-in policy")
	}
}

func TestTemplate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ template, name, want string }{
		{ServiceTemplate, "web", `service "web" { policy = "write" }; service "web-sidecar-proxy" { policy = "write" }; service_prefix "" { policy = "read" }; node_prefix "" { policy = "read" }`},
		{NodeTemplate, "n", `node "n" { policy = "write" }; service_prefix "" { policy = "read" }`},
		{DNSTemplate, "", `node_prefix "" { policy = "read" }; service_prefix "" { policy = "read" }; query_prefix "" { policy = "read" }`},
		{APIGatewayTemplate, "gw", `mesh = "read"; node_prefix "" { policy = "read" }; service_prefix "" { policy = "read" }; service "gw" { policy = "write" }`},
		{NomadServerTemplate, "", `acl = "write"; agent_prefix "" { policy = "read" }; node_prefix "" { policy = "read" }; service_prefix "" { policy = "write" }`},
		{NomadClientTemplate, "", `agent_prefix "" { policy = "read" }; node_prefix "" { policy = "read" }; service_prefix "" { policy = "write" }; key_prefix "" { policy = "read" }`},
	} {
		p, err := Template(c.template, c.name)
		if err != nil || written(p) != c.want {
			t.Errorf("%s: %v, %v", c.template, p, err)
		}
	}
	for template, want := range map[string]string{
		"builtin/servce":            `templated policy "builtin/servce": not among the built-in ones; did you mean "builtin/service"?`,
		"builtin/workload-identity": `templated policy "builtin/workload-identity": not among the built-in ones`,
		NodeTemplate:                `templated policy "builtin/node": needs the variable name`,
	} {
		if p, err := Template(template, ""); p != nil || fmt.Sprint(err) != want {
			t.Errorf("%s: policy %v, want none; error %v, want %s", template, p, err, want)
		}
	}
}

// What a server gives as a template means what the embedded copy does.
func TestRender(t *testing.T) {
	t.Parallel()
	p, err := Render("mesh = \"read\"\nservice \"{{.Name}}\" {\n  policy = \"write\"\n}\nservice \"{{ .Name }}-x\" { policy = \"read\" }\n", "gw")
	if err != nil || written(p) != `mesh = "read"; service "gw" { policy = "write" }; service "gw-x" { policy = "read" }` {
		t.Errorf("got %v, %v", p, err)
	}
	if slices.ContainsFunc(p, func(r *Rule) bool { return r.Line != 0 }) {
		t.Error("lines of a text that is not shown")
	}
	for _, c := range []struct{ text, name string }{
		{`service "{{.Name}}-{{.Other}}" { policy = "read" }`, "a"}, {`service "{{.Name}}" { policy = "all" }`, "a"},
		{`service "{{.Name}}" { policy = "read" }`, `a" { policy = "write" } acl = "write" #`}, {"", "a\nb"}, {"", "${x}"}, {"", `a\`},
	} {
		if p, err := Render(c.text, c.name); p != nil || err == nil {
			t.Errorf("%q of %q: %v", c.text, c.name, p)
		}
	}
	if p, err := Template(APIGatewayTemplate, `a" { policy = "read" }`); p != nil || err == nil {
		t.Errorf("a name that ends its quotes: %v", p)
	}
}

func TestEqual(t *testing.T) {
	t.Parallel()
	a, _ := Parse("acl = \"read\"\nnode \"n\" { policy = \"read\" }")
	b, _ := Parse("node \"n\" { policy = \"read\" }\nacl = \"read\"")
	c, _ := Parse("acl = \"read\"")
	if got := [3]bool{EqualRules(a, b), EqualRules(a, c), EqualRules(c, a)}; got != [3]bool{true, false, false} {
		t.Errorf("equal in another order, to fewer rules, to more rules: %v, want only the first", got)
	}
}
