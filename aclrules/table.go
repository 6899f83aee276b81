package aclrules

import (
	"fmt"
)

// Sourced is a rule and how a subject came by it.
type Sourced struct {
	Rule   *Rule
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
	// it is unknown.
	Default Verdict
	// Incomplete is true when rules could not be read.
	Incomplete bool
}

// Table is the combined effect of many rules. It is read-only, and safe for
// concurrent use.
type Table struct {
	options  Options
	scalars  [scalarCount]*entry
	segments [resourceCount]index
	// The decision of all service rules together about the intentions of *.
	readSomeIntention, writeAllIntentions star
}

// Merge pools rules. Their order counts only between levels that are not in
// lower case: the first of them stays.
func Merge(rules []Sourced, o Options) *Table {
	t := &Table{options: o}
	for _, r := range Segmented() {
		*t.of(r) = index{exact: map[string]*entry{}, prefix: map[string]*entry{}}
	}
	for _, s := range rules {
		t.add(s)
	}
	for _, e := range t.scalars {
		if e != nil {
			e.settle()
		}
	}
	for i := range t.segments {
		t.segments[i].settle()
	}
	services := t.of(Service)
	t.readSomeIntention, t.writeAllIntentions = services.any(LevelRead), services.all(LevelWrite)
	return t
}

const (
	scalarCount   = 5
	resourceCount = 12
)

// slot is where a resource's rules are kept, the scalars' first: lookups by
// number cost half of those in a map.
func slot(r Resource) int {
	switch r {
	case ACL:
		return 0
	case Keyring:
		return 1
	case Operator:
		return 2
	case Mesh:
		return 3
	case Peering:
		return 4
	case Agent:
		return 5
	case Event:
		return 6
	case Key:
		return 7
	case Node:
		return 8
	case PreparedQuery:
		return 9
	case Service:
		return 10
	}
	return 11 // policy.Session
}

// own is a scalar's entry, nil for none.
func (t *Table) own(r Resource) *entry { return t.scalars[slot(r)] }

// of are the entries of a resource with segments.
func (t *Table) of(r Resource) *index { return &t.segments[slot(r)] }

func (t *Table) add(s Sourced) {
	r := s.Rule
	if r.Resource.IsScalar() {
		if rank(r.Level) == 0 {
			// The server compares a scalar with no rule at all first, and finds
			// that one not in lower case does not win.
			return
		}
		if t.own(r.Resource) == nil {
			t.scalars[slot(r.Resource)] = &entry{resource: r.Resource}
		}
		e := t.own(r.Resource)
		e.rules = append(e.rules, s)
		return
	}
	i := t.of(r.Resource)
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

// Merged is a rule as it counts, and every rule that contributes to it.
type Merged struct {
	Rule          Rule
	Contributions []Sourced
}

// merged are all rules that count, each thing once: scalars, then each kind by
// segment. As one policy they grant what the table does.
func (t *Table) merged() []Merged {
	var all []Merged
	add := func(e *entry) {
		m := Merged{Rule{Resource: e.resource, Prefix: e.prefix, Segment: e.segment, Level: e.grants.String()}, e.rules}
		if e.intentions >= 0 {
			m.Rule.Intentions = e.grantsIntentions.String()
		}
		all = append(all, m)
	}
	for _, r := range Scalars() {
		if e := t.own(r); e != nil {
			add(e)
		}
	}
	for _, r := range Segmented() {
		for _, e := range t.of(r).sorted {
			add(e)
		}
	}
	return all
}
