package aclrules

import (
	"fmt"
	"slices"

	"github.com/meshtask/consul-ecs/aclrules/policy"
)

// Explanation says how a decision came about.
type Explanation struct {
	Decision
	// Winner is the rule that decided; its Rule is nil when none did.
	Winner Sourced
	// WinnerText is the winner as it counts: `service "web" = deny`.
	WinnerText string
	// Losers are the other rules that speak of the same thing, the nearest first.
	Losers []Loser
	// Why tells in a sentence what decided when no rule did, and what an unknown
	// lacks; empty otherwise.
	Why string
	// Change is what would turn the answer.
	Change Change
}

// Loser is a rule that was looked at and did not decide.
type Loser struct {
	Sourced
	// Text is the rule as it would have counted; Why tells what beat it.
	Text, Why string
}

// Explain is Decide with its reasons.
func (t *Table) Explain(q Query) Explanation {
	x := Explanation{Decision: t.Decide(q), Why: t.why(q), Change: t.change(q)}
	_, winner := t.rules(q)
	if winner != nil {
		x.Winner = winner.rules[winner.decisive(q)]
		x.WinnerText = ruleText(x.Winner.Rule, q)
		x.Losers = winner.outranked(q)
	}
	for _, e := range t.considered(q) {
		if e == winner {
			continue
		}
		for _, s := range e.rules {
			x.Losers = append(x.Losers, Loser{s, ruleText(s.Rule, q), beaten(e, winner, q)})
		}
	}
	return x
}

// decisive is the index of the rule that an entry's level for a query is of.
func (e *entry) decisive(q Query) int {
	if q.Resource == policy.Intention && e.intentions >= 0 {
		return e.intentions
	}
	return e.level
}

// outranked are the rules of an entry that another of the same thing beat.
func (e *entry) outranked(q Query) []Loser {
	var losers []Loser
	at := e.decisive(q)
	won := levelText(e.rules[at].Rule, q)
	for i, s := range e.rules {
		if i == at {
			continue
		}
		lost := levelText(s.Rule, q)
		why := fmt.Sprintf("same key: %s outranks %s", won, lost)
		switch {
		case lost == won:
			why = "same key: says the same"
		case policy.Rank(lost) == 0 && lost != "":
			why = fmt.Sprintf("same key: %s is not in lower case and outranks nothing", lost)
		case lost == "":
			why = "same key: says nothing of intentions"
		}
		losers = append(losers, Loser{s, ruleText(s.Rule, q), why})
	}
	return losers
}

// levelText is what a rule says about what the query asks, as written.
func levelText(r *policy.Rule, q Query) string {
	if q.Resource == policy.Intention {
		return r.Intentions
	}
	return r.Level
}

func ruleText(r *policy.Rule, q Query) string {
	if q.Resource == policy.Intention && r.Intentions != "" {
		return r.Subject() + " intentions = " + r.Intentions
	}
	return r.Subject() + " = " + r.Level
}

// considered are the entries that speak of what the query asks, the most
// specific first.
func (t *Table) considered(q Query) []*entry {
	if q.Resource.IsScalar() {
		var found []*entry
		for _, r := range slices.Compact([]policy.Resource{q.Resource, inheritedFrom(q.Resource)}) {
			if e := t.scalars[r]; e != nil {
				found = append(found, e)
			}
		}
		return found
	}
	resource := q.Resource
	if resource == policy.Intention {
		resource = policy.Service
	}
	i := t.segments[resource]
	var found []*entry
	if q.Access == WritePrefix || q.Resource == policy.Intention && q.Segment == "*" {
		below := q.Segment
		if q.Resource == policy.Intention {
			below = ""
		}
		found = slices.Clone(i.below(below))
	} else if e := i.exact[q.Segment]; e != nil {
		found = append(found, e)
	}
	for _, n := range i.lengths {
		if n > len(q.Segment) {
			continue
		}
		if e := i.prefix[q.Segment[:n]]; e != nil && !slices.Contains(found, e) {
			found = append(found, e)
		}
	}
	return found
}

// inheritedFrom is the resource whose rule counts where r has none.
func inheritedFrom(r policy.Resource) policy.Resource {
	if r == policy.Mesh || r == policy.Peering {
		return policy.Operator
	}
	return r
}

// beaten tells why an entry did not decide although it speaks of the matter.
func beaten(e, winner *entry, q Query) string {
	switch {
	case winner == nil:
		return "does not decide alone"
	case q.Resource.IsScalar():
		return string(q.Resource) + " has a rule of its own"
	case q.Access == WritePrefix || q.Resource == policy.Intention && q.Segment == "*":
		if e.verdict(q) == Denied {
			return "refuses, too"
		}
		return "another rule decides for all"
	case !winner.prefix:
		return "an exact rule exists"
	}
	return "a longer prefix matches"
}

// why words what is not a rule's doing.
func (t *Table) why(q Query) string {
	d := t.Decide(q)
	switch {
	case d.because == missingRules && d.entry != nil:
		return "rules that could not be read may decide otherwise"
	case d.because == missingRules:
		return "no rule that could be read applies, and others could not be read"
	case d.because == missingDefault:
		return "no rule applies, and the default policy is not known"
	case d.entry != nil:
		return ""
	case q.Resource == policy.ACL && t.options.Default == Allowed:
		return "no rule applies, and the default policy allows all but access to ACLs"
	}
	return fmt.Sprintf("no rule applies: the default policy is %s", d.Verdict)
}
