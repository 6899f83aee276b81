package taskdef

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Severity is what ECS does about a violation.
type Severity string

// Severities of a rule.
const (
	// Error means that registration refuses the definition.
	Error Severity = "error"
	// Warn means that registration accepts it, but its tasks do not work as
	// written.
	Warn Severity = "warning"
)

// Wording is how much of a rule's text is known to be AWS's.
type Wording string

// Wordings of a rule.
const (
	// Exact is AWS's text, word for word.
	Exact Wording = "exact"
	// Partial is AWS's text as far as it is known.
	Partial Wording = "in part"
	// Ours is a rule that AWS documents without its text.
	Ours Wording = "ours"
)

// Rule is one row of the rule table. Text and Fix have placeholders such as
// {container} for what differs from one violation to the next.
type Rule struct {
	// Code names the rule, such as "depends-on-cycle"; stable.
	Code     string
	Severity Severity
	// Scope is which definitions the rule is about.
	Scope Scope
	// Members are all that the rule reads, as paths in the definition; one that
	// begins with a dot is of the same container. When one of them is unknown, the
	// rule is not applied.
	Members []string
	// Text is what AWS answers, see Wording.
	Text    string
	Wording Wording
	// Fix is what to do about it.
	Fix string

	members [][]string // Members in segments, with "" first for one of the container
	task    func(d *subject, report report)
	each    func(d *subject, c *Container, report report)
}

// Scope limits a rule to some definitions; the empty one does not.
type Scope string

// Scopes of a rule.
const (
	OnAWSVPC  Scope = "awsvpc"
	OnFargate Scope = "Fargate"
)

// report takes the place that breaks a rule, inside the container when the rule is
// about one, and the values of the placeholders in the order in which they
// first occur in Text and Fix. {container} has its value already.
type report func(path string, values ...any)

// Violation is one broken rule at one place.
type Violation struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	// Path is where, such as $.containerDefinitions[1].dependsOn[0].
	Path string `json:"path"`
	// Message is AWS's text where it is known.
	Message string `json:"message"`
	// Fix is what to do about it; empty for a value of the wrong type.
	Fix string `json:"fix,omitempty"`
}

// String returns "message (path: fix; code)", AWS's words first, on one line.
func (v Violation) String() string {
	if v.Fix == "" {
		return OneLine(fmt.Sprintf("%s: %s (%s)", v.Path, v.Message, v.Code))
	}
	return OneLine(fmt.Sprintf("%s (%s: %s; %s)", v.Message, v.Path, v.Fix, v.Code))
}

// CodeType is the code of a value of the wrong type; Parse reports it.
const CodeType = "type"

// Rules returns every rule of RegisterTaskDefinition.
func Rules() []Rule { return slices.Clone(allRules()) }

var allRules = sync.OnceValue(func() []Rule {
	rules := slices.Concat(memberRules, taskRules, proxyRules, volumeRules, containerRules, environmentRules,
		healthRules,
		logRules, dependencyRules, portRules, awsvpcRules, fargateRules, fargateSettingRules)
	for i := range rules {
		r := &rules[i]
		if r.Severity == "" {
			r.Severity = Error
		}
		if r.Wording == "" {
			r.Wording = Exact
		}
		switch r.Scope {
		case OnFargate:
			r.Members = append(slices.Clip(r.Members), "requiresCompatibilities[*]")
		case OnAWSVPC:
			r.Members = append(slices.Clip(r.Members), "networkMode")
		}
		for _, member := range r.Members {
			words := segments(member)
			if strings.HasPrefix(member, ".") {
				words = append([]string{""}, words...)
			}
			r.members = append(r.members, words)
		}
	}
	return rules
})

// subject is what rules look at: the definition with its defaults, and what
// these hide.
type subject struct {
	*TaskDefinition
	// size is the length of the definition without blanks, in bytes; 0 without a
	// document.
	size int
	// written has texts of the document that defaults hide, by their paths: blank
	// ones, and protocols; nil without a document.
	written map[string]string
	// unknown has the paths of values that are known at deployment only.
	unknown []string
	// faults are members that the limits of their fields do not allow.
	faults []fault
}

// fault is a member of the document that breaks a rule about the limits of fields.
type fault struct {
	code, path string
	// values are those of the rule's placeholders.
	values []any
}

// blank reports whether a member is given as "".
func (d *subject) blank(path string) bool {
	text, given := d.written[path]
	return given && text == ""
}

// inScope reports whether a rule is about this definition.
func (d *subject) inScope(s Scope) bool {
	switch s {
	case OnFargate:
		return d.IsFargate()
	case OnAWSVPC:
		return d.NetworkMode == "awsvpc"
	default:
		return true
	}
}

