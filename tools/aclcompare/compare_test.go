package aclcompare

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/acl"
	"github.com/meshtask/consul-ecs/aclrules"
)

// ours and theirs parse policies anew each time.
func ours(texts ...string) (rules []aclrules.Sourced, err error) {
	for _, text := range texts {
		p, err := aclrules.Parse(text)
		if err != nil {
			return nil, err
		}
		for _, r := range p {
			rules = append(rules, aclrules.Sourced{Rule: r, Source: aclrules.Source{"policy"}})
		}
	}
	return rules, nil
}

// theirs panics on some texts that are no policies: that is a no as well.
func theirs(texts ...string) (parsed []*acl.Policy, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	for _, text := range texts {
		p, err := acl.NewPolicyFromSource(text, nil, nil)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, p)
	}
	return parsed, nil
}

// byDefault returns the authorizers of the default policies that a server can have.
func byDefault() map[aclrules.Verdict]acl.Authorizer {
	return map[aclrules.Verdict]acl.Authorizer{aclrules.Denied: acl.DenyAll(), aclrules.Allowed: acl.AllowAll()}
}

// differ returns the first question on which we and the server's package differ about policies that both accept.
func differ(texts []string, questions []aclrules.Query) (decided int, difference string) {
	for def, theirDefault := range byDefault() {
		rules, err := ours(texts...)
		if err != nil {
			return decided, ""
		}
		parsed, err := theirs(texts...)
		if err != nil {
			return decided, ""
		}
		authorizer, err := acl.NewPolicyAuthorizerWithDefaults(theirDefault, parsed, nil)
		if err != nil {
			return decided, err.Error()
		}
		table := aclrules.Merge(rules, aclrules.Options{Default: def})
		for _, q := range questions {
			decision, err := acl.Enforce(authorizer, acl.Resource(q.Resource), q.Segment, string(q.Access), nil)
			verdict := table.Decide(q).Verdict
			if err != nil || (decision == acl.Allow) != (verdict == aclrules.Allowed) {
				return decided, fmt.Sprintf("%s, default %s: we %s, they %s, %v", q, def, verdict, decision, err)
			}
			decided++
		}
	}
	return decided, ""
}

type dice struct{ *rand.Rand }

func pick[T any](d dice, list ...T) T { return list[d.IntN(len(list))] }

func (d dice) name(salt string) string {
	return pick(d, salt+"a", salt+"ab", salt+"abc", salt+"a/", salt+"a/b", salt, "", salt+"a-sidecar-proxy")
}

func (d dice) level() string {
	return pick(d, "deny", "read", "write", "deny", "read", "write", "list", "WRITE", "Deny", "READ")
}

// text returns a policy of which most are legal.
func (d dice) text(salt string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", salt)
	for range d.IntN(9) {
		if d.IntN(6) == 0 {
			fmt.Fprintf(&b, "%s = %q\n", pick(d, aclrules.Scalars()...), strings.ReplaceAll(d.level(), "list", "read"))
			continue
		}
		r := aclrules.Rule{
			Resource: pick(d, append(aclrules.Segmented(), aclrules.Service, aclrules.Key)...), Prefix: d.IntN(2) == 0,
			Segment: d.name(salt), Level: d.level(),
		}
		if illegal := r.Level == "list" && r.Resource != aclrules.Key; illegal && d.IntN(20) > 0 {
			r.Level = "deny"
		}
		if r.Resource == aclrules.Service && d.IntN(3) == 0 {
			r.Intentions = strings.ReplaceAll(d.level(), "list", "deny")
		}
		b.WriteString(r.HCL() + "\n")
	}
	return b.String()
}

func (d dice) question(salt string) aclrules.Query {
	all := append(append(aclrules.Scalars(), aclrules.Segmented()...), aclrules.Intention, aclrules.Intention,
		aclrules.Service, aclrules.Key, aclrules.Key)
	q := aclrules.Query{
		Resource: pick(d, all...), Segment: pick(d, d.name(salt), d.name(salt)+"b", "*", "other"),
		Access: pick(d, aclrules.ReadAccess, aclrules.WriteAccess),
	}
	if q.Resource == aclrules.Key {
		q.Access = pick(d, aclrules.ReadAccess, aclrules.ListAccess, aclrules.WriteAccess, aclrules.WritePrefix)
	}
	return q
}

// TestDecisionsEqualThoseOfConsul: what we decide is what the server's package decides.
func TestDecisionsEqualThoseOfConsul(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("ACL_SEED"), 10, 64); err == nil {
		seed = s
	}
	d := dice{rand.New(rand.NewPCG(seed, 1))}
	decided := 0
	for round := 0; decided < 300_000; round++ {
		salt := fmt.Sprintf("s%d%x", round, d.Uint32())
		var texts []string
		for range 1 + d.IntN(4) {
			texts = append(texts, d.text(salt))
		}
		var questions []aclrules.Query
		for range 30 {
			questions = append(questions, d.question(salt))
		}
		n, difference := differ(texts, questions)
		if difference != "" {
			t.Fatalf("seed %d, round %d: %s\n%s", seed, round, difference, strings.Join(texts, "---\n"))
		}
		decided += n
	}
	t.Logf("seed %d: %d decisions, 0 differences", seed, decided)
}

