package aclrules

import (
	"errors"
	"fmt"
	"slices"
)

// Report is all that is known of a subject's rights.
type Report struct {
	table *Table
	found Resolution
}

// NewReport makes a report of what a resolver found. def is the default policy.
func NewReport(found Resolution, def Verdict) *Report {
	return &Report{Merge(found.Rules, Options{Default: def, Incomplete: len(found.Errors) > 0}), found}
}

// in returns the table of another datacenter, whose default policy is taken to be the same.
func (r *Report) in(datacenter string) *Table {
	var rules []Sourced
	for _, s := range slices.Concat(r.found.Rules, r.found.far) {
		if countsIn(datacenter, s.Datacenters) {
			rules = append(rules, s)
		}
	}
	slices.SortStableFunc(rules, byPolicyID)
	return Merge(rules, Options{Default: r.table.options.Default,
		Incomplete: len(r.found.Errors)+len(r.found.farErrors) > 0})
}

// Answer is the answer to one query. Its JSON is one line of `acl can -json`.
type Answer struct {
	Resource string `json:"resource"`
	Segment  string `json:"segment"`
	Access   string `json:"access"`
	// Decision is allow, deny or unknown; disagree when two engines differ.
	Decision string `json:"decision"`
	// LocatedRule is the rule that decided; empty when none did.
	LocatedRule
	// Why is what else decided, or what an unknown lacks.
	Why string `json:"why,omitempty"`
	// Missing is what an unknown could not read, and who could.
	Missing []string `json:"missing,omitempty"`
	// Server is the server's decision, allow or deny; empty when it was not asked.
	Server string `json:"server,omitempty"`

	query Query
}

// LocatedRule is a rule and where it is from. Line is in a policy's text, from 1; 0
// where there is no text.
type LocatedRule struct {
	Rule   string `json:"rule,omitempty"`
	Source string `json:"source,omitempty"`
	Line   int    `json:"line,omitempty"`
}

func locatedRule(text string, s Sourced) LocatedRule {
	return LocatedRule{text, s.Source.String(), s.Rule.Line}
}

// location returns where a rule is from, in words.
func (p LocatedRule) location() string {
	if p.Line == 0 {
		return p.Source
	}
	return fmt.Sprintf("%s line %d", p.Source, p.Line)
}

func locationOf(s Sourced) string { return locatedRule("", s).location() }

// Disagree is the decision when we and the server differ.
const Disagree = "disagree"

// Can answers a query.
func (r *Report) Can(q Query) Answer {
	x := r.special()
	if x == nil {
		reason := r.table.reason(q)
		x = &reason
	}
	a := blank(q)
	a.Decision, a.LocatedRule, a.Why = x.Verdict.String(), x.Winner, x.Why
	if x.Verdict == Unknown {
		a.Missing = r.missing()
	}
	return a
}

func blank(q Query) Answer {
	return Answer{Resource: string(q.Resource), Segment: q.Segment, Access: string(q.Access), query: q}
}

// special returns the reason for every answer about a subject that the server does not let in, or of a server
// that lets in every request; nil otherwise.
func (r *Report) special() *Reason {
	switch {
	case r.found.Refused != nil:
		return &Reason{Verdict: Denied, Why: r.found.Refused.Error()}
	case r.found.Disabled != nil:
		return &Reason{Verdict: Allowed, Why: ErrDisabled.Error() + ": every request is allowed"}
	}
	return nil
}

// explain returns the table's explanation, unless there is a reason for everything.
func (r *Report) explain(q Query) Explanation {
	if special := r.special(); special != nil {
		return Explanation{Reason: *special}
	}
	return r.table.Explain(q)
}

// Compare adds the server's decision. Where we are sure and it differs, the
// answer is a disagreement; where we are not, the server decides.
func (a Answer) Compare(allowed bool) Answer {
	a.Server = word(allowed)
	switch {
	case a.Decision == Unknown.String():
		a.Decision, a.Why, a.LocatedRule, a.Missing = a.Server, "decided by the server; by the resolver: "+a.Why,
			LocatedRule{}, nil
	case a.Decision != a.Server:
		a.Decision = Disagree
	}
	return a
}

func word(allowed bool) string {
	if allowed {
		return Allowed.String()
	}
	return Denied.String()
}

// ByServer returns an answer that only the server gave.
func ByServer(q Query, allowed bool) Answer {
	a := blank(q)
	a.Server, a.Decision, a.Why = word(allowed), word(allowed), "decided by the server"
	return a
}

// WorstAnswer returns the verdict on all answers together: a deny, also one of the server against our
// reading, before an unknown, also an allow of the server against our reading, before an allow.
func WorstAnswer(answers []Answer) Verdict {
	worst := Allowed
	for _, a := range answers {
		decision := a.Decision
		if decision == Disagree && a.Server == word(false) {
			decision = a.Server
		}
		switch decision {
		case Denied.String():
			return Denied
		case Unknown.String(), Disagree:
			worst = Unknown
		}
	}
	return worst
}

// Problems returns why the report is not complete; nil when it is.
func (r *Report) Problems() error { return errors.Join(r.found.Errors...) }

// Special returns the reason that decides every question: the server lets the subject not in at all, or it
// lets in every request; nil otherwise.
func (r *Report) Special() (refused, disabled error) { return r.found.Refused, r.found.Disabled }

func (r *Report) missing() []string { return errorTexts(r.found.Errors) }

// escalation returns what an allowed query grants beyond its own words; empty for nothing.
func escalation(q Query, v Verdict) string {
	if v != Allowed || q.Access != WriteAccess {
		return ""
	}
	return Escalation(Rule{Resource: q.Resource, Level: LevelWrite.String()})
}
