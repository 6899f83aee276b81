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
	p, err := Parse(text)
	if err != nil || text == "" {
		return nil, err
	}
	file, _, err := decode(text)
	if err != nil {
		return nil, err
	}
	found := slices.Concat(inert(file), p.letterCase(), p.shadowed(), p.root())
	slices.SortStableFunc(found, func(a, b Lint) int { return cmp.Compare(a.Line, b.Line) })
	return found, nil
}

// inert finds keys that the server does not know.
func inert(file *ast.File) []Lint {
	list, ok := file.Node.(*ast.ObjectList)
	if !ok {
		return nil
	}
	var found []Lint
	for _, item := range list.Items {
		key := keyOf(item)
		switch l := item.Pos().Line; {
		case !isKnown(key, knownKeys()):
			found = append(found, Lint{l, Inert, inertKey(key)})
		default:
			found = append(found, inertInside(item, key)...)
		}
	}
	return found
}

func keyOf(item *ast.ObjectItem) string {
	if len(item.Keys) == 0 {
		return ""
	}
	key, _ := item.Keys[0].Token.Value().(string)
	return key
}

func inertKey(key string) string {
	switch strings.ToLower(key) {
	case "identity", "identity_prefix":
		return fmt.Sprintf("%s is read and dropped: remove it", key)
	case "namespace", "namespace_prefix", "partition", "partition_prefix":
		return fmt.Sprintf("%s does nothing in Consul's community edition, and neither does what is inside", key)
	}
	return fmt.Sprintf("%s is ignored: there is no such resource%s", key, didYouMean(key, knownKeys()))
}

// inertInside finds keys of a block that its rule does not have.
func inertInside(item *ast.ObjectItem, key string) []Lint {
	known := []string{"policy"}
	if isKnown(key, []string{"service", "service_prefix"}) {
		known = append(known, "intentions")
	}
	body, ok := item.Val.(*ast.ObjectType)
	if !ok || len(item.Keys) != 2 { // the usual form; others are rare and legal
		return nil
	}
	var found []Lint
	for _, attribute := range body.List.Items {
		name := keyOf(attribute)
		if isKnown(name, known) {
			continue
		}
		message := fmt.Sprintf("%s in %s is ignored%s", name, key, didYouMean(name, known))
		if strings.EqualFold(name, "sentinel") {
			message = fmt.Sprintf("sentinel in %s does nothing in Consul's community edition", key)
		}
		found = append(found, Lint{attribute.Pos().Line, Inert, message})
	}
	return found
}

// letterCase finds levels that the server enforces, but lets lose.
func (p *Policy) letterCase() []Lint {
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
func (p *Policy) shadowed() []Lint {
	var rules []Sourced
	for _, r := range p.Rules {
		rules = append(rules, Sourced{Rule: r})
	}
	t := Merge(rules, Options{Default: Denied})
	var found []Lint
	add := func(r *Rule, format string, args ...any) {
		found = append(found, Lint{r.Line, Shadowed, r.Subject() + " = " + r.Level + " does nothing: " + fmt.Sprintf(format, args...)})
	}
	for _, resource := range Segmented() {
		for _, e := range t.segments[resource].sorted {
			for i, s := range e.rules {
				winner := e.rules[e.level].Rule
				if i != e.level && i != e.intentions {
					add(s.Rule, "%s%s outranks it", atLine(winner.Line), winner.Level)
				}
			}
			if wider := t.segments[resource].wider(e); wider != nil && wider.grants == e.grants && wider.grantsIntentions == e.grantsIntentions {
				add(e.rules[e.level].Rule, "%s%s = %s says the same", atLine(wider.rules[wider.level].Rule.Line), subject(resource, true, wider.segment), wider.grants)
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
func (p *Policy) root() []Lint {
	for _, r := range p.Rules {
		if r.Resource == ACL && r.Level == "write" {
			return []Lint{{r.Line, Root, `acl = "write" is equivalent to root: its holder can make a management token`}}
		}
	}
	return nil
}
