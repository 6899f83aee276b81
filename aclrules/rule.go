package aclrules

import (
	"fmt"
	"slices"
	"strings"
)

// Resource is what a rule or a query is about.
type Resource string

// The resources of queries. A rule may name all but Intention, which service
// rules speak of.
const (
	ACL           Resource = "acl"
	Agent         Resource = "agent"
	Event         Resource = "event"
	Intention     Resource = "intention"
	Key           Resource = "key"
	Keyring       Resource = "keyring"
	Mesh          Resource = "mesh"
	Node          Resource = "node"
	Operator      Resource = "operator"
	Peering       Resource = "peering"
	PreparedQuery Resource = "query"
	Service       Resource = "service"
	Session       Resource = "session"
)

// Scalars returns the resources without segments, in the order of the language's reference.
func Scalars() []Resource { return []Resource{ACL, Keyring, Operator, Mesh, Peering} }

// Segmented returns the resources whose rules name a segment, exactly or by prefix.
func Segmented() []Resource {
	return []Resource{Agent, Event, Key, Node, PreparedQuery, Service, Session}
}

// IsScalar reports whether the resource has no segments.
func (r Resource) IsScalar() bool {
	switch r {
	case ACL, Keyring, Operator, Mesh, Peering:
		return true
	}
	return false
}

// Level is what a rule grants.
type Level uint8

// Levels in ascending order; NoLevel is the absence of a rule. List exists for
// keys only.
const (
	NoLevel Level = iota
	LevelDeny
	LevelRead
	LevelList
	LevelWrite
)

// String returns the level as the language writes it, empty for NoLevel.
func (l Level) String() string {
	return [...]string{"", "deny", "read", "list", "write"}[l]
}

// LevelOf reads a level as the server enforces it: letter case does not count.
func LevelOf(text string) (Level, bool) {
	for l := LevelDeny; l <= LevelWrite; l++ {
		if strings.EqualFold(text, l.String()) {
			return l, true
		}
	}
	return NoLevel, false
}

// rank returns a written level's weight when rules for one thing meet: deny beats write beats list beats
// read, and what is not in lower case, or absent, beats nothing.
func rank(text string) int {
	return 1 + slices.Index([]string{"read", "list", "write", "deny"}, text)
}

// Rule is one rule of a policy. Rules are shared and never changed.
type Rule struct {
	Resource Resource
	// Prefix is true for node_prefix, false for node.
	Prefix bool
	// Segment is the name or prefix; empty for a scalar resource.
	Segment string
	// Level is as written: the server enforces it in any letter case, but lets
	// only lower case win over another rule.
	Level string
	// Intentions is a service rule's level for intentions as written, empty when
	// absent.
	Intentions string
	// Line is where the rule begins in the policy's text, from 1; 0 when unknown,
	// as in JSON.
	Line int
	// Overridden is the rule about the same scalar before this one in the policy, which
	// would count without it; nil for none.
	Overridden *Rule
}

// Subject returns the rule without its level, as the language writes it: `service_prefix "web"`, `operator`.
func (r *Rule) Subject() string { return SubjectText(r.Resource, r.Prefix, r.Segment) }

// SubjectText returns what a rule is about, as the language writes it.
func SubjectText(r Resource, prefix bool, segment string) string {
	switch {
	case r.IsScalar():
		return string(r)
	case prefix:
		return fmt.Sprintf("%s_prefix %q", r, segment)
	}
	return fmt.Sprintf("%s %q", r, segment)
}

// hint guesses what a mistyped name was meant to be, for the end of a message: the known
// name from which it differs in one place, by the fewest letters, at most two. It is empty
// when there is none. Letter case does not count. config.Nearest, which allows for more
// mistakes, is not used: this package imports no other.
func hint(name string, known []string) string {
	guess, fewest := "", 3
	for _, k := range known {
		a, b := strings.ToLower(name), k
		for a != "" && b != "" && a[0] == b[0] {
			a, b = a[1:], b[1:]
		}
		for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
			a, b = a[:len(a)-1], b[:len(b)-1]
		}
		if n := max(len(a), len(b)); n < fewest && n < len(name) {
			guess, fewest = k, n
		}
	}
	if guess == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", guess)
}

// withoutIntentions returns a copy that states nothing of intentions.
func (r *Rule) withoutIntentions() *Rule {
	rest := *r
	rest.Intentions = ""
	return &rest
}

// HCL returns the rule as a line of a policy.
func (r *Rule) HCL() string {
	switch {
	case r.Resource.IsScalar():
		return fmt.Sprintf("%s = %q", r.Resource, r.Level)
	case r.Intentions != "":
		return fmt.Sprintf("%s { policy = %q intentions = %q }", r.Subject(), r.Level, r.Intentions)
	}
	return fmt.Sprintf("%s { policy = %q }", r.Subject(), r.Level)
}
