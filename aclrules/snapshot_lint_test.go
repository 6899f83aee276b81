package aclrules

import (
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
		Roles:       []Role{{ID: "r", Name: "nomad", Grants: nomad}, {ID: "s", Name: "both", Grants: Grants{Policies: []Link{{ID: "5"}, {ID: "1"}}}}, {ID: "q", Name: "mine", Grants: Grants{TemplatedPolicies: []TemplatedPolicy{{Template: "mine"}}}}},
		Tokens:      []Token{{Accessor: "t", Grants: nomad}, {Accessor: "u"}},
		AuthMethods: []AuthMethod{{Name: "jwt", Type: "jwt", Values: []string{"team"}}, {Name: "k", Type: "kubernetes"}},
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
			{ID: "b0", BindType: "policy", BindName: "global-management"},
		}},
		Templates: map[string]string{"mine": `operator = "write"`},
	}
	const root, everywhere = "equivalent to root: its holder can make a management token", "enough to pose as any service: its holder can replace the mesh's certificate authority"
	want := []Finding{
		{"policy root", 2, "root", `acl = "write" is ` + root},
		{"policy broken", 1, "invalid", `acl: policy "all": want deny, read or write`},
		{"policy oper", 1, "root", `operator = "write" is ` + everywhere},
		{"policy typo", 1, "inert", `servce is ignored: there is no such resource; did you mean "service"?`},
		{"role nomad", 0, "root", `templated policy "builtin/nomad-server" is ` + root},
		{"role mine", 0, "root", `templated policy "mine" is ` + everywhere},
		{"token t", 0, "root", `templated policy "builtin/nomad-server" is ` + root},
		{"binding rule b1 of jwt", 0, "selector", `"value.tem == \"x\"": value.tem is not mapped by the auth method: ==, in and "is not empty" are always false, their negations always true`},
		{"binding rule b2 of jwt", 0, "selector", `"((": it never matches: `},
		{"binding rule b3 of jwt", 0, "root", `every login gets policy "root", which is ` + root},
		{"binding rule b4 of jwt", 0, "root", `a login that matches gets role "nomad", which is ` + root},
		{"binding rule b5 of jwt", 0, "root", `every login gets templated policy "builtin/nomad-server", which is ` + root},
		{"binding rule b6 of jwt", 0, "dangling", `role "gone" does not exist: no login gets it`},
		{"binding rule b7 of jwt", 0, "dangling", `policy "gone" does not exist: no login gets it`},
		{"binding rule c1 of jwt", 0, "root", `a login that matches gets role "both", which is ` + root},
		{"binding rule b0 of jwt", 0, "root", `every login gets policy "global-management", which is ` + root},
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
		"acl = \"read\"\nservice \"a\" { policy = ]": {{"p", 2, Invalid, "neither HCL nor JSON: At 2:24: Unknown token: 2:24 RBRACK ]"}},
		"\n\nmesh = [\"read\"]":                      {{"p", 3, Invalid, "not a policy: At 3:8: root.mesh: unknown type for string *ast.ListType"}},
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
