package aclrules

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// visited returns the whole visit as lines: "source: rule" or "source: !error".
func visited(m *memory, s Subject) []string {
	var lines []string
	m.resolver().walk(func(source fmt.Stringer, rule *Rule, err error) {
		if err != nil {
			lines = append(lines, "!"+err.Error())
			return
		}
		lines = append(lines, source.String()+": "+rule.Subject()+" = "+rule.Level)
	}).subject(context.Background(), s)
	return lines
}

// rulesFor returns a subject's rules, and every error that counts.
func rulesFor(m *memory, s Subject) ([]Sourced, error) {
	found := m.resolver().Resolve(context.Background(), s)
	return found.Rules, errors.Join(append(found.Errors, found.Refused, found.Disabled)...)
}

func want(t *testing.T, got []string, lines ...string) {
	t.Helper()
	if diff := cmp.Diff(lines, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What can be had, and all that is wrong.
func TestEverythingObtainableAndAnError(t *testing.T) {
	t.Parallel()
	m := &memory{
		policies: policies("a", "b", "c"),
		tokens:   map[string]Token{"t": {Grants: Grants{Policies: []Link{link("a"), link("b"), link("c")}}}},
		errors:   map[string]error{"policy id-bb": ErrUnreadable},
	}
	rules, err := rulesFor(m, Subject{Token: "t"})
	if len(rules) != 2 || !errors.Is(err, ErrUnreadable) {
		t.Errorf("got %v, %v", rules, err)
	}
	want(t, visited(m, Subject{Token: "t"}),
		`token t → policy "a": service "a" = read`, `!token t → policy "b": it is not readable with this token`,
		`token t → policy "c": service "c" = read`)
	m.errors = nil
	if _, err := rulesFor(m, Subject{Token: "t"}); err != nil {
		t.Errorf("an error of nothing: %v", err)
	}
}

func TestFailedListingIsReportedAndOthersContinue(t *testing.T) {
	t.Parallel()
	m := &memory{
		policies: policies("a"), tokens: map[string]Token{"t": {Grants: Grants{Policies: []Link{link("a")}}}},
		methods: map[string]AuthMethod{"m": {Name: "m", Type: "aws-iam"}},
		errors:  map[string]error{"rules m": errors.New("500")},
	}
	want(t, visited(m, Subject{Token: "t", Login: &Login{Method: "m"}}),
		`token t → policy "a": service "a" = read`, `!login by auth method "m": list binding rules: 500`)
}

// Order, sources, exact names.
func TestOrderIsDirectRolesIdentities(t *testing.T) {
	t.Parallel()
	m := &memory{
		policies: policies("direct", "of-role"),
		roles: map[string]Role{"ops": {ID: "id-ops", Name: "ops", Grants: Grants{
			Policies: []Link{link("of-role")}, NodeIdentities: []NodeIdentity{{"n", "dc1"}},
		}}},
		tokens: map[string]Token{"3f2a1b0c-1111": {Accessor: "3f2a1b0c-1111", Grants: Grants{
			TemplatedPolicies: []TemplatedPolicy{{Template: "builtin/api-gateway", Name: "gw"}},
			ServiceIdentities: []ServiceIdentity{{Name: "web"}}, Roles: []Link{link("ops")},
			Policies: []Link{link("direct")},
		}}},
	}
	want(t, visited(m, Subject{Token: "3f2a1b0c-1111"}),
		`token 3f2a1b0c… → policy "direct": service "direct" = read`,
		`token 3f2a1b0c… → role "ops" → policy "of-role": service "of-role" = read`,
		`token 3f2a1b0c… → service identity "web": service "web" = write`,
		`token 3f2a1b0c… → service identity "web": service "web-sidecar-proxy" = write`,
		`token 3f2a1b0c… → service identity "web": service_prefix "" = read`,
		`token 3f2a1b0c… → service identity "web": node_prefix "" = read`,
		`token 3f2a1b0c… → role "ops" → node identity "n": node "n" = write`,
		`token 3f2a1b0c… → role "ops" → node identity "n": service_prefix "" = read`,
		`token 3f2a1b0c… → templated policy "builtin/api-gateway" of "gw": mesh = read`,
		`token 3f2a1b0c… → templated policy "builtin/api-gateway" of "gw": node_prefix "" = read`,
		`token 3f2a1b0c… → templated policy "builtin/api-gateway" of "gw": service_prefix "" = read`,
		`token 3f2a1b0c… → templated policy "builtin/api-gateway" of "gw": service "gw" = write`,
	)
	want(t, visited(m, Subject{Token: "3F2A1B0C-1111"}), "!token 3F2A1B0C…: unknown to the server (wrong, deleted or expired)")
}

func TestDanglingRoleAndPolicyDoNotStopTheOthers(t *testing.T) {
	t.Parallel()
	m := &memory{
		policies: policies("a"),
		tokens: map[string]Token{"t": {Grants: Grants{Roles: []Link{link("gone"), link("r")},
			Policies: []Link{link("lost")}}}},
		roles: map[string]Role{"r": {ID: "id-r", Name: "r", Grants: Grants{Policies: []Link{link("a")}}}},
	}
	want(t, visited(m, Subject{Token: "t"}),
		`!token t → policy "lost": it does not exist`, `!token t → role "gone": it does not exist`,
		`token t → role "r" → policy "a": service "a" = read`)
	found := m.resolver().Resolve(context.Background(), Subject{Token: "t"})
	if diff := cmp.Diff([]int{2, 0, 1}, []int{len(found.Notes), len(found.Errors), len(found.Rules)}); diff != "" {
		t.Errorf("notes, errors and rules with dangling links (-want +got):\n%s", diff)
	}
}

// A visitor that goes on gets all.
func TestRulesForGathersWhatAVisitorSees(t *testing.T) {
	t.Parallel()
	m := &memory{policies: policies("a", "b"),
		tokens: map[string]Token{"": {Accessor: "self", Grants: Grants{Policies: []Link{link("a"), link("b")}}}}}
	rules, err := rulesFor(m, Subject{Self: true})
	want := []string{`token self → policy "a"`, `token self → policy "b"`}
	if diff := cmp.Diff([]any{want, nil}, []any{sourcesOf(rules), err}); diff != "" {
		t.Errorf("sources and error (-want +got):\n%s", diff)
	}
}

func TestSharedPolicyIsReadOnce(t *testing.T) {
	t.Parallel()
	m := &memory{policies: policies("a"), roles: map[string]Role{}, tokens: map[string]Token{}}
	var roles []Link
	for i := range 10 {
		name := fmt.Sprint("r", i)
		m.roles[name] = Role{ID: "id-" + name, Name: name, Grants: Grants{Policies: []Link{link("a")}}}
		roles = append(roles, link(name))
	}
	m.tokens["t"] = Token{Grants: Grants{Roles: roles}}
	lines := visited(m, Subject{Token: "t"})
	want(t, lines, `token t → role "r0" → policy "a": service "a" = read`)
	if got := strings.Count(strings.Join(m.asked, "\n"), "policy"); got != 1 {
		t.Errorf("read %d times", got)
	}
}

// Links that the server ignores, and links that occur twice.
func TestDatacenters(t *testing.T) {
	t.Parallel()
	eu := Policy{ID: "id-eu", Name: "eu", Rules: `acl = "write"`, Datacenters: []string{"dc2", "dc3"}}
	m := &memory{
		policies: map[string]Policy{"eu": eu},
		roles: map[string]Role{"r": {ID: "id-r", Name: "r", Grants: Grants{
			ServiceIdentities: []ServiceIdentity{{Name: "web", Datacenters: []string{"dc2"}},
				{Name: "api", Datacenters: []string{"dc1"}}},
			TemplatedPolicies: []TemplatedPolicy{{Template: "builtin/dns", Datacenters: []string{"dc2"}}},
		}}},
		tokens: map[string]Token{"t": {Grants: Grants{
			Policies: []Link{link("eu")}, Roles: []Link{link("r")},
			ServiceIdentities: []ServiceIdentity{{Name: "web"}, {Name: "api", Datacenters: []string{"dc2"}}},
			NodeIdentities:    []NodeIdentity{{"n", "dc2"}},
			TemplatedPolicies: []TemplatedPolicy{{Template: "builtin/dns"}},
		}}},
	}
	var sources []string
	for _, line := range visited(m, Subject{Token: "t"}) {
		source, _, _ := strings.Cut(line, ": service")
		source, _, _ = strings.Cut(source, ": node_")
		source, _, _ = strings.Cut(source, ": query_")
		if len(sources) == 0 || sources[len(sources)-1] != source {
			sources = append(sources, source)
		}
	}
	want(t, sources,
		`!token t → policy "eu": it applies in dc2, dc3 only, and this is dc1`,
		`token t → policy "eu": acl = write`,
		// Unrestricted and [dc2] together are [dc2].
		`!token t → service identity "web": it applies in dc2 only, and this is dc1`,
		`token t → service identity "web"`,
		`token t → service identity "api"`,
		`!token t → node identity "n": it applies in dc2 only, and this is dc1`,
		`token t → node identity "n": node "n" = write`,
		`token t → node identity "n"`,
		// The first of two templates counts, whatever the other says.
		`token t → templated policy "builtin/dns"`,
	)
}

// Levels that are not in lower case: of two, that of the lower policy ID counts
// on the server, whatever the links' order.
func TestRulesArePooledByPolicyID(t *testing.T) {
	t.Parallel()
	m := &memory{policies: map[string]Policy{
		"late": {ID: "id-2", Name: "late", Rules: `service "a" { policy = "WRITE" }`},
		"early": {ID: "id-1", Name: "early",
			Rules: "service \"a\" { policy = \"DENY\" }\nnode \"b\" { policy = \"read\" }"},
	}, tokens: map[string]Token{"t": {Grants: Grants{Policies: []Link{{ID: "id-2"}, {ID: "id-1"}},
		ServiceIdentities: []ServiceIdentity{{Name: "x"}}}}}}
	var subjects []string
	for _, r := range m.resolver().Resolve(context.Background(), Subject{Token: "t"}).Rules {
		subjects = append(subjects, r.Rule.Subject()+" = "+r.Rule.Level)
	}
	want(t, subjects, `node "b" = read`, `service "a" = DENY`, `service "a" = WRITE`,
		`service "x" = write`, `service "x-sidecar-proxy" = write`, `service_prefix "" = read`, `node_prefix "" = read`)
}

func TestExpiredTokenHasNoRights(t *testing.T) {
	t.Parallel()
	m := &memory{policies: policies("a"), tokens: map[string]Token{
		"old":   {Expires: now, Grants: Grants{Policies: []Link{link("a")}}},
		"young": {Expires: now.Add(1), Grants: Grants{Policies: []Link{link("a")}}},
	}}
	found := m.resolver().Resolve(context.Background(), Subject{Token: "old"})
	if !errors.Is(found.Refused, ErrExpired) || found.Rules != nil {
		t.Errorf("expired: %+v", found)
	}
	if found := m.resolver().Resolve(context.Background(), Subject{Token: "young"}); found.Refused != nil ||
		len(found.Rules) != 1 {
		t.Errorf("not expired: %+v", found)
	}
}

func TestGivenTextsAndUnknownTemplates(t *testing.T) {
	t.Parallel()
	m := &memory{tokens: map[string]Token{"t": {Grants: Grants{TemplatedPolicies: []TemplatedPolicy{{Template: "builtin/workload-identity", Name: "x"}}}}}}
	subject := Subject{Token: "t", Policies: []Policy{{Name: "mine.hcl", Rules: `acl = "read"`},
		{Name: "bad.hcl", Rules: `acl = "x"`}}}
	want(t, visited(m, subject),
		`policy "mine.hcl": acl = read`,
		`!policy "bad.hcl": line 1: acl: policy "x": want deny, read or write`,
		`!token t → templated policy "builtin/workload-identity" of "x": templated policy `+
			`"builtin/workload-identity": not among the built-in ones`)
	found := m.resolver().Resolve(context.Background(), subject)
	if d := Merge(found.Rules, Options{Incomplete: len(found.Errors) > 0, Default: Denied}).Decide(Query{Resource: ACL,
		Access: ReadAccess}); d.Verdict != Unknown {
		t.Errorf("with rules missing: %s", d.Verdict)
	}
}
