package aclrules

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/hcl/ast"
	"github.com/hashicorp/hcl/hcl/parser"
)

// Codes of findings in a policy's text.
const (
	Invalid  = "invalid"  // no policy at all
	Inert    = "inert"    // the server ignores it silently
	Case     = "case"     // not in lower case: it loses against any other rule
	Repeated = "repeated" // an argument is set again: new servers refuse the policy
	Shadowed = "shadowed" // another rule of the policy makes it pointless
	root     = "root"     // equivalent to much more than its text states
	KV       = "kv"       // writes keys that controllers and brokers rely on
)

// LintText lints a policy's text, which is called name in the findings.
func LintText(name, text string) []Finding {
	if text == "" {
		return nil
	}
	found := lint(text)
	for i := range found {
		found[i].Object = name
	}
	slices.SortStableFunc(found, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
	return found
}

func lint(text string) []Finding {
	file, _, err := decode(text)
	if err != nil {
		return invalid(err)
	}
	rules, err := Parse(text)
	found := invalid(err)
	for _, i := range inert(file) {
		found = append(found, Finding{Line: i.Line, Code: Inert, Message: i.Message})
	}
	return slices.Concat(found, repeated(file), letterCase(rules), shadowed(rules), escalations(rules), ownKeys(rules))
}

// invalid returns the parts of Parse's error, each at its line; nil for no error.
func invalid(err error) []Finding {
	if err == nil {
		return nil
	}
	if joined, is := err.(interface{ Unwrap() []error }); is {
		var all []Finding
		for _, part := range joined.Unwrap() {
			all = append(all, invalid(part)...)
		}
		return all
	}
	if rule, is := errors.AsType[*ruleError](err); is {
		return []Finding{{Line: rule.line, Code: Invalid, Message: rule.text}}
	}
	line := 0
	if syntax, is := errors.AsType[*parser.PosError](err); is {
		line = syntax.Pos.Line
	}
	return []Finding{{Line: line, Code: Invalid, Message: err.Error()}}
}

// repeated finds arguments that HCL sets again in the same place, spelled the same. Consul
// 1.22 refuses to write such a policy; it reads those that it has, like earlier versions.
func repeated(file *ast.File) []Finding {
	var found []Finding
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
					found = append(found,
						Finding{Line: key.Pos().Line, Code: Repeated, Message: text + " is set again: Consul 1.22 " +
							"refuses the policy, earlier versions take the last: remove the others"})
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
func letterCase(rules []*Rule) []Finding {
	var found []Finding
	for _, r := range rules {
		for _, level := range []string{r.Level, r.Intentions} {
			if level == "" || rank(level) > 0 {
				continue
			}
			message := fmt.Sprintf("%s = %q loses against any other rule for the same: write %q", r.Subject(), level,
				strings.ToLower(level))
			if r.Resource.IsScalar() {
				message = fmt.Sprintf("%s = %q is ignored: write %q", r.Subject(), level, strings.ToLower(level))
			}
			found = append(found, Finding{Line: r.Line, Code: Case, Message: message})
		}
	}
	return found
}

// mergeTexts merges the rules of a policy.
func mergeTexts(rules []*Rule) *Table {
	var all []Sourced
	for _, r := range rules {
		all = append(all, Sourced{Rule: r})
	}
	return Merge(all, Options{Default: Denied})
}

// shadowed finds rules that others of the same policy make pointless: for the
// same thing, or a prefix's that say the same already.
func shadowed(rules []*Rule) []Finding {
	t := mergeTexts(rules)
	var found []Finding
	add := func(r *Rule, format string, args ...any) {
		found = append(found, Finding{Line: r.Line, Code: Shadowed,
			Message: r.Subject() + " = " + r.Level + " has no effect: " + fmt.Sprintf(format, args...)})
	}
	for _, resource := range Segmented() {
		for _, e := range t.segments[resource].sorted {
			for i, s := range e.rules {
				winner := e.rules[e.level].Rule
				if i != e.level && i != e.intentions {
					add(s.Rule, "%s%s outranks it", lineText(winner.Line), winner.Level)
				}
			}
			if wider := t.segments[resource].wider(e); wider != nil && wider.grants == e.grants &&
				wider.grantsIntentions == e.grantsIntentions {
				add(e.rules[e.level].Rule, "%s%s = %s grants the same", lineText(wider.rules[wider.level].Rule.Line),
					SubjectText(resource, true, wider.segment), wider.grants)
			}
		}
	}
	return found
}

// wider returns the entry that would be in force if e were not there, of those that reach as far as e does;
// nil for none.
func (i *index) wider(e *entry) *entry {
	for w := range i.covering(e.segment) {
		if w != e {
			return w
		}
	}
	return nil
}

// escalations finds the rule that amounts to most beyond its text.
func escalations(rules []*Rule) []Finding {
	worst := worst(rules)
	if worst == nil {
		return nil
	}
	return []Finding{{Line: worst.Line, Code: root,
		Message: fmt.Sprintf("%s = %q is %s", worst.Subject(), worst.Level, Escalation(*worst))}}
}

// ownPrefix is where controllers and token brokers keep what they rely on in Consul's KV.
const ownPrefix = "consul-ecs/"

// ownKeys finds rules that let their holder write below ownPrefix.
func ownKeys(rules []*Rule) []Finding {
	keys := mergeTexts(rules).segments[Key]
	var found []Finding
	for _, e := range keys.sorted {
		inside := strings.HasPrefix(e.segment, ownPrefix)
		around := e.prefix && keys.longest(ownPrefix) == e
		if r := e.rules[e.level].Rule; e.grants == LevelWrite && (inside || around) {
			found = append(found, Finding{Line: r.Line, Code: KV, Message: fmt.Sprintf(
				`%s = %s covers keys below %q, where controllers keep their locks, and brokers which tokens they `+
					`revoke: add key_prefix %[3]q = deny, unless only they have the policy`, r.Subject(), r.Level,
				ownPrefix)})
		}
	}
	return found
}

// worst returns the rule that is equivalent to most beyond its text; nil for none.
func worst(rules []*Rule) *Rule {
	var worst *Rule
	for _, r := range rules {
		if Escalation(*r) != "" && (worst == nil || r.Resource == ACL) {
			worst = r
		}
	}
	return worst
}

// Escalation returns what a rule is equivalent to when that is more than its text states; empty otherwise.
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
