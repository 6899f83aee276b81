package aclrules

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Finding is something that does not do, or does more, than its author will
// think. Line is in the object's text, from 1; 0 when it has none.
type Finding struct {
	Object  string `json:"object"`
	Line    int    `json:"line,omitempty"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Codes of findings in other objects.
const (
	Selector = "selector" // a part of a selector that never matches
	Dangling = "dangling" // a binding rule for something that does not exist
	Variable = "variable" // a binding rule for a policy or role that the login names
)

// String returns a finding as compilers write theirs.
func (f Finding) String() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s: %s: %s", f.Object, f.Code, f.Message)
	}
	return fmt.Sprintf("%s:%d: %s: %s", f.Object, f.Line, f.Code, f.Message)
}

// Lint lints all there is but Consul's own policies.
func (s *Snapshot) Lint() []Finding {
	var found []Finding
	for _, p := range s.Policies {
		if builtin(p.ID) == nil {
			found = append(found, LintText("policy "+p.Name, p.Rules)...)
		}
	}
	for _, r := range s.Roles {
		found = append(found, s.lintTemplates("role "+r.Name, r.Grants)...)
	}
	for _, t := range s.Tokens {
		found = append(found, s.lintTemplates("token "+t.Accessor, t.Grants)...)
	}
	for _, m := range s.AuthMethods {
		for _, b := range s.Bindings[m.Name] {
			found = append(found, s.lintBinding(m, b)...)
		}
	}
	return found
}

// lintTemplates finds templated policies that are more than they seem: they
// have no text in which it would be visible.
func (s *Snapshot) lintTemplates(object string, g Grants) []Finding {
	var found []Finding
	for _, t := range g.TemplatedPolicies {
		if text := s.escalation(Grants{TemplatedPolicies: []TemplatedPolicy{t}}); text != "" {
			found = append(found, Finding{Object: object, Code: root,
				Message: fmt.Sprintf("templated policy %q is %s", t.Template, text)})
		}
	}
	return found
}

func (s *Snapshot) lintBinding(m AuthMethod, b BindingRule) []Finding {
	var found []Finding
	add := func(code, format string, args ...any) {
		found = append(found, Finding{Object: fmt.Sprintf("binding rule %s of %s", b.ID, m.Name), Code: code,
			Message: fmt.Sprintf(format, args...)})
	}
	if err := m.checkSelector(b.Selector); err != nil {
		add(Selector, "%q: %v", b.Selector, err)
	}
	who := "a login that matches gets"
	if b.Selector == "" {
		who = "every login gets"
	}
	kind := strings.ReplaceAll(b.BindType, "-", " ")
	if strings.Contains(b.BindName, "${") {
		if name, text := s.reachable(b); text != "" {
			add(root, "%s the %s that it names itself by %q, which may be %q and is %s", who, kind, b.BindName, name,
				text)
		} else if b.BindType == "policy" || b.BindType == "role" {
			add(Variable, "%s the %s that it names itself by %q, also one that is made later", who, kind, b.BindName)
		}
		return found
	}
	granted := Grants{}
	switch b.BindType {
	case "policy":
		granted.Policies = []Link{{Name: b.BindName}}
		if _, err := s.policy(granted.Policies[0]); errors.Is(err, ErrDangling) {
			add(Dangling, "policy %q does not exist: no login gets it", b.BindName)
		}
	case "role":
		role, err := s.role(Link{Name: b.BindName})
		if err != nil {
			add(Dangling, "role %q does not exist: no login gets it", b.BindName)
		}
		granted = role.Grants
	case "templated-policy":
		granted.TemplatedPolicies = []TemplatedPolicy{{Template: b.BindName, Name: "name"}}
	}
	if text := s.escalation(granted); text != "" {
		add(root, "%s %s %q, which is %s", who, kind, b.BindName, text)
	}
	return found
}

// reachable returns the policy or role of most rights beyond its text that a login may name by a
// binding rule, and what these are equivalent to; empty for none.
func (s *Snapshot) reachable(b BindingRule) (name, text string) {
	candidates := map[string]Grants{}
	switch b.BindType {
	case "policy":
		for _, p := range s.Policies {
			candidates[p.Name] = Grants{Policies: []Link{{Name: p.Name}}}
		}
	case "role":
		for _, r := range s.Roles {
			candidates[r.Name] = r.Grants
		}
	}
	pattern, most := readBindName(b.BindName), Escalation(Rule{Resource: ACL, Level: LevelWrite.String()})
	for _, candidate := range slices.Sorted(maps.Keys(candidates)) {
		of := s.escalation(candidates[candidate])
		if of != "" && (text == "" || of == most && text != most) && pattern.reaches(candidate, b.Selector) {
			name, text = candidate, of
		}
	}
	return name, text
}

// escalation returns what grants are equivalent to beyond their text; empty for nothing.
func (s *Snapshot) escalation(g Grants) string {
	var rules []*Rule
	for _, l := range g.Policies {
		if p, err := s.policy(l); err == nil {
			of, _ := Parse(p.Rules) // what is no policy is another finding
			rules = slices.Concat(rules, of, builtin(p.ID))
		}
	}
	for _, t := range g.TemplatedPolicies {
		of, _ := Template(t.Template, t.Name)
		if text, ok := s.Templates[t.Template]; ok {
			of, _ = Render(text, t.Name)
		}
		rules = append(rules, of...)
	}
	if worst := worst(rules); worst != nil {
		return Escalation(*worst)
	}
	return ""
}
