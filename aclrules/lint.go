package aclrules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/hcl/ast"
)

// Lint is a part of a policy that does not do what its author will think it
// does.
type Lint struct {
	// Line is where, from 1; 0 when unknown.
	Line int
	// Code is for machines: inert, case, repeated, shadowed, root.
	Code string
	// Message states the problem and the remedy.
	Message string
}

// Codes of lints.
const (
	Inert    = "inert"    // the server ignores it without a word
	Case     = "case"     // not in lower case: it loses against any other rule
	Repeated = "repeated" // an argument is set again: new servers refuse the policy
	Shadowed = "shadowed" // another rule of the policy makes it pointless
	root     = "root"     // equivalent to much more than its text states
)

// LintText lints a policy's text. The error is Parse's; the lints beside it are those of
// the text alone.
func LintText(text string) ([]Lint, error) {
	if text == "" {
		return nil, nil
	}
	file, _, err := decode(text)
	if err != nil {
		return nil, err
	}
	var found []Lint
	for _, i := range inert(file) {
		found = append(found, Lint{i.Line, Inert, i.Message})
	}
	found = append(found, repeated(file)...)
	p, err := Parse(text)
	if err == nil {
		found = slices.Concat(found, letterCase(p), shadowed(p), escalations(p))
	}
	slices.SortStableFunc(found, func(a, b Lint) int { return cmp.Compare(a.Line, b.Line) })
	return found, err
}

// repeated finds arguments that HCL sets again in the same place, spelled the same. Consul
// 1.22 refuses to write such a policy; it reads those that it has, like earlier versions.
func repeated(file *ast.File) []Lint {
	var found []Lint
	ast.Walk(file, func(n ast.Node) (ast.Node, bool) {
		list, ok := n.(*ast.ObjectList)
		if !ok {
			return n, true
		}
		set := map[string]bool{}
		for _, item := range list.Items {
			if !item.Assign.IsValid() { // a block, of which there may be several
				continue
			}
			for _, key := range item.Keys {
				if text := key.Token.Text; set[text] && !key.Token.JSON {
					found = append(found, Lint{key.Pos().Line, Repeated, text + " is set again: Consul 1.22 refuses the policy, earlier versions take the last: remove the others"})
				} else {
					set[text] = true
				}
			}
		}
		return n, true
	})
	return found
}

// letterCase finds levels that the server enforces, but lets lose.
func letterCase(p *ParsedPolicy) []Lint {
	var found []Lint
	for _, r := range p.Rules {
		for _, level := range []string{r.Level, r.Intentions} {
			if level == "" || rank(level) > 0 {
				continue
			}
			message := fmt.Sprintf("%s = %q loses against any other rule for the same: write %q", r.Subject(), level, strings.ToLower(level))
			if r.Resource.IsScalar() {
				message = fmt.Sprintf("%s = %q is ignored: write %q", r.Subject(), level, strings.ToLower(level))
			}
			found = append(found, Lint{r.Line, Case, message})
		}
	}
	return found
}

// shadowed finds rules that others of the same policy make pointless: for the
// same thing, or a prefix's that say the same already.
func shadowed(p *ParsedPolicy) []Lint {
	var rules []Sourced
	for _, r := range p.Rules {
		rules = append(rules, Sourced{Rule: r})
	}
	t := Merge(rules, Options{Default: Denied})
	var found []Lint
	add := func(r *Rule, format string, args ...any) {
		found = append(found, Lint{r.Line, Shadowed, r.Subject() + " = " + r.Level + " has no effect: " + fmt.Sprintf(format, args...)})
	}
	for _, resource := range Segmented() {
		for _, e := range t.segments[resource].sorted {
			for i, s := range e.rules {
				winner := e.rules[e.level].Rule
				if i != e.level && i != e.intentions {
					add(s.Rule, "%s%s outranks it", lineText(winner.Line), winner.Level)
				}
			}
			if wider := t.segments[resource].wider(e); wider != nil && wider.grants == e.grants && wider.grantsIntentions == e.grantsIntentions {
				add(e.rules[e.level].Rule, "%s%s = %s grants the same", lineText(wider.rules[wider.level].Rule.Line), SubjectText(resource, true, wider.segment), wider.grants)
			}
		}
	}
	return found
}

// wider is the entry that would be in force if e were not there, of those that
// reach as far as e does; nil for none.
func (i *index) wider(e *entry) *entry {
	for w := range i.covering(e.segment) {
		if w != e {
			return w
		}
	}
	return nil
}

// escalations finds the rule that amounts to most beyond its text.
func escalations(p *ParsedPolicy) []Lint {
	worst := worst(p.Rules)
	if worst == nil {
		return nil
	}
	return []Lint{{worst.Line, root, fmt.Sprintf("%s = %q is %s", worst.Subject(), worst.Level, Escalation(*worst))}}
}

// worst is the rule that is equivalent to most beyond its text; nil for none.
func worst(rules []*Rule) *Rule {
	var worst *Rule
	for _, r := range rules {
		if Escalation(*r) != "" && (worst == nil || r.Resource == ACL) {
			worst = r
		}
	}
	return worst
}

// Escalation is what a rule is equivalent to when that is more than its text states;
// empty otherwise.
func Escalation(r Rule) string {
	switch {
	case r.Level != LevelWrite.String():
	case r.Resource == ACL:
		return "equivalent to root: its holder can make a management token"
	case r.Resource == Operator:
		return "enough to pose as any service: its holder can replace the mesh's certificate authority"
	}
	return ""
}
