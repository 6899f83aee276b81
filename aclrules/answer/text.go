package answer

import (
	"fmt"
	"strings"

	"github.com/meshtask/consul-ecs/aclrules"
)

// Line is an answer in a line.
func (a Answer) Line() string {
	line := fmt.Sprintf("%-8s %s", a.Decision, a.query)
	switch {
	case a.Decision == Disagree:
		line += fmt.Sprintf("  by our rules %s, by the server %s: do not rely on either", opposite(a.Server), a.Server)
	case a.Rule != "" && a.Why == "":
		line += fmt.Sprintf("  by %s, %s", a.Rule, a.Source)
	case a.Why != "":
		line += "  " + a.Why
	}
	return line
}

func opposite(decision string) string {
	if decision == "allow" {
		return "deny"
	}
	return "allow"
}

// node is a line of an explanation and what belongs to it.
type node struct {
	text     string
	children []node
}

// Explain is everything about one query. server is the server's word: an Answer
// that was compared, or one that was not.
func (r *Report) explanation(a Answer) node {
	x := r.explain(a.query)
	top := node{text: fmt.Sprintf("%s  %s", a.query, strings.ToUpper(a.Decision))}
	add := func(children ...node) { top.children = append(top.children, children...) }
	if x.Winner.Rule != nil {
		add(node{"wins    " + x.WinnerText, []node{{text: place(x.Winner)}}})
	}
	if x.Why != "" {
		add(node{text: "because " + x.Why})
	}
	for _, l := range x.Losers {
		add(node{"loses   " + l.Text, []node{{text: l.Why}, {text: place(l.Sourced)}}})
	}
	for _, err := range r.found.Notes {
		add(node{text: "note    " + err.Error()})
	}
	for _, err := range r.found.Errors {
		add(node{text: "missing " + err.Error()})
	}
	if a.query.Resource == "acl" && a.query.Access == aclrules.WriteAccess && x.Verdict == aclrules.Allowed {
		add(node{text: "note    equivalent to root: whoever may write ACLs can make a management token"})
	}
	if n, ok := change(x); ok {
		add(n)
	}
	if a.Server != "" {
		agrees := "agrees"
		if a.Decision == Disagree {
			agrees = "disagrees: do not rely on either"
		}
		add(node{text: fmt.Sprintf("server  %s (%s)", a.Server, agrees)})
	}
	return top
}

// change words what would turn the answer.
func change(x aclrules.Explanation) (node, bool) {
	to := "allow"
	if x.Verdict == aclrules.Allowed {
		to = "deny"
	}
	n := node{text: "to " + to}
	for _, s := range x.Change.Remove {
		n.children = append(n.children, node{text: fmt.Sprintf("remove  %s = %s, %s", s.Rule.Subject(), s.Rule.Level, place(s))})
	}
	for line := range strings.Lines(x.Change.Add) {
		n.children = append(n.children, node{text: "add     " + strings.TrimSuffix(line, "\n")})
	}
	return n, len(n.children) > 0
}

// Explain renders an answer with all its reasons, as a tree for a terminal or
// as indented lines.
func (r *Report) Explain(a Answer, tree bool) string {
	var b strings.Builder
	r.explanation(a).write(&b, tree)
	return b.String()
}

func (n node) write(b *strings.Builder, tree bool) {
	b.WriteString(n.text + "\n")
	n.below(b, tree, "")
}

func (n node) below(b *strings.Builder, tree bool, indent string) {
	for i, c := range n.children {
		branch, next := "  ", "  "
		if tree {
			branch, next = "├─ ", "│  "
			if i == len(n.children)-1 {
				branch, next = "└─ ", "   "
			}
		}
		b.WriteString(indent + branch + c.text + "\n")
		c.below(b, tree, indent+next)
	}
}

// Explained is an explanation for machines.
type Explained struct {
	Answer
	Losers  []Lost   `json:"losers"`
	Notes   []string `json:"notes"`
	Missing []string `json:"missing"`
	Change  Change   `json:"change"`
}

// Lost is a rule that did not decide.
type Lost struct {
	Rule   string `json:"rule"`
	Source string `json:"source"`
	Why    string `json:"why"`
}

// Change is what would turn the answer.
type Change struct {
	Remove []Lost `json:"remove"`
	Add    string `json:"add"`
}

// Explained is Explain as data.
func (r *Report) Explained(a Answer) Explained {
	x := r.explain(a.query)
	e := Explained{Answer: a, Losers: []Lost{}, Notes: texts(r.found.Notes), Missing: texts(r.found.Errors), Change: Change{Remove: []Lost{}, Add: x.Change.Add}}
	for _, l := range x.Losers {
		e.Losers = append(e.Losers, Lost{l.Text, place(l.Sourced), l.Why})
	}
	for _, s := range x.Change.Remove {
		e.Change.Remove = append(e.Change.Remove, Lost{s.Rule.Subject() + " = " + s.Rule.Level, place(s), "nothing outranks it"})
	}
	return e
}

func texts(errs []error) []string {
	all := []string{}
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}
