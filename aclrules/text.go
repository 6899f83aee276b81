package aclrules

import (
	"fmt"
	"strings"
)

// widest is how far a long query may push the reasons of all to the right.
const widest = 40

// Width returns how wide the queries of these answers are, for Sentence.
func Width(answers []Answer) int {
	width := 0
	for _, a := range answers {
		if n := len(a.query.String()); n <= widest {
			width = max(width, n)
		}
	}
	return width
}

// Sentence returns an answer in a line, with the query in a column of that width.
func (a Answer) Sentence(width int) string {
	reason := a.Why
	switch {
	case a.Decision == Disagree:
		reason = a.disagreement()
	case a.Rule != "" && a.Why == "":
		reason = fmt.Sprintf("by %s, %s", a.Rule, a.location())
	case a.Rule != "":
		reason = fmt.Sprintf("%s; so far %s, %s", a.Why, a.Rule, a.location())
	}
	return fmt.Sprintf("%-8s %-*s  %s", a.Decision, width, a.query, reason)
}

// disagreement describes that resolver and server disagree, in capitals.
func (a Answer) disagreement() string {
	return fmt.Sprintf("THE RESOLVER DECIDES %s, THE SERVER %s: do not rely on either",
		strings.ToUpper(opposite(a.Server)), strings.ToUpper(a.Server))
}

func opposite(decision string) string { return word(decision != Allowed.String()) }

// node is a line of an explanation and what belongs to it.
type node struct {
	text     string
	children []node
}

func leaf(format string, args ...any) node { return node{text: fmt.Sprintf(format, args...)} }

// explanation returns everything about one query, as a tree.
func (r *Report) explanation(a Answer) node {
	x := r.explain(a.query)
	top := leaf("%s  %s", a.query, strings.ToUpper(a.Decision))
	add := func(children ...node) { top.children = append(top.children, children...) }
	if a.Decision == Disagree {
		top.text += ": " + a.disagreement()
	}
	if x.Winner.Rule != "" {
		label := "wins"
		if x.Verdict == Unknown {
			label = "so far"
		}
		add(node{fmt.Sprintf("%-7s %s", label, x.Winner.Rule), []node{{text: x.Winner.location()}}})
	}
	if x.Why != "" {
		add(leaf("because %s", x.Why))
	}
	add(losers(x.Losers)...)
	for _, note := range r.notes(a.query, x.Verdict) {
		add(leaf("note    %s", note))
	}
	for _, text := range r.missing() {
		add(leaf("missing %s", text))
	}
	if n, ok := change(x, a.query); ok && a.Decision != Disagree {
		add(n)
	}
	switch {
	case a.Server == "" || a.Decision == Disagree:
	case x.Verdict == Unknown:
		add(leaf("server  decides %s, which applies", a.Server))
	default:
		add(leaf("server  also decides %s", a.Server))
	}
	return top
}

// mostSources is how many places of one losing rule are shown.
const mostSources = 4

// losers returns the losing rules: those that say the same and lost for the same reason together.
func losers(lost []OverriddenRule) []node {
	var found []node
	at := map[string]int{}
	hidden := map[string]int{}
	for _, l := range lost {
		text := fmt.Sprintf("loses   %s: %s", l.Rule, l.Why)
		i, ok := at[text]
		if !ok {
			i = len(found)
			at[text] = i
			found = append(found, node{text: text})
		}
		if len(found[i].children) == mostSources {
			hidden[text]++
			continue
		}
		found[i].children = append(found[i].children, node{text: l.location()})
	}
	for text, n := range hidden {
		group := &found[at[text]]
		group.children = append(group.children, leaf("and %d more, which -json lists", n))
	}
	return found
}

// notes returns findings that do not change the decision.
func (r *Report) notes(q Query, v Verdict) []string {
	notes := errorTexts(r.found.Notes)
	if text := escalation(q, v); text != "" && r.special() == nil {
		notes = append(notes, "this is "+text)
	}
	return notes
}

// change words what would turn the answer.
func change(x Explanation, q Query) (node, bool) {
	n := leaf("to %s", opposite(x.Verdict.String()))
	for _, s := range x.Change.Remove {
		n.children = append(n.children, leaf("remove  %s, %s", ruleText(s.Rule, q), locationOf(s)))
	}
	for line := range strings.Lines(x.Change.Add) {
		n.children = append(n.children, leaf("add     %s", strings.TrimSuffix(line, "\n")))
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

// labelWidth is that of the words that a line begins with.
const labelWidth = len("because ")

func (n node) below(b *strings.Builder, tree bool, indent string) {
	for i, c := range n.children {
		branch, next := "  ", strings.Repeat(" ", labelWidth)
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
	Losers []OverriddenRule `json:"losers"`
	Notes  []string         `json:"notes"`
	// Missing is what could not be read, whether it matters or not.
	Missing []string     `json:"missing"`
	Change  AnswerChange `json:"change"`
}

// AnswerChange is what would turn the answer: rules to remove, policy text to add.
type AnswerChange struct {
	Remove []LocatedRule `json:"remove"`
	Add    string        `json:"add"`
}

// Explained returns the explanation as data.
func (r *Report) Explained(a Answer) Explained {
	x := r.explain(a.query)
	e := Explained{Answer: a, Losers: append([]OverriddenRule{}, x.Losers...), Notes: r.notes(a.query, x.Verdict),
		Missing: r.missing(), Change: AnswerChange{Remove: []LocatedRule{}, Add: x.Change.Add}}
	for _, s := range x.Change.Remove {
		e.Change.Remove = append(e.Change.Remove, locatedRule(ruleText(s.Rule, a.query), s))
	}
	return e
}

func errorTexts(errs []error) []string {
	all := []string{}
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}
