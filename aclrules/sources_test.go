package aclrules

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVisitorGetsEachRuleAndEachError(t *testing.T) {
	t.Parallel()
	two := Policy{ID: "id-two", Name: "two", Rules: "node \"n\" { policy = \"read\" }\nacl = \"read\""}
	m := &memory{
		policies: policies("a"), errors: map[string]error{"role id-hiddenhidden": ErrUnreadable},
		tokens: map[string]Token{"t": {Grants: Grants{
			Policies: []Link{link("two"), link("gone"), link("a")}, Roles: []Link{link("hidden")},
			TemplatedPolicies: []TemplatedPolicy{{Template: "builtin/none"}},
		}}},
	}
	m.policies["two"] = two
	want(t, visited(m, Subject{Token: "t"}),
		`token t → policy "two": acl = read`,
		`token t → policy "two": node "n" = read`,
		`!token t → policy "gone": it does not exist`,
		`token t → policy "a": service "a" = read`,
		`!token t → role "hidden": it is not readable with this token`,
		`!token t → templated policy "builtin/none": templated policy "builtin/none": not among the built-in ones; `+
			`did you mean "builtin/node"?`)
}

func TestEachRuleHasADescribableSource(t *testing.T) {
	t.Parallel()
	m := &memory{
		policies: policies("web-w"), roles: map[string]Role{"ops": {ID: "id-ops", Name: "ops",
			Grants: Grants{Policies: []Link{link("web-w")}}}},
		tokens: map[string]Token{Anonymous: {Accessor: Anonymous, Grants: Grants{Roles: []Link{link("ops")}}}},
	}
	m.tokens["3f2a1b0c-0000"] = m.tokens[Anonymous]
	for accessor, source := range map[string]string{
		"3f2a1b0c-0000": `token 3f2a1b0c… → role "ops" → policy "web-w"`,
		Anonymous:       `anonymous token → role "ops" → policy "web-w"`,
	} {
		rules, err := rulesFor(m, Subject{Token: accessor})
		if diff := cmp.Diff([]any{[]string{source}, nil}, []any{sourcesOf(rules), err}); diff != "" {
			t.Errorf("%s: sources and error (-want +got):\n%s", accessor, diff)
		} else if got := rules[0].Rule.Line; got != 1 {
			t.Errorf("%s: line %d, want 1", accessor, got)
		}
	}
	rules, err := rulesFor(m, Subject{Roles: []Link{{Name: "ops"}}, Policies: []Policy{{Name: "x.hcl", Rules: `acl = "read"`}}})
	sources := []string{`role "ops" → policy "web-w"`, `policy "x.hcl"`}
	if diff := cmp.Diff([]any{sources, nil}, []any{sourcesOf(rules), err}); diff != "" {
		t.Errorf("of a role and a text: sources and error (-want +got):\n%s", diff)
	}
}

func sourcesOf(rules []Sourced) []string {
	var all []string
	for _, r := range rules {
		all = append(all, r.Source.String())
	}
	return all
}

func TestAccessorsMatchExactly(t *testing.T) {
	t.Parallel()
	m := &memory{policies: policies("a"), tokens: map[string]Token{"abcdef": {Grants: Grants{Policies: []Link{link("a")}}}}}
	want(t, visited(m, Subject{Token: "abcdef"}), `token abcdef → policy "a": service "a" = read`)
	for _, other := range []string{"ABCDEF", "abcde", "abcdefg", " abcdef"} {
		found := m.resolver().Resolve(context.Background(), Subject{Token: other})
		for _, want := range []error{ErrNotFound, ErrRefused} {
			if !errors.Is(found.Refused, want) {
				t.Errorf("%q: refused by %v, want %v", other, found.Refused, want)
			}
		}
		if found.Rules != nil {
			t.Errorf("%q: rules %v", other, found.Rules)
		}
	}
}

func TestAnAbsentTagMatchesNothing(t *testing.T) {
	t.Parallel()
	m := iam(BindingRule{Selector: `entity_name == "Web-Role" and entity_tags.service == "Web"`, BindType: "role", BindName: "ops"})
	if found := m.resolver().Resolve(context.Background(), Subject{Login: web()}); found.Refused != nil || len(found.Rules) != 1 {
		t.Errorf("with the tag: %+v", found)
	}
	for _, tags := range []map[string]string{nil, {"Service": "Web"}, {"service": "web"}} {
		login := web()
		login.Entity.Tags = tags
		if found := m.resolver().Resolve(context.Background(), Subject{Login: login}); !errors.Is(found.Refused, errNoMatch) {
			t.Errorf("%v: %+v", tags, found)
		}
	}
}

func TestSourceQuotesTheBindingAndWhatItBinds(t *testing.T) {
	t.Parallel()
	m := iam(BindingRule{BindType: "role", BindName: "ops"}, BindingRule{BindType: "policy", BindName: "p"}, BindingRule{BindType: "service", BindName: "web"})
	m.rules[0].ID = "0f9de17a-6465-404e-8b1b-2356dc13c2f8"
	var sources []string
	m.resolver().walk(func(source fmt.Stringer, _ *Rule, _ error) {
		if len(sources) == 0 || sources[len(sources)-1] != source.String() {
			sources = append(sources, source.String())
		}
	}).subject(context.Background(), Subject{Login: web()})
	want(t, sources,
		`login by auth method "m" → binding rule 0f9de17a… → role "ops" → policy "p"`,
		`login by auth method "m" → binding rule c → service identity "web"`) // p was visited already
}

func TestNoErrorsAreNil(t *testing.T) {
	t.Parallel()
	m := &memory{policies: policies("a"), tokens: map[string]Token{"t": {Grants: Grants{Policies: []Link{link("a"), link("gone")}}}}}
	rules, err := rulesFor(m, Subject{Token: "t"})
	if err != nil || len(rules) != 1 {
		t.Errorf("a dangling link is no error: %v, %v", rules, err)
	}
	_, err = rulesFor(m, Subject{Token: "none", PolicyLinks: []Link{link("a")}})
	if !errors.Is(err, ErrNotFound) {
		t.Errorf("a refusal is one: %v", err)
	}
}
