package answer

import (
	"errors"
	"fmt"

	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/aclrules/resolver"
)

// Report is all that is known of a subject's rights.
type Report struct {
	table *aclrules.Table
	found resolver.Resolution
}

// New makes a report of what a resolver found. def is the default policy.
func New(found resolver.Resolution, def aclrules.Verdict) *Report {
	return &Report{aclrules.Merge(found.Rules, aclrules.Options{Default: def, Incomplete: len(found.Errors) > 0}), found}
}

// Answer is the answer to one query. Its JSON is one line of `acl can -json`.
type Answer struct {
	Resource string `json:"resource"`
	Segment  string `json:"segment"`
	Access   string `json:"access"`
	// Decision is allow, deny or unknown; disagree when two engines differ.
	Decision string `json:"decision"`
	// Rule decided, and Source is where it comes from; empty when none did.
	Rule   string `json:"rule,omitempty"`
	Source string `json:"source,omitempty"`
	// Why is what else decided, or what an unknown lacks.
	Why string `json:"why,omitempty"`
	// Server is what the server says, allow or deny; empty when it was not asked.
	Server string `json:"server,omitempty"`

	query aclrules.Query
}

// Disagree is the decision when we and the server differ.
const Disagree = "disagree"

// Can answers a query.
func (r *Report) Can(q aclrules.Query) Answer {
	return r.answer(q, r.explain(q))
}

func (r *Report) answer(q aclrules.Query, x aclrules.Explanation) Answer {
	a := Answer{
		Resource: string(q.Resource), Segment: q.Segment, Access: string(q.Access),
		Decision: x.Verdict.String(), Why: x.Why, query: q,
	}
	if x.Winner.Rule != nil {
		a.Rule, a.Source = x.WinnerText, place(x.Winner)
	}
	return a
}

// explain is the table's explanation, or a refusal of everything for a subject
// that the server does not let in.
func (r *Report) explain(q aclrules.Query) aclrules.Explanation {
	if r.found.Refused == nil {
		return r.table.Explain(q)
	}
	x := aclrules.Explanation{Why: r.found.Refused.Error()}
	x.Query, x.Verdict = q, aclrules.Denied
	return x
}

// place is a rule's source with its line.
func place(s aclrules.Sourced) string {
	if s.Rule.Line == 0 {
		return s.Source.String()
	}
	return fmt.Sprintf("%s:%d", s.Source, s.Rule.Line)
}

// Compare adds the server's word. Where we are sure and it says otherwise, the
// answer is a disagreement; where we are not, the server's word counts.
func (a Answer) Compare(allowed bool) Answer {
	a.Server = "deny"
	if allowed {
		a.Server = "allow"
	}
	switch {
	case a.Decision == aclrules.Unknown.String():
		a.Decision, a.Why = a.Server, "the server says so: "+a.Why
	case a.Decision != a.Server:
		a.Decision = Disagree
	}
	return a
}

// ByServer is an answer that only the server gave.
func ByServer(q aclrules.Query, allowed bool) Answer {
	a := Answer{Resource: string(q.Resource), Segment: q.Segment, Access: string(q.Access), Server: "deny", query: q}
	if allowed {
		a.Server = "allow"
	}
	a.Decision, a.Why = a.Server, "the server says so"
	return a
}

// Worst is the verdict on all answers together: a disagreement or a deny before
// an unknown before an allow.
func Worst(answers []Answer) aclrules.Verdict {
	worst := aclrules.Allowed
	for _, a := range answers {
		switch a.Decision {
		case "deny", Disagree:
			return aclrules.Denied
		case "unknown":
			worst = aclrules.Unknown
		}
	}
	return worst
}

// Problems are why the report is not complete, for stderr.
func (r *Report) Problems() error { return errors.Join(r.found.Errors...) }