// Validate returns the violations of a definition that does not come from a document, with its defaults
// filled in. Rules about how it is written do not apply.
func (d *TaskDefinition) Validate() []Violation { return (&subject{TaskDefinition: d}).validate() }

// validate applies every rule.
func (d *subject) validate() []Violation {
	var found []Violation
	var unknown [][]string
	for _, path := range d.unknown {
		unknown = append(unknown, segments(path))
	}
	own, words := make([]string, len(d.ContainerDefinitions)), make([][]string, len(d.ContainerDefinitions))
	for i := range own {
		own[i] = "containerDefinitions[" + strconv.Itoa(i) + "]"
		words[i] = segments(own[i])
	}
	rules := allRules()
	for r := range rules {
		rule := &rules[r]
		if !d.inScope(rule.Scope) {
			continue
		}
		if rule.task != nil && !depends(rule.members, unknown, nil) {
			rule.task(d, func(path string, values ...any) {
				found = append(found, rule.violation("$."+path, nil, values))
			})
		}
		if rule.each == nil {
			continue
		}
		var c *Container
		var at string
		report := func(path string, values ...any) {
			found = append(found, rule.violation("$."+at+path, map[string]string{"container": c.Name}, values))
		}
		for i := range d.ContainerDefinitions {
			if !depends(rule.members, unknown, words[i]) {
				c, at = &d.ContainerDefinitions[i], own[i]
				rule.each(d, c, report)
			}
		}
	}
	return found
}

// depends reports whether a rule reads an unknown value: a member itself or
// something that it is part of.
func depends(members, unknown [][]string, container []string) bool {
	for _, got := range unknown {
		for _, want := range members {
			if within(got, want, container) {
				return true
			}
		}
	}
	return false
}

// within reports whether a member of a rule is an unknown value or a part of one.
func within(unknown, member, container []string) bool {
	if member[0] == "" { // of the container
		member = member[1:]
	} else {
		container = nil
	}
	if len(unknown) > len(container)+len(member) {
		return false
	}
	for i, got := range unknown {
		want := ""
		if i < len(container) {
			want = container[i]
		} else {
			want = member[i-len(container)]
		}
		if want != got && (want != "*]" || !strings.HasSuffix(got, "]")) {
			return false
		}
	}
	return true
}

// segments splits a path before every dot and bracket.
func segments(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' })
}

func (r *Rule) violation(path string, known map[string]string, values []any) Violation {
	fill := newFiller(r.Text+r.Fix, known, values)
	return Violation{Code: r.Code, Severity: r.Severity, Path: strings.TrimSuffix(path, "."),
		Message: fill.Replace(r.Text), Fix: fill.Replace(r.Fix)}
}

// newFiller replaces the placeholders of a text: those that are known, and the
// others by the values in turn.
func newFiller(text string, known map[string]string, values []any) *strings.Replacer {
	var pairs []string
	done := map[string]bool{}
	for {
		_, rest, found := strings.Cut(text, "{")
		name, rest, closed := strings.Cut(rest, "}")
		if !found || !closed {
			return strings.NewReplacer(pairs...)
		}
		text = rest
		if done[name] {
			continue
		}
		done[name] = true
		value, ok := known[name]
		if !ok && len(values) > 0 {
			value, values = fmt.Sprint(values[0]), values[1:]
		}
		pairs = append(pairs, "{"+name+"}", value)
	}
}

// IsFargate reports whether the rules of Fargate apply: FARGATE is among
// requiresCompatibilities.
func (d *TaskDefinition) IsFargate() bool {
	return slices.Contains(d.RequiresCompatibilities, "FARGATE")
}

// Container returns the container of that name, or nil.
func (d *TaskDefinition) Container(name string) *Container {
	for i := range d.ContainerDefinitions {
		if d.ContainerDefinitions[i].Name == name {
			return &d.ContainerDefinitions[i]
		}
	}
	return nil
}

func isTrue(p *bool) bool { return p != nil && *p }

// outside reports whether a value is set and not in low..high.
func outside(p *int, low, high int) bool { return p != nil && (*p < low || *p > high) }

// oneOf reports a value that an enumeration does not have; absent is allowed.
func oneOf(report report, path, value string, allowed ...string) {
	if value != "" && !slices.Contains(allowed, value) {
		report(path, value, strings.Join(allowed, ", "))
	}
}

// Words that rules share.
const (
	enumText   = "'{value}' is not one of [{allowed}]."
	enumFix    = "write one of {allowed}"
	nameFormat = "letters, digits, '_' and '-'"
)

// ValidName reports whether ECS takes a name of a family, a container, a volume, a
// cluster or a service: 1 to 255 letters, digits, '_' or '-'.
func ValidName(s string) bool { return s != "" && len(s) <= maxName && validCharacters(s) }

const maxName = 255

func validCharacters(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !isNameCharacter(r) })
}

func isNameCharacter(r rune) bool {
	return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}
