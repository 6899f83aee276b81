package aclrules

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func iam(rules ...BindingRule) *memory {
	for i := range rules {
		rules[i].ID = string(rune('a' + i))
	}
	return &memory{
		policies: policies("p"),
		roles:    map[string]Role{"ops": {ID: "id-ops", Name: "ops", Grants: Grants{Policies: []Link{link("p")}}}},
		methods: map[string]AuthMethod{
			"m": {Name: "m", Type: "aws-iam", EntityDetails: true, EntityTags: []string{"service"}},
			"j": {Name: "j", Type: "jwt", Values: []string{"team", "env"}, Lists: []string{"groups"}},
			"k": {Name: "k", Type: "kubernetes"},
		},
		rules: rules,
	}
}

func web() *Login {
	return &Login{Method: "m", Entity: Entity{Name: "Web-Role", ID: "AROA1", Account: "1", Path: "/x/",
		Tags: map[string]string{"service": "Web", "other": "no"}}}
}

// Rules that do not match are skipped without a note.
func TestOnlyMatchingRulesCount(t *testing.T) {
	t.Parallel()
	m := iam(
		BindingRule{Selector: `entity_name == "other"`, BindType: "service", BindName: "no"},
		BindingRule{Selector: `entity_tags.service == "Web" and account_id == "1"`, BindType: "role", BindName: "ops"},
		BindingRule{Selector: `entity_tags.other == "no"`, BindType: "service", BindName: "not-a-tag-of-the-method"},
		BindingRule{Selector: `entity_nam == "x"`, BindType: "service", BindName: "no-such-field"},
		BindingRule{Selector: `((`, BindType: "service", BindName: "no-selector"},
		BindingRule{Selector: `entity_path matches "^/x/"`, BindType: "policy", BindName: "P-missing"},
	)
	want(t, visited(m, Subject{Login: web()}),
		`login by auth method "m" → binding rule b → role "ops" → policy "p": service "p" = read`,
		`!login by auth method "m" → binding rule f → policy "P-missing": it does not exist`)
}

func TestNamesAreInterpolatedInLowerCase(t *testing.T) {
	t.Parallel()
	m := iam(
		BindingRule{BindType: "node", BindName: "${entity_name}"},
		BindingRule{BindType: "templated-policy", BindName: "builtin/api-gateway",
			Variable: "${entity_tags.service}-gw"},
	)
	want(t, visited(m, Subject{Login: web()}),
		`login by auth method "m" → binding rule a → node identity "web-role": node "web-role" = write`,
		`login by auth method "m" → binding rule a → node identity "web-role": service_prefix "" = read`,
		`login by auth method "m" → binding rule b → templated policy "builtin/api-gateway" of "web-gw": mesh = read`,
		`login by auth method "m" → binding rule b → templated policy "builtin/api-gateway" of "web-gw": `+
			`node_prefix "" = read`,
		`login by auth method "m" → binding rule b → templated policy "builtin/api-gateway" of "web-gw": `+
			`service_prefix "" = read`,
		`login by auth method "m" → binding rule b → templated policy "builtin/api-gateway" of "web-gw": service `+
			`"web-gw" = write`)
}

// One rule that makes no valid name fails the whole login.
func TestOneInvalidNameFailsTheLogin(t *testing.T) {
	t.Parallel()
	for _, bad := range []BindingRule{
		{BindType: "service", BindName: "${entity_path}"}, {BindType: "service", BindName: "${no_such}"},
		{BindType: "node", BindName: "${"},
		{BindType: "role", BindName: "a b"}, {BindType: "templated-policy", BindName: "builtin/service",
			Variable: "${x"}, {BindType: "service", BindName: "Web"},
		{BindType: "templated-policy", BindName: "builtin/service", Variable: "${entity_name}-"},
		{BindType: "templated-policy", BindName: "builtin/node"},
		{BindType: "templated-policy", BindName: "builtin/api-gateway"},
	} {
		m := iam(BindingRule{BindType: "role", BindName: "ops"}, bad)
		found := m.resolver().Resolve(context.Background(), Subject{Login: web()})
		if !errors.Is(found.Refused, errBadName) || found.Rules != nil {
			t.Errorf("%+v: %+v", bad, found)
		}
	}
}

func TestNoMatchIsARefusal(t *testing.T) {
	t.Parallel()
	m := iam(BindingRule{Selector: `entity_name == "x"`, BindType: "role", BindName: "ops"})
	if found := m.resolver().Resolve(context.Background(), Subject{Login: web()}); !errors.Is(found.Refused,
		errNoMatch) {
		t.Errorf("got %+v", found)
	}
}

// The server refuses a login whose rules name only what does not exist.
func TestNothingBoundIsARefusal(t *testing.T) {
	t.Parallel()
	gone := []BindingRule{{BindType: "role", BindName: "gone"}, {BindType: "policy", BindName: "lost"}}
	found := iam(gone...).resolver().Resolve(context.Background(), Subject{Login: web()})
	if !errors.Is(found.Refused, errNothing) || len(found.Notes) != 2 {
		t.Errorf("got %+v", found)
	}
	m := iam(gone...)
	m.errors = map[string]error{"role gone": ErrUnreadable}
	if found := m.resolver().Resolve(context.Background(), Subject{Login: web()}); found.Refused != nil ||
		len(found.Errors) != 1 {
		t.Errorf("what cannot be read may be there: %+v", found)
	}
}

