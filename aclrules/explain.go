package aclrules

import (
	"fmt"
	"slices"
)

// Reason is a decision and what made it.
type Reason struct {
	Verdict Verdict
	// Winner is the rule that decided, as it counts: `service "web" = deny`; empty when none did.
	Winner LocatedRule
	// Why names what decided when no rule did, and what an unknown
	// lacks; empty otherwise.
	Why string
}

// reason returns the decision with the rule that decided.
func (t *Table) reason(q Query) Reason {
	d := t.Decide(q)
	return Reason{Verdict: d.Verdict, Winner: d.entry.locatedRule(q), Why: t.why(q, d)}
}

// Explanation is how a decision was reached.
type Explanation struct {
	Reason
	// Losers are the other rules that speak of the same thing, the nearest first.
	Losers []OverriddenRule
	// Change is what would turn the answer. It is empty where rules that could not
	// be read may stand in its way.
	Change Change
}

// OverriddenRule is a rule, as it would have counted, that was looked at and did not decide. Why
// names what overrode it.
type OverriddenRule struct {
	LocatedRule
	Why string `json:"why"`
}

// Explain returns the decision with all that was looked at.
func (t *Table) Explain(q Query) Explanation {
	x := Explanation{Reason: t.reason(q)}
	d := t.Decide(q)
	if d.because != missingRules {
		x.Change = t.change(q)
	}
	if d.entry != nil {
		x.Losers = d.entry.outranked(q)
	}
	for _, e := range t.considered(q) {
		if e == d.entry {
			continue
		}
		for _, s := range e.rules {
			x.Losers = append(x.Losers, OverriddenRule{locatedRule(ruleText(s.Rule, q), s),
				overriddenBy(e, d.entry, q)})
		}
	}
	return x
}

// decisive returns the index of the rule that an entry's level for a query is of.
func (e *entry) decisive(q Query) int {
	if q.Resource == Intention && e.intentions >= 0 {
		return e.intentions
	}
	return e.level
}

// outranked returns the rules of an entry that another of the same thing beat.
func (e *entry) outranked(q Query) []OverriddenRule {
	var losers []OverriddenRule
	at := e.decisive(q)
	won := levelText(e.rules[at].Rule, q)
	for i, s := range e.rules {
		if i == at {
			continue
		}
		lost := levelText(s.Rule, q)
		why := fmt.Sprintf("%s outranks %s", won, lost)
		switch {
		case lost == won:
			why = "has the same level"
		case rank(lost) == 0 && lost != "":
			why = fmt.Sprintf("%s is not in lower case and outranks nothing", lost)
		case lost == "":
			why = "does not set intentions"
		}
		losers = append(losers, OverriddenRule{locatedRule(ruleText(s.Rule, q), s), why})
	}
	return losers
}

// levelText returns the level that a rule has for the query, as written.
func levelText(r *Rule, q Query) string {
	if q.Resource == Intention {
		return r.Intentions
	}
	return r.Level
}

func ruleText(r *Rule, q Query) string {
	switch {
	case q.Resource != Intention:
		return r.Subject() + " = " + r.Level
	case r.Intentions == "":
		return fmt.Sprintf("%s = %s (intentions = %s)", r.Subject(), r.Level, implied(r.Level))
	}
	return r.Subject() + " intentions = " + r.Intentions
}

// considered returns the entries that speak of what the query asks, the most specific first.
func (t *Table) considered(q Query) []*entry {
	if q.Resource.IsScalar() {
		var found []*entry
		for _, r := range slices.Compact([]Resource{q.Resource, inheritedFrom(q.Resource)}) {
			if e := t.scalars[r]; e != nil {
				found = append(found, e)
			}
		}
		return found
	}
	resource := q.Resource
	if resource == Intention {
		resource = Service
	}
	i := t.segments[resource]
	var found []*entry
	if q.Access == WritePrefix || q.Resource == Intention && q.Segment == "*" {
		below := q.Segment
		if q.Resource == Intention {
			below = ""
		}
		found = slices.Clone(i.below(below))
	} else if e := i.exact[q.Segment]; e != nil {
		found = append(found, e)
	}
	for e := range i.covering(q.Segment) {
		if !slices.Contains(found, e) {
			found = append(found, e)
		}
	}
	return found
}

// overriddenBy returns why an entry that applies to the query did not decide it.
func overriddenBy(e, winner *entry, q Query) string {
	switch {
	case winner == nil:
		return "does not decide alone"
	case q.Resource.IsScalar():
		return string(q.Resource) + " has its own rule"
	case q.Access == WritePrefix || q.Resource == Intention && q.Segment == "*":
		if e.verdict(q) == Denied {
			return "also denies"
		}
		return "another rule decides for all"
	case !winner.prefix:
		return "an exact rule exists"
	}
	return "a longer prefix matches"
}

// why words what is not a rule's doing.
func (t *Table) why(q Query, d Decision) string {
	switch {
	case d.because == missingRules && d.entry != nil:
		return "rules that could not be read may decide otherwise"
	case d.because == missingRules:
		return "no rule that could be read applies, and others could not be read"
	case d.because == missingDefault:
		return "no rule applies, and the default policy is not known: a token with acl:read can read it"
	case d.entry != nil:
		return ""
	case q.Resource == ACL && t.options.Default == Allowed:
		return "no rule applies, and the default policy allows all but access to ACLs"
	}
	return fmt.Sprintf("no rule applies: the default policy is %s", d.Verdict)
}
