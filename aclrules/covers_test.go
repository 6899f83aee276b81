package aclrules

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// reportOf returns a report on the rules of policies.
func reportOf(t testing.TB, byDefault Verdict, errs []error, policies ...string) *Report {
	t.Helper()
	return NewReport(Resolution{Rules: pool(t, policies...), Errors: errs}, byDefault)
}

func TestCovers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ owner, wanted, excess string }{
		{`service_prefix "" { policy = "write" }`, `service "web" { policy = "write" }`, ""},
		{`service_prefix "" { policy = "write" } service "db" { policy = "read" }`,
			`service_prefix "d" { policy = "write" }`, `service "db": service write`},
		{`service_prefix "" { policy = "write" } service "db" { policy = "read" }`,
			`service_prefix "d" { policy = "write" } service "db" { policy = "deny" }`, ""},
		{`service_prefix "" { policy = "write" } service_prefix "db-" { policy = "read" }`,
			`service_prefix "d" { policy = "write" }`, `service_prefix "db-": service write`},
		{`service "web" { policy = "write" }`, `service_prefix "web" { policy = "read" }`,
			`service_prefix "web": service read, service_prefix "web": intention read`},
		{`service "web" { policy = "write" }`, `service "web" { policy = "write" intentions = "write" }`,
			`service "web": intention write`},
		{``, `service "web" { policy = "deny" } operator = "deny"`, ""},
		{`key_prefix "a" { policy = "read" }`, `key_prefix "a" { policy = "list" }`, `key_prefix "a": key list`},
		{`operator = "write"`, `mesh = "write" peering = "read"`, ""},
		{`mesh = "read"`, `operator = "write"`, `operator: operator write, mesh: mesh write, peering: peering write`},
		{`operator = "write" mesh = "deny"`, `operator = "write"`, `mesh: mesh write`},
		{`acl = "write"`, `service_prefix "" { policy = "write" } keyring = "write"`, ""},
		{`acl = "read"`, `acl = "write"`, `acl: acl write`},
		{`acl = "write" --- acl = "deny"`, `agent "a" { policy = "read" }`, `agent "a": agent read`},
	} {
		var got []string
		owner := reportOf(t, Denied, nil, strings.Split(c.owner, " --- ")...)
		for _, e := range Covers(owner, reportOf(t, Denied, nil, c.wanted)) {
			got = append(got, e.Of+": "+e.Access)
		}
		if text := strings.Join(got, ", "); text != c.excess {
			t.Errorf("%s hands out %s: excess %q, want %q", c.owner, c.wanted, text, c.excess)
		}
	}
}

// A policy that is limited to datacenters counts there, whichever the reports are of.
func TestCoversInEveryDatacenter(t *testing.T) {
	t.Parallel()
	write, deny := `service "web" { policy = "write" }`, `service "web" { policy = "deny" }`
	p := func(rules string, datacenters ...string) Policy {
		return Policy{Rules: rules, Datacenters: datacenters}
	}
	for name, c := range map[string]struct {
		owner, wanted []Policy
		want          string
	}{
		"elsewhere":      {nil, []Policy{p(write, "dc2")}, `service "web" in dc2`},
		"here":           {nil, []Policy{p(write, "dc1")}, `service "web" in `},
		"both elsewhere": {[]Policy{p(write, "dc2")}, []Policy{p(write, "dc2")}, ""},
		"both here":      {[]Policy{p(write, "dc1")}, []Policy{p(write, "dc1")}, ""},
		"the owner's only here": {[]Policy{p(write, "dc1")}, []Policy{p(write)},
			`service "web" in any other datacenter`},
		"the owner's only elsewhere": {[]Policy{p(write, "dc2")}, []Policy{p(write)}, `service "web" in `},
		"in two": {[]Policy{p(write, "dc1")}, []Policy{p(write, "dc2")},
			`service "web" in dc2`},
		"a deny counts elsewhere": {nil, []Policy{p(write, "dc2"), p(deny, "dc3")}, `service "web" in dc2`},
		"the owner's deny elsewhere": {[]Policy{p(write), p(deny, "dc2")}, []Policy{p(write)},
			`service "web" in dc2`},
		"root elsewhere": {nil, []Policy{p(`acl = "write"`, "dc2")}, `acl in dc2`},
		"the owner is root elsewhere only": {[]Policy{p(`acl = "write"`, "dc2")}, []Policy{p(write)},
			`service "web" in `},
		"the owner is root everywhere": {[]Policy{p(`acl = "write"`)}, []Policy{p(write, "dc2")}, ""},
		"broken elsewhere":             {nil, []Policy{p(`acl = "all"`, "dc2")}, " in "},
		"the owner's broken elsewhere": {[]Policy{p(write), p(`acl = "all"`, "dc2")}, []Policy{p(write)},
			`service "web" in any other datacenter`},
	} {
		resolver := Resolver{Datacenter: "dc1"}
		report := func(policies []Policy) *Report {
			return NewReport(resolver.Resolve(t.Context(), Subject{Policies: policies}), Denied)
		}
		var got []string
		for _, e := range Covers(report(c.owner), report(c.wanted)) {
			got = append(got, e.Of+" in "+e.Datacenter)
		}
		if text := strings.Join(slices.Compact(got), ", "); text != c.want {
			t.Errorf("%s: excess %q, want %q", name, text, c.want)
		}
	}
}

