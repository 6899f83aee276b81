package aclrules

import (
	"fmt"
)

// Sourced is a rule and how a subject came by it.
type Sourced struct {
	Rule   *Rule
	Source fmt.Stringer
	// Datacenters are those in which it counts; none are all.
	Datacenters []string
	// policyID is that of the rule's policy; afterLast for identities, which the server
	// pools last.
	policyID string
}

// Verdict is an answer. The zero value is Unknown.
type Verdict uint8

// The three verdicts.
const (
	Unknown Verdict = iota
	Denied
	Allowed
)

// String returns what users and machines read: unknown, deny, allow.
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
	scalars  map[Resource]*entry
	segments map[Resource]*index
	// The decision of all service rules together about the intentions of *.
	readSomeIntention, writeAllIntentions star
}

// Merge pools rules. Their order counts only between levels that are not in
// lower case: the first of them stays.
func Merge(rules []Sourced, o Options) *Table {
	t := &Table{options: o, scalars: map[Resource]*entry{}, segments: map[Resource]*index{}}
	for _, r := range Segmented() {
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
	services := t.segments[Service]
	t.readSomeIntention, t.writeAllIntentions = services.any(LevelRead), services.all(LevelWrite)
	return t
}

func (t *Table) add(s Sourced) {
	r := s.Rule
	if r.Resource.IsScalar() {
		if rank(r.Level) == 0 {
			// The server compares a scalar with no rule at all first, and finds
			// that one not in lower case does not win.
			return
		}
		e := t.scalars[r.Resource]
		if e == nil {
			e = &entry{resource: r.Resource}
			t.scalars[r.Resource] = e
		}
		e.rules = append(e.rules, s)
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

// Merged is a rule as it counts, and every rule that contributes to it.
type Merged struct {
	Rule          Rule
	Contributions []Sourced
}

// merged returns all rules that count, each thing once: scalars, then each kind by segment. As one policy
// they grant what the table does.
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
		if e := t.scalars[r]; e != nil {
			add(e)
		}
	}
	for _, r := range Segmented() {
		for _, e := range t.segments[r].sorted {
			add(e)
		}
	}
	return all
}
