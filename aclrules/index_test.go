package aclrules

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// The longest prefix, those below it and their order are what a look at every
// rule finds.
func TestLongestPrefixAgainstAllOfThem(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		var b strings.Builder
		for range r.IntN(7) {
			b.WriteByte("ab/"[r.IntN(3)])
		}
		return b.String()
	}
	hits := 0
	for range 2000 {
		var rules []Sourced
		prefixes := map[string]bool{}
		for range r.IntN(20) {
			w := word()
			prefixes[w] = true
			rules = append(rules, Sourced{Rule: &Rule{Resource: Key, Prefix: true, Segment: w, Level: "read"}})
		}
		keys := Merge(rules, Options{}).segments[Key]
		for range 20 {
			segment := word()
			var want []string
			for n := len(segment); n >= 0; n-- {
				if prefixes[segment[:n]] {
					want = append(want, segment[:n])
				}
			}
			var got []string
			for e := range keys.covering(segment) {
				got = append(got, e.segment)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%q among %v: got %q, want %q", segment, prefixes, got, want)
			}
			hits += len(want)
			inside := 0
			for p := range prefixes {
				if strings.HasPrefix(p, segment) {
					inside++
				}
			}
			if got := len(keys.below(segment)); got != inside {
				t.Fatalf("%q among %v: %d below, want %d", segment, prefixes, got, inside)
			}
		}
	}
	if hits < 10_000 {
		t.Errorf("only %d prefixes found: the test shows nothing", hits)
	}
}

// A decision needs no memory, however many rules there are. Not parallel: it
// counts all allocations.
func TestDecideAllocatesNothing(t *testing.T) {
	var rules []Sourced
	for i := range 2000 {
		segment := fmt.Sprintf("app/%d/", i)
		rules = append(rules,
			Sourced{Rule: &Rule{Resource: Key, Prefix: true, Segment: segment, Level: "write"}},
			Sourced{Rule: &Rule{Resource: Service, Segment: segment, Level: "read"}})
	}
	table := Merge(rules, Options{Default: Denied})
	queries := []Query{query(t, "key:app/17/x read"), query(t, "key:app/17/ write-prefix"),
		query(t, "service:app/17/ write"), query(t, "intention:* read"), query(t, "mesh read")}
	if n := testing.AllocsPerRun(100, func() {
		for _, q := range queries {
			table.Decide(q)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Policies are shared: neither merging nor deciding nor explaining changes a
// rule, or the caller's list of them.
func TestRulesAreNeverChanged(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 5))
	for range 300 {
		rules := pool(t, scatter(r), scatter(r), scatter(r))
		pointers := append([]Sourced(nil), rules...)
		values := make([]Rule, len(rules))
		for i, s := range rules {
			values[i] = *s.Rule
		}
		first := Merge(rules, Options{Default: Denied})
		second := Merge(rules, Options{Default: Denied, Incomplete: true})
		for range 20 {
			q := ask(r)
			first.Explain(q)
			second.Explain(q)
		}
		for _, m := range first.merged() {
			m.Rule.Level, m.Rule.Segment = "changed", "changed"
		}
		for i := range rules {
			if rules[i].Rule != pointers[i].Rule || *rules[i].Rule != values[i] {
				t.Fatalf("rule %d was %+v and is %+v", i, values[i], *rules[i].Rule)
			}
		}
	}
}
