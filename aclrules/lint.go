package aclrules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/aclrules/policy"
)

// Lint is a part of a policy that does not do what its author will think it
// does.
type Lint struct {
	// Line is where, from 1; 0 when unknown.
	Line int
	// Code is for machines: inert, case, shadowed, root.
	Code string
	// Message says what is so and what to do.
	Message string
}

// Codes of lints.
const (
	Inert    = "inert"    // the server ignores it without a word
	Case     = "case"     // not in lower case: it loses against any other rule
	Shadowed = "shadowed" // another rule of the policy makes it pointless
	Root     = "root"     // equivalent to every right there is
)

// LintText lints a policy's text that Parse accepts; the error is Parse's.
func LintText(text string) ([]Lint, error) {
	p, err := policy.Parse(text)
	if err != nil {
		return nil, err
	}
	ignored, err := policy.Unknown(text)
	if err != nil {
		return nil, err
	}
	var found []Lint
	for _, i := range ignored {
		found = append(found, Lint{i.Line, Inert, i.Message})
	}
	found = slices.Concat(found, letterCase(p), shadowed(p), root(p))
	slices.SortStableFunc(found, func(a, b Lint) int { return cmp.Compare(a.Line, b.Line) })
	return found, nil
}

// letterCase finds levels that the server enforces, but lets lose.
func letterCase(p *policy.Policy) []Lint {
	var found []Lint
	for _, r := range p.Rules {
		for _, level := range []string{r.Level, r.Intentions} {
			if level == "" || policy.Rank(level) > 0 {
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
func shadowed(p *policy.Policy) []Lint {
	var rules []Sourced
	for _, r := range p.Rules {
		rules = append(rules, Sourced{Rule: r})
	}
	t := Merge(rules, Options{Default: Denied})
	var found []Lint
	add := func(r *policy.Rule, format string, args ...any) {
		found = append(found, Lint{r.Line, Shadowed, r.Subject() + " = " + r.Level + " does nothing: " + fmt.Sprintf(format, args...)})
	}
	for _, resource := range policy.Segmented() {
		for _, e := range t.segments[resource].sorted {
			for i, s := range e.rules {
				winner := e.rules[e.level].Rule
				if i != e.level && i != e.intentions {
					add(s.Rule, "%s%s outranks it", atLine(winner.Line), winner.Level)
				}
			}
			if wider := t.segments[resource].wider(e); wider != nil && wider.grants == e.grants && wider.grantsIntentions == e.grantsIntentions {
				add(e.rules[e.level].Rule, "%s%s = %s says the same", atLine(wider.rules[wider.level].Rule.Line), policy.Subject(resource, true, wider.segment), wider.grants)
			}
		}
	}
	return found
}

func atLine(line int) string {
	if line == 0 {
		return ""
	}
	return fmt.Sprintf("line %d: ", line)
}

// wider is the entry that would be in force if e were not there, of those that
// reach as far as e does; nil for none.
func (i *index) wider(e *entry) *entry {
	for _, n := range i.lengths {
		if n > len(e.segment) || e.prefix && n == len(e.segment) {
			continue
		}
		if w := i.prefix[e.segment[:n]]; w != nil {
			return w
		}
	}
	return nil
}

// root finds what amounts to every right: who may write ACLs may give
// themselves a management token.
func root(p *policy.Policy) []Lint {
	for _, r := range p.Rules {
		if r.Resource == policy.ACL && r.Level == "write" {
			return []Lint{{r.Line, Root, `acl = "write" is equivalent to root: its holder can make a management token`}}
		}
	}
	return nil
}