// TestCoveredPoliciesAllowNothingMore: of what Covers lets an owner hand out, the server's package allows
// nothing that it denies to the owner, who has no acl:write.
func TestCoveredPoliciesAllowNothingMore(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("ACL_SEED"), 10, 64); err == nil {
		seed = s
	}
	d := dice{rand.New(rand.NewPCG(seed, 2))}
	const pairs = 20_000
	covered, allowed := 0, 0
	for round := range pairs {
		salt := fmt.Sprintf("c%d%x", round, d.Uint32())
		owner, wanted := []string{d.text(salt), d.text(salt + "o")}, []string{d.text(salt)}
		if d.IntN(2) == 0 {
			owner = append(owner, wanted[0]) // else few are covered
		}
		if excess, ok := excess(owner, wanted); !ok || len(excess) > 0 {
			continue
		}
		covered++
		has, gets := authorizer(t, owner), authorizer(t, wanted)
		if has.ACLWrite(nil) == acl.Allow {
			continue
		}
		for range 30 {
			q := d.question(salt)
			theirs := func(a acl.Authorizer) bool {
				decision, err := acl.Enforce(a, acl.Resource(q.Resource), q.Segment, string(q.Access), nil)
				return err == nil && decision == acl.Allow
			}
			if !theirs(gets) {
				continue
			}
			if allowed++; !theirs(has) {
				t.Fatalf("seed %d, round %d: %s is covered, and denied to the owner\n%s\n--- hands out\n%s", seed,
					round, q, strings.Join(owner, "---\n"), wanted[0])
			}
		}
	}
	t.Logf("seed %d: %d pairs, %d covered, %d allowed questions, 0 escapes", seed, pairs, covered, allowed)
	if covered < pairs/10 || allowed < pairs/10 {
		t.Errorf("%d of %d pairs are covered, %d questions allowed: they show too little", covered, pairs, allowed)
	}
}

// excess compares what policies grant, and is not ok for texts that are no policies.
func excess(owner, wanted []string) (found []aclrules.Excess, ok bool) {
	var reports []*aclrules.Report
	for _, texts := range [][]string{owner, wanted} {
		rules, err := ours(texts...)
		if err != nil {
			return nil, false
		}
		reports = append(reports, aclrules.NewReport(aclrules.Resolution{Rules: rules}, aclrules.Denied))
	}
	return aclrules.Covers(reports[0], reports[1]), true
}

// authorizer returns the server's authorizer for policies, where all else is denied.
func authorizer(t *testing.T, texts []string) acl.Authorizer {
	t.Helper()
	parsed, err := theirs(texts...)
	if err != nil {
		t.Fatal(err)
	}
	a, err := acl.NewPolicyAuthorizerWithDefaults(acl.DenyAll(), parsed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// FuzzSamePolicies: what one takes for a policy the other does, and both for the
// same. Our own bounds on length and nesting are the only difference.
func FuzzSamePolicies(f *testing.F) {
	for _, seed := range []string{
		"", `acl = "write"`, "acl = \"read\"\nACL = \"deny\"", `service "a" { policy = "write" intentions = "read" }`,
		`service_prefix "" { Policy = "READ" }`,
		`{"key":{"a":{"policy":"list"}},"key_prefix":[{"":{"policy":"deny"}}]}`, `key "a" "b" { policy = "read" }`,
		`key { "a" { policy = "read" } }`,
		`node "n" { policy = "read" } node "n" { policy = "deny" }`, `servce "a" { policy = "x" }`,
		`namespace "n" { acl = "write" }`, `identity "a" { policy = "x" }`,
		`session "a" { policy = "wirte" }`, `operator = 5`, `mesh = ""`,
		`key "a" { policy = "read" sentinel { code = "x" } }`, `key <<E` + "\nE\n", `query = [["a"]]`,
		`agent "${a}" { policy = "read" }`, `event "\u0061" { policy = "read" }`, "{", `peering = ["read"]`,
		`keyring = "read" keyring = "write"`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 10_000 || strings.Count(text, "{")+strings.Count(text, "[") > 60 {
			return
		}
		rules, ourErr := ours(text)
		_, theirErr := theirs(text)
		if (ourErr == nil) != (theirErr == nil) {
			t.Fatalf("%q: we say %v, they say %v", text, ourErr, theirErr)
		}
		if ourErr != nil {
			return
		}
		questions := []aclrules.Query{
			{Resource: aclrules.Intention, Segment: "*", Access: aclrules.ReadAccess},
			{Resource: aclrules.Intention, Segment: "*", Access: aclrules.WriteAccess},
		}
		for _, s := range append(aclrules.Scalars(), aclrules.Segmented()...) {
			for _, segment := range segments(rules) {
				questions = append(questions,
					aclrules.Query{Resource: s, Segment: segment, Access: aclrules.ReadAccess},
					aclrules.Query{Resource: s, Segment: segment, Access: aclrules.WriteAccess})
			}
		}
		for _, segment := range segments(rules) {
			questions = append(questions, aclrules.Query{
				Resource: aclrules.Key, Segment: segment, Access: aclrules.ListAccess,
			}, aclrules.Query{Resource: aclrules.Key, Segment: segment, Access: aclrules.WritePrefix},
				aclrules.Query{Resource: aclrules.Intention, Segment: segment, Access: aclrules.ReadAccess},
				aclrules.Query{Resource: aclrules.Intention, Segment: segment, Access: aclrules.WriteAccess})
		}
		if _, difference := differ([]string{text}, questions); difference != "" {
			t.Fatalf("%q: %s", text, difference)
		}
	})
}

// segments returns the segments of the rules, and one below each.
func segments(rules []aclrules.Sourced) []string {
	all := []string{"", "a"}
	for _, s := range rules {
		if len(all) < 20 {
			all = append(all, s.Rule.Segment, s.Rule.Segment+"x")
		}
	}
	return all
}