// Membership of a list.
func TestGroupMembership(t *testing.T) {
	t.Parallel()
	m := iam(BindingRule{Selector: `"admin" in list.groups and value.team != ""`, BindType: "role", BindName: "${value.team}"})
	login := Login{Method: "j", Entity: Entity{Claims: map[string][]string{"team": {"Ops"},
		"groups": {"users", "admin"}}}}
	want(t, visited(m, Subject{Login: &login}), `login by auth method "j" → binding rule a → role "ops" → policy "p": service "p" = read`)
	login.Entity.Claims["groups"] = []string{"users"}
	if found := m.resolver().Resolve(context.Background(), Subject{Login: &login}); !errors.Is(found.Refused,
		errNoMatch) {
		t.Errorf("not a member: %+v", found)
	}
}

// What the server's library makes of a key that is not there: a selector that
// seems to ask for something lets every login in.
func TestSelectorsOfMissingKeys(t *testing.T) {
	t.Parallel()
	m := iam().methods["j"]
	fields, _, err := m.identity(Entity{})
	if err != nil {
		t.Fatal(err)
	}
	for selector, want := range map[string]bool{
		`value.team == "a"`: false, `value.team != "a"`: true, `value.team matches "^a"`: true,
		`value.team not matches "^a"`: true,
		`"a" in list.groups`:          false, `"a" not in list.groups`: true, `list.groups is empty`: true,
		`not value.team == "a"`: true,
	} {
		if got := matches(selector, fields); got != want {
			t.Errorf("%s: %v", selector, got)
		}
	}
}

// A claim that the login lacks is an empty variable and no field, as on the
// server; one that the method does not read cannot be judged.
func TestClaims(t *testing.T) {
	t.Parallel()
	m := iam(BindingRule{Selector: `value.env != "prod"`, BindType: "role", BindName: "ops${value.env}"},
		BindingRule{Selector: `value.env == ""`, BindType: "service", BindName: "no"})
	login := Login{Method: "j", Entity: Entity{Claims: map[string][]string{"team": {"a"}}}}
	want(t, visited(m, Subject{Login: &login}), `login by auth method "j" → binding rule a → role "ops" → policy "p": service "p" = read`)
	for _, c := range []struct {
		claims map[string][]string
		want   string
	}{
		{map[string][]string{"tem": {"a"}},
			`!login by auth method "j": it reads no claim as "tem", but as values ["team" "env"], as lists ["groups"]`},
		{map[string][]string{"team": {"a", "b"}},
			`!login by auth method "j": it reads one value as "team", not ["a" "b"]`},
	} {
		login.Entity.Claims = c.claims
		want(t, visited(m, Subject{Login: &login}), c.want)
		if found := m.resolver().Resolve(context.Background(), Subject{Login: &login}); len(found.Errors) != 1 ||
			found.Refused != nil {
			t.Errorf("%v: %+v", c.claims, found)
		}
	}
}

// What a method does not read is not passed over: the answer would be about another login.
func TestLoginOfAnotherTypeIsAnError(t *testing.T) {
	t.Parallel()
	m := iam(BindingRule{BindType: "service", BindName: "a"})
	for expected, login := range map[string]Login{
		`!login by auth method "m": type aws-iam: it reads an entity of IAM, and no claims or groups`: {Method: "m",
			Entity: Entity{Claims: map[string][]string{"team": {"a"}}}},
		`!login by auth method "j": type jwt: it reads claims, and no entity of IAM`: {Method: "j",
			Entity: Entity{Tags: map[string]string{"team": "a"}}},
	} {
		want(t, visited(m, Subject{Login: &login}), expected)
	}
}

// What is not known never matches, and is visited.
func TestUnknownKindsAreErrors(t *testing.T) {
	t.Parallel()
	m := iam(BindingRule{BindType: "group", BindName: "x"}, BindingRule{BindType: "role", BindName: "ops"})
	want(t, visited(m, Subject{Login: web()}),
		`!login by auth method "m" → binding rule a: unknown bind type "group"`,
		`login by auth method "m" → binding rule b → role "ops" → policy "p": service "p" = read`)
	want(t, visited(m, Subject{Login: &Login{Method: "k"}}), `!login by auth method "k": type kubernetes: want an auth method of type aws-iam, jwt or oidc`)
}

func TestCheckSelector(t *testing.T) {
	t.Parallel()
	m := iam().methods["m"]
	for _, good := range []string{"", `entity_name == "x"`,
		`entity_tags.service == "x" and not entity_path matches "^/x/"`} {
		if err := m.checkSelector(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{`entity_nam == "x"`, "((", `"x" in list.groups`, `account_id == "1" or not entity_tags.any == "x"`, strings.Repeat("(", 40), strings.Repeat("(", 12) + "account_id == 1", strings.Repeat("a", 5000)} {
		if m.checkSelector(bad) == nil {
			t.Errorf("%s: no complaint", bad)
		}
	}
}

func FuzzSelector(f *testing.F) {
	f.Add(`entity_tags.service == "Web"`, "${entity_name}-x")
	f.Add(`"a" in list.groups`, "${")
	f.Add(`((((`, "${upper(entity_name)}")
	f.Fuzz(func(t *testing.T, selector, name string) {
		m := iam(BindingRule{Selector: selector, BindType: "service", BindName: name})
		_ = m.methods["m"].checkSelector(selector)
		found := m.resolver().Resolve(context.Background(), Subject{Login: web()})
		if len(found.Rules) > 0 && found.Refused != nil {
			t.Errorf("rules of a refused login: %+v", found)
		}
	})
}
