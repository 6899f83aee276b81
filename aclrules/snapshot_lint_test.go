package aclrules

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLintSnapshot(t *testing.T) {
	t.Parallel()
	nomad := Grants{TemplatedPolicies: []TemplatedPolicy{{Template: NomadServerTemplate}, {Template: DNSTemplate}}}
	s := &Snapshot{
		Policies: []Policy{
			{ID: ManagementID, Name: "global-management", Rules: `acl = "write"`}, // Consul's own is as it is
			{ID: "1", Name: "root", Rules: "# x\nacl = \"write\""},
			{ID: "2", Name: "broken", Rules: `acl = "all"`},
			{ID: "3", Name: "clean", Rules: `service "web" { policy = "write" }`},
			{ID: "5", Name: "oper", Rules: `operator = "write"`},
			{ID: "4", Name: "typo", Rules: `servce "web" { policy = "write" }`},
		},
		Roles:  []Role{{ID: "r", Name: "nomad", Grants: nomad}, {ID: "s", Name: "both", Grants: Grants{Policies: []Link{{ID: "5"}, {ID: "1"}}}}, {ID: "q", Name: "mine", Grants: Grants{TemplatedPolicies: []TemplatedPolicy{{Template: "mine"}}}}},
		Tokens: []Token{{Accessor: "t", Grants: nomad}, {Accessor: "u"}},
		AuthMethods: []AuthMethod{{Name: "jwt", Type: "jwt", Values: []string{"team"}},
			{Name: "k", Type: "kubernetes"}},
		Bindings: map[string][]BindingRule{"jwt": {
			{ID: "b1", Selector: `value.tem == "x"`, BindType: "service", BindName: "web"},
			{ID: "b2", Selector: "((", BindType: "service", BindName: "${value.team}"},
			{ID: "b3", BindType: "policy", BindName: "root"},
			{ID: "b4", Selector: `value.team == "ops"`, BindType: "role", BindName: "nomad"},
			{ID: "b5", BindType: "templated-policy", BindName: NomadServerTemplate},
			{ID: "b6", BindType: "role", BindName: "gone"},
			{ID: "b7", BindType: "policy", BindName: "gone"},
			{ID: "b8", BindType: "role", BindName: "${value.team}"},
			{ID: "b9", BindType: "policy", BindName: "clean"},
			{ID: "c1", Selector: `value.team == "x"`, BindType: "role", BindName: "both"},
			{ID: "b0", BindType: "policy", BindName: "Global-MANAGEMENT"},
			{ID: "c2", BindType: "role", BindName: "NOMAD"},
		}},
		Templates: map[string]string{"mine": `operator = "write"`},
	}
	const root, everywhere = "equivalent to root: its holder can make a management token",
		"enough to pose as any service: its holder can replace the mesh's certificate authority"
	want := []Finding{
		{"policy root", 2, "root", `acl = "write" is ` + root},
		{"policy broken", 1, "invalid", `acl: policy "all": want deny, read or write`},
		{"policy oper", 1, "root", `operator = "write" is ` + everywhere},
		{"policy typo", 1, "inert", `servce is ignored: there is no such resource; did you mean "service"?`},
		{"role nomad", 0, "root", `templated policy "builtin/nomad-server" is ` + root},
		{"role mine", 0, "root", `templated policy "mine" is ` + everywhere},
		{"token t", 0, "root", `templated policy "builtin/nomad-server" is ` + root},
		{"binding rule b1 of jwt", 0, "selector", `"value.tem == \"x\"": value.tem is not mapped by the auth method: ` +
			`==, in and "is not empty" are always false, their negations always true`},
		{"binding rule b2 of jwt", 0, "selector", `"((": it never matches: `},
		{"binding rule b3 of jwt", 0, "root", `every login gets policy "root", which is ` + root},
		{"binding rule b4 of jwt", 0, "root", `a login that matches gets role "nomad", which is ` + root},
		{"binding rule b5 of jwt", 0, "root", `every login gets templated policy "builtin/nomad-server", which is ` +
			root},
		{"binding rule b6 of jwt", 0, "dangling", `role "gone" does not exist: no login gets it`},
		{"binding rule b7 of jwt", 0, "dangling", `policy "gone" does not exist: no login gets it`},
		{"binding rule b8 of jwt", 0, "root",
			`every login gets the role that it names itself by "${value.team}", which may be "both" and is ` + root},
		{"binding rule c1 of jwt", 0, "root", `a login that matches gets role "both", which is ` + root},
		{"binding rule b0 of jwt", 0, "root", `every login gets policy "Global-MANAGEMENT", which is ` + root},
		{"binding rule c2 of jwt", 0, "root", `every login gets role "NOMAD", which is ` + root},
	}
	got := s.Lint()
	for i := range got { // the parser's words are its own
		if got[i].Object == "binding rule b2 of jwt" && len(got[i].Message) > len(want[8].Message) {
			got[i].Message = got[i].Message[:len(want[8].Message)]
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A name that the login chooses may be that of any policy or role that the text around the
// variables and the selector do not exclude.
func TestLintOfNamesFromTheLogin(t *testing.T) {
	t.Parallel()
	const management, oper = "root Global-Management", "root ops/oper"
	for _, c := range []struct{ kind, name, selector, want string }{
		{"policy", "${value.sub}", "", management},
		{"policy", "global-${value.sub}", "", management},
		{"policy", "GLOBAL-${value.sub}", "", management},
		{"policy", "${value.sub}-management", "", management},
		{"policy", "gl${value.sub}-${value.team}t", "", management},
		{"policy", "global-management${value.sub}", "", management},
		{"policy", "ops/${value.sub}", "", oper},
		{"policy", "app-${value.sub}", "", "variable"},
		{"policy", "${value.sub}-x", "", "variable"},
		{"policy", "${account_id}", "", "variable"},
		{"policy", "global-${account_id}", "", "variable"},
		{"policy", "${entity_path}", "", "variable"},
		{"policy", "ops${entity_path}", "", oper},
		{"policy", `${value.sub == "x" ? "global-management" : "none"}`, "", management},
		{"policy", `${value.sub == "x" ? value.team : "none"}`, `value.team == "web"`, management},
		{"policy", `app-${value.sub == "x" ? value.team : "none"}`, "", "variable"},
		{"policy", `global-${1 + 1}`, "", management},
		{"policy", `${value.sub}${1 + 1}`, `value.sub == "x"`, management},
		{"policy", "global-${value.sub", "", management},
		{"policy", "${value.sub}" + strings.Repeat("x", maxText), "", management},
		{"policy", "${value.sub}", `value.sub == "web"`, "variable"},
		{"policy", "${value.sub}", `value.sub == "GLOBAL-management"`, management},
		{"policy", "global-${value.sub}", `value.sub == "management"`, management},
		{"policy", "global-${value.sub}", `value.sub == "global-management"`, "variable"},
		{"policy", "${value.sub}", `value.sub != "global-management"`, management},
		{"policy", "${value.sub}", `not value.sub == "web"`, management},
		{"policy", "${value.sub}", `value.team == "web"`, management},
		{"policy", "${value.sub}", `value.sub == "web" and "x" in list.groups`, "variable"},
		{"policy", "${value.sub}", `value.sub == "web" or value.sub == "api"`, "variable"},
		{"policy", "${value.sub}", `value.sub == "web" or "x" in list.groups`, management},
		{"policy", "${value.sub}${value.team}", `value.sub == "web"`, management},
		{"policy", "${value.sub}", `((`, management},
		{"role", "${value.sub}", "", "root Admins"},
		{"role", "adm${value.sub}", "", "root Admins"},
		{"role", "web-${value.sub}", "", "variable"},
		{"service", "${value.sub}", "", ""},
		{"node", "${value.sub}", "", ""},
		{"templated-policy", ServiceTemplate, "", ""},
	} {
		s := &Snapshot{
			Policies: []Policy{
				{ID: ManagementID, Name: "Global-Management"},
				{ID: "1", Name: "ops/oper", Rules: `operator = "write"`, Datacenters: []string{"dc2"}},
				{ID: "2", Name: "app-web", Rules: `service "web" { policy = "write" }`},
			},
			Roles: []Role{{ID: "1", Name: "Admins", Grants: Grants{Policies: []Link{{ID: "1"}}}},
				{ID: "2", Name: "web-1"}},
			AuthMethods: []AuthMethod{{Name: "jwt", Type: "jwt", Values: []string{"sub", "team"},
				Lists: []string{"groups"}}},
			Bindings: map[string][]BindingRule{"jwt": {{ID: "b", BindType: c.kind, BindName: c.name,
				Selector: c.selector, Variable: "${value.sub}"}}},
		}
		var got []string
		for _, f := range s.Lint() {
			if f.Object != "binding rule b of jwt" || f.Code == Selector {
				continue
			}
			_, name, _ := strings.Cut(f.Message, `which may be "`)
			name, _, _ = strings.Cut(name, `"`)
			got = append(got, strings.TrimSpace(f.Code+" "+name))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s %s, selector %s: %q, want %q", c.kind, c.name, c.selector, text, c.want)
		}
	}
}

// Each rule that the server would refuse is a finding at its line, beside what it ignores.
func TestLintNamesEveryRefusedRule(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]Finding{
		"servce \"x\" { policy = \"read\" }\nservice \"a\" { policy = \"raed\" }\nkey \"b\" { policy = \"lst\" }\nacl = \"foo\"": {
			{"p", 1, Inert, `servce is ignored: there is no such resource; did you mean "service"?`},
			{"p", 2, Invalid, `service "a": policy "raed": want deny, read or write`},
			{"p", 3, Invalid, `key "b": policy "lst": want deny, read, list or write`},
			{"p", 4, Invalid, `acl: policy "foo": want deny, read or write`},
		},
		"acl = \"read\"\nservice \"a\" { policy = ]": {{"p", 2, Invalid,
			"neither HCL nor JSON: At 2:24: Unknown token: 2:24 RBRACK ]"}},
		"\n\nmesh = [\"read\"]": {{"p", 3, Invalid,
			"not a policy: At 3:8: root.mesh: unknown type for string *ast.ListType"}},
	} {
		if diff := cmp.Diff(want, LintText("p", text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestFindingReadsLikeACompilers(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]Finding{
		"a.hcl:3: inert: x is ignored": {"a.hcl", 3, "inert", "x is ignored"},
		"a.json: inert: x is ignored":  {"a.json", 0, "inert", "x is ignored"},
	} {
		if got := f.String(); got != want {
			t.Errorf("got %s", got)
		}
	}
}
