package aclrules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Excess is a right that one subject would have and another has not.
type Excess struct {
	// Of is what the right is about, as the language writes it: `service "db"`,
	// `service_prefix "d"`, `operator`; empty where Why is about everything.
	Of string `json:"of,omitempty"`
	// Access is the most that is wanted of it and missing, with the resource it is
	// asked of: "service write", "intention read".
	Access string `json:"access,omitempty"`
	// Wanted is the rule that would grant it, and Owner the one that keeps it from the
	// owner; empty where the owner has no rule.
	Wanted LocatedRule `json:"wanted"`
	Owner  LocatedRule `json:"owner"`
	// Datacenter is where, empty for that of the reports.
	Datacenter string `json:"datacenter,omitempty"`
	// Why is what else keeps it from the owner, or what could not be read.
	Why string `json:"why,omitempty"`
}

// String returns the right, what would grant it, and what the owner has instead.
func (e Excess) String() string {
	var parts []string
	if e.Of != "" {
		parts = append(parts, fmt.Sprintf("%s of %s, by %s of %s", e.Access, e.Of, e.Wanted.Rule, e.Wanted.location()))
	}
	if e.Datacenter != "" {
		parts = append(parts, "in "+e.Datacenter)
	}
	if e.Owner.Rule != "" {
		parts = append(parts, fmt.Sprintf("the owner has %s by %s", e.Owner.Rule, e.Owner.location()))
	}
	if e.Why != "" {
		parts = append(parts, e.Why)
	}
	return strings.Join(parts, "; ")
}

// Covers returns what wanted allows by its rules and owner does not surely allow in some
// datacenter, in the order of the resources and their segments; nothing means that owner may hand all of
// wanted to others without giving more than it has. What an owner's rules leave unknown
// is not covered, and neither is what of wanted could not be read or does not exist. An owner with
// acl:write covers everything: it can make a token with any right.
//
// Rules are compared at each segment and prefix that either side names. That is exact:
// of any other name the longest prefix of each side decides, and the longer of both is
// one of these places. Datacenters are those of the reports, those that a policy or an
// identity of either side is limited to, and one that none of them names.
func Covers(owner, wanted *Report) []Excess {
	if refused, disabled := owner.Special(); disabled != nil {
		return nil
	} else if refused != nil {
		return []Excess{{Why: refused.Error()}}
	}
	var all []Excess
	for _, err := range slices.Concat(wanted.found.Errors, wanted.found.farErrors, wanted.found.Notes) {
		if !complete(err) || errors.Is(err, ErrDangling) { // what does not exist may be made later
			all = append(all, Excess{Why: err.Error()})
		}
	}
	all = append(all, excess(owner.table, wanted.table)...)
	for _, datacenter := range otherDatacenters(owner.found, wanted.found) {
		for _, e := range excess(owner.in(datacenter), wanted.in(datacenter)) {
			same := func(found Excess) bool { return found.Of == e.Of && found.Access == e.Access }
			if !slices.ContainsFunc(all, same) {
				e.Datacenter = datacenter
				all = append(all, e)
			}
		}
	}
	return all
}

// unnamed is a datacenter that nothing is limited to. No datacenter has such a name.
const unnamed = "any other datacenter"

// otherDatacenters returns those in which the rules may differ from those of the datacenter that resolved.
func otherDatacenters(all ...Resolution) []string {
	var named []string
	differ := false
	for _, found := range all {
		differ = differ || len(found.farErrors) > 0
		for _, s := range slices.Concat(found.Rules, found.far) {
			named = append(named, s.Datacenters...)
		}
	}
	if len(named) == 0 && !differ {
		return nil
	}
	slices.Sort(named)
	named = slices.DeleteFunc(slices.Compact(named), func(name string) bool { return name == all[0].Datacenter })
	return append(named, unnamed)
}

// excess compares two sides in one datacenter.
func excess(owner, wanted *Table) []Excess {
	if owner.Decide(Query{Resource: ACL, Access: WriteAccess}).Verdict == Allowed {
		return nil
	}
	var all []Excess
	for _, r := range Scalars() {
		all = append(all, scope{resource: r}.excess(owner, wanted)...)
	}
	for _, r := range Segmented() {
		for _, p := range scopes(r, owner, wanted) {
			all = append(all, p.excess(owner, wanted)...)
		}
	}
	return all
}

// scope is what a rule may be about: a scalar, a segment, or all below a prefix that no
// other rule is about.
type scope struct {
	resource Resource
	prefix   bool
	segment  string
}

// scopes returns those that either table has rules about.
func scopes(r Resource, tables ...*Table) []scope {
	var all []scope
	for _, t := range tables {
		for _, e := range t.segments[r].sorted {
			if p := (scope{r, e.prefix, e.segment}); !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// excess returns the accesses to a scope that the wanted rules grant and the owner's do not: at most one,
// with the intentions of services another.
func (p scope) excess(owner, wanted *Table) []Excess {
	asked := [][]Query{{{p.resource, p.segment, WriteAccess}, {p.resource, p.segment, ReadAccess}}}
	switch p.resource {
	case Key:
		asked[0] = slices.Insert(asked[0], 1, Query{p.resource, p.segment, ListAccess})
	case Service:
		asked = append(asked, []Query{{Intention, p.segment, WriteAccess}, {Intention, p.segment, ReadAccess}})
	}
	var all []Excess
	for _, queries := range asked {
		for _, q := range queries {
			grants := wanted.at(p)
			if grants.verdict(q) != Allowed {
				continue
			}
			if d := owner.decideAt(p, q); d.Verdict != Allowed {
				all = append(all, Excess{
					Of:     SubjectText(p.resource, p.prefix, p.segment),
					Access: string(q.Resource) + " " + string(q.Access),
					Wanted: grants.locatedRule(q), Owner: d.entry.locatedRule(q), Why: owner.why(q, d),
				})
				break
			}
		}
	}
	return all
}

// at returns the entry in force at a scope, nil for none.
func (t *Table) at(p scope) *entry {
	switch {
	case p.resource.IsScalar():
		return t.scalar(p.resource)
	case p.prefix:
		return t.segments[p.resource].longest(p.segment)
	}
	return t.segments[p.resource].find(p.segment)
}

// decideAt decides for a scope. With rules missing nothing is surely allowed.
func (t *Table) decideAt(p scope, q Query) Decision {
	e := t.at(p)
	d := Decision{Verdict: e.verdict(q), entry: e}
	switch {
	case t.options.Incomplete:
		d.Verdict, d.because = Unknown, missingRules
	case d.Verdict == Unknown:
		if d.Verdict = t.byDefault(q.Resource); d.Verdict == Unknown {
			d.because = missingDefault
		}
	}
	return d
}

// locatedRule returns the rule of an entry that decides a query; empty for no entry.
func (e *entry) locatedRule(q Query) LocatedRule {
	if e == nil {
		return LocatedRule{}
	}
	s := e.rules[e.decisive(q)]
	return locatedRule(ruleText(s.Rule, q), s)
}
