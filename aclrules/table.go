package aclrules

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/meshtask/consul-ecs/aclrules/policy"
)

// Sourced is a rule and how a subject came by it.
type Sourced struct {
	Rule   *policy.Rule
	Source fmt.Stringer
}

// Verdict is an answer. The zero value is Unknown.
type Verdict uint8

// The three verdicts.
const (
	Unknown Verdict = iota
	Denied
	Allowed
)

// String is what users and machines read: unknown, deny, allow.
func (v Verdict) String() string { return [...]string{"unknown", "deny", "allow"}[v] }

// Options are what Merge must know beside the rules.
type Options struct {
	// Default answers where no rule does: Consul's default policy. Unknown when
	// nobody could say what it is.
	Default Verdict
	// Incomplete says that rules are missing, since they could not be read.
	Incomplete bool
}

// entry is what all rules for one thing come to. level and intentions are
// indexes into rules of the ones that count.
type entry struct {
	resource   policy.Resource
	prefix     bool
	segment    string
	rules      []Sourced
	level      int
	intentions int // -1: none states intentions
	// grants is the level in force; grantsIntentions that for intentions.
	grants, grantsIntentions policy.Level
}

// index is a resource's entries, for look-up.
type index struct {
	exact, prefix map[string]*entry
	// lengths are those of the prefixes there are, longest first.
	lengths []int
	// sorted are all entries by segment.
	sorted []*entry
}

// Table is what many rules say together. It is read-only, and safe for
// concurrent use.
type Table struct {
	options  Options
	scalars  map[policy.Resource]*entry
	segments map[policy.Resource]*index
	// everyIntention is the answer about intentions of *, by access.
	readSomeIntention, writeAllIntentions star
}

// star is what all service rules together say about the intentions of *.
type star struct {
	verdict Verdict // Unknown: the default policy decides
	entry   *entry  // the one that decided; nil for none
}

// Merge pools rules. Their order counts only between levels that are not in
// lower case: the first of them stays.
func Merge(rules []Sourced, o Options) *Table {
	t := &Table{options: o, scalars: map[policy.Resource]*entry{}, segments: map[policy.Resource]*index{}}
	for _, r := range policy.Segmented() {
		t.segments[r] = &index{exact: map[string]*entry{}, prefix: map[string]*entry{}}
	}
	for _, s := range rules {
		t.add(s)
	}
	for _, e := range t.scalars {
		e.settle()
	}
	for _, i := range t.segments {
		i.settle()
	}
	services := t.segments[policy.Service]
	t.readSomeIntention, t.writeAllIntentions = services.any(policy.Read), services.all(policy.Write)
	return t
}

func (t *Table) add(s Sourced) {
	r := s.Rule
	entries := t.scalars
	if r.Resource.IsScalar() {
		if policy.Rank(r.Level) == 0 {
			// The server compares a scalar with no rule at all first, and finds
			// that one not in lower case does not win.
			return
		}
		if e := entries[r.Resource]; e != nil {
			e.rules = append(e.rules, s)
			return
		}
		entries[r.Resource] = &entry{resource: r.Resource, rules: []Sourced{s}}
		return
	}
	i := t.segments[r.Resource]
	where := i.exact
	if r.Prefix {
		where = i.prefix
	}
	e := where[r.Segment]
	if e == nil {
		e = &entry{resource: r.Resource, prefix: r.Prefix, segment: r.Segment}
		where[r.Segment] = e
		i.sorted = append(i.sorted, e)
	}
	e.rules = append(e.rules, s)
}

// settle finds the rules that count. The level and the intentions of services
// are decided apart.
func (e *entry) settle() {
	e.intentions = -1
	first := e.rules[0].Rule
	written := first.Intentions
	if written != "" {
		e.intentions = 0
	}
	for i, s := range e.rules {
		if policy.Rank(s.Rule.Level) > policy.Rank(e.rules[e.level].Rule.Level) {
			e.level = i
		}
		if policy.Rank(s.Rule.Intentions) > policy.Rank(written) {
			written, e.intentions = s.Rule.Intentions, i
		}
	}
	level := e.rules[e.level].Rule.Level
	e.grants, _ = policy.LevelOf(level)
	e.grantsIntentions, _ = policy.LevelOf(written)
	if written == "" {
		e.grantsIntentions = policy.Deny
		if level == "read" || level == "write" {
			e.grantsIntentions = policy.Read
		}
	}
}

func (i *index) settle() {
	for _, e := range i.sorted {
		e.settle()
		if e.prefix && !slices.Contains(i.lengths, len(e.segment)) {
			i.lengths = append(i.lengths, len(e.segment))
		}
	}
	slices.SortFunc(i.lengths, func(a, b int) int { return cmp.Compare(b, a) })
	slices.SortStableFunc(i.sorted, func(a, b *entry) int { return cmp.Compare(a.segment, b.segment) })
}

// find is the entry in force for a segment: the exact one, else the longest
// prefix, else nil.
func (i *index) find(segment string) *entry {
	if e := i.exact[segment]; e != nil {
		return e
	}
	return i.longest(segment)
}

// longest is the entry of the longest prefix of a segment.
func (i *index) longest(segment string) *entry {
	for _, n := range i.lengths {
		if n > len(segment) {
			continue
		}
		if e := i.prefix[segment[:n]]; e != nil {
			return e
		}
	}
	return nil
}

// below are the entries at or inside a prefix, in the order of their segments.
func (i *index) below(prefix string) []*entry {
	from, _ := slices.BinarySearchFunc(i.sorted, prefix, func(e *entry, p string) int { return cmp.Compare(e.segment, p) })
	to := from
	for to < len(i.sorted) && len(i.sorted[to].segment) >= len(prefix) && i.sorted[to].segment[:len(prefix)] == prefix {
		to++
	}
	return i.sorted[from:to]
}

// any is the server's answer for "some service": yes if any rule grants it, no
// if only the empty prefix speaks and refuses.
func (i *index) any(needed policy.Level) star {
	for _, e := range i.sorted {
		if e.grantsIntentions >= needed {
			return star{Allowed, e}
		}
	}
	if e := i.prefix[""]; e != nil {
		return star{Denied, e}
	}
	return star{}
}

// all is the server's answer for "every service": no if any rule refuses it,
// yes if the empty prefix grants it.
func (i *index) all(needed policy.Level) star {
	for _, e := range i.sorted {
		if e.grantsIntentions < needed {
			return star{Denied, e}
		}
	}
	if e := i.prefix[""]; e != nil {
		return star{Allowed, e}
	}
	return star{}
}

// Merged is a rule as it counts, and every rule that has a say in it.
type Merged struct {
	Rule          policy.Rule
	Contributions []Sourced
}

// Merged are all rules that count, each thing once: scalars, then each kind by
// segment. As one policy they grant what the table does.
func (t *Table) Merged() []Merged {
	var all []Merged
	add := func(e *entry) {
		m := Merged{policy.Rule{Resource: e.resource, Prefix: e.prefix, Segment: e.segment, Level: e.grants.String()}, e.rules}
		if e.intentions >= 0 {
			m.Rule.Intentions = e.grantsIntentions.String()
		}
		all = append(all, m)
	}
	for _, r := range policy.Scalars() {
		if e := t.scalars[r]; e != nil {
			add(e)
		}
	}
	for _, r := range policy.Segmented() {
		for _, e := range t.segments[r].sorted {
			add(e)
		}
	}
	return all
}