// Identities are limited as policies are.
func TestCoversIdentitiesInEveryDatacenter(t *testing.T) {
	t.Parallel()
	token := func(g Grants) *Report {
		m := &memory{tokens: map[string]Token{"t": {Grants: g}}}
		return NewReport(m.resolver().Resolve(t.Context(), Subject{Token: "t"}), Denied)
	}
	for of, g := range map[string]Grants{
		`service "web"`: {ServiceIdentities: []ServiceIdentity{{Name: "web", Datacenters: []string{"dc2"}}}},
		`node "n"`:      {NodeIdentities: []NodeIdentity{{Name: "n", Datacenter: "dc2"}}},
		`service "gw"`: {TemplatedPolicies: []TemplatedPolicy{{Template: APIGatewayTemplate, Name: "gw",
			Datacenters: []string{"dc2"}}}},
	} {
		found := Covers(token(Grants{}), token(g))
		if !slices.ContainsFunc(found, func(e Excess) bool { return e.Of == of && e.Datacenter == "dc2" }) {
			t.Errorf("%s: excess %v", of, found)
		}
	}
}

func TestCoversNamesRulesOfBothSides(t *testing.T) {
	t.Parallel()
	got := Covers(reportOf(t, Denied, nil, `service "db" { policy = "read" }`), reportOf(t, Denied, nil, ``, `service "db" { policy = "write" }`))
	want := []Excess{{
		Of: `service "db"`, Access: "service write",
		Wanted: LocatedRule{`service "db" = write`, "policy 2", 1},
		Owner:  LocatedRule{`service "db" = read`, "policy 1", 1},
	}}
	if !slices.Equal(got, want) {
		t.Errorf("excess %+v, want %+v", got, want)
	}
}

func TestUnknownIsNotCovered(t *testing.T) {
	t.Parallel()
	all := `service_prefix "" { policy = "write" intentions = "write" }`
	unreadable := []error{errors.New("policy x: it is not readable with this token")}
	for name, c := range map[string]struct {
		owner, wanted *Report
		covered       bool
	}{
		"rules of the owner missing": {reportOf(t, Denied, unreadable, all), reportOf(t, Denied, nil, all), false},
		"wanted rules missing":       {reportOf(t, Denied, nil, all), reportOf(t, Denied, unreadable), false},
		"default unknown":            {reportOf(t, Unknown, nil), reportOf(t, Denied, nil, all), false},
		"default allows":             {reportOf(t, Allowed, nil), reportOf(t, Denied, nil, all), true},
		"default allows, not ACLs":   {reportOf(t, Allowed, nil), reportOf(t, Denied, nil, `acl = "read"`), false},
		"refused": {NewReport(Resolution{Refused: ErrNotFound}, Denied), reportOf(t, Denied, nil),
			false},
		"no ACLs": {NewReport(Resolution{Disabled: ErrDisabled}, Unknown), reportOf(t, Denied, nil, all), true},
	} {
		if got := Covers(c.owner, c.wanted); (len(got) == 0) != c.covered {
			t.Errorf("%s: excess %+v, want covered %v", name, got, c.covered)
		}
	}
}

// Covers finds nothing exactly when no question about any short name distinguishes the subjects
// apart.
func TestCoversAgreesWithEveryQuestion(t *testing.T) {
	t.Parallel()
	d := rand.New(rand.NewPCG(19, 4))
	pick := func(from ...string) string { return from[d.IntN(len(from))] }
	random := func(rules int) string {
		var lines []string
		for range rules {
			kind, level := pick("service", "service", "key", "node"), pick("deny", "read", "write", "write")
			more := ""
			if kind == "service" {
				more = pick("", "", ` intentions = "`+pick("deny", "read", "write")+`"`)
			}
			if kind == "key" {
				level = pick(level, "list")
			}
			lines = append(lines, fmt.Sprintf(`%s%s %q { policy = %q%s }`, kind, pick("", "_prefix"), pick("", "a", "ab", "b", "aba"), level, more))
		}
		if d.IntN(3) == 0 {
			lines = append(lines, fmt.Sprintf("%s = %q", pick("operator", "mesh", "acl", "peering"), pick("read", "write", "deny")))
		}
		return strings.Join(lines, "\n")
	}
	var questions []Query
	names := []string{"", "a", "b", "ab", "aba", "abab", "ac", "bb", "c", "abc"}
	for _, r := range slices.Concat(Scalars(), []Resource{Service, Key, Node, Intention}) {
		for _, access := range []Access{ReadAccess, ListAccess, WriteAccess, WritePrefix} {
			for _, name := range names {
				if q := (Query{r, name, access}); q.check() == nil {
					questions = append(questions, q)
				}
			}
		}
	}
	covered := 0
	for range 3000 {
		a, b := random(1+d.IntN(5)), random(1+d.IntN(3))
		owner, wanted := reportOf(t, Denied, nil, a), reportOf(t, Denied, nil, b)
		uncovered := ""
		for _, q := range questions {
			verdict, _ := wanted.table.rules(q)
			if verdict != Allowed || owner.Can(q).Decision == "allow" {
				continue
			}
			if owner.Can(Query{ACL, "", WriteAccess}).Decision != "allow" {
				uncovered = q.String()
			}
		}
		excess := Covers(owner, wanted)
		if (uncovered == "") != (len(excess) == 0) {
			t.Fatalf("owner\n%s\nwanted\n%s\nexcess %+v, but the question %q", a, b, excess, uncovered)
		}
		if uncovered == "" {
			covered++
		}
	}
	if covered < 300 {
		t.Errorf("%d of 3000 are covered: the rules show too little", covered)
	}
}
