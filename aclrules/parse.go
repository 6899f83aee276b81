package aclrules

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl"
	"github.com/hashicorp/hcl/hcl/ast"
)

// maxPolicy is the longest policy that Parse reads, in bytes. Consul's own limit
// is that of a Raft entry, about the same.
const maxPolicy = 1 << 20

// maxDepth bounds the nesting of brackets: the language needs three.
const maxDepth = 64

// document is the language as the HCL library decodes it: its folding of letter
// case, its last-one-wins and its many ways to write one rule are part of what
// the server understands. Keys that are not here are ignored, as Consul does.
type document struct {
	ACL      string `hcl:"acl,expand"`
	Keyring  string `hcl:"keyring"`
	Operator string `hcl:"operator"`
	Mesh     string `hcl:"mesh"`
	Peering  string `hcl:"peering"`

	Agents          []*block        `hcl:"agent,expand"`
	AgentPrefixes   []*block        `hcl:"agent_prefix,expand"`
	Events          []*block        `hcl:"event,expand"`
	EventPrefixes   []*block        `hcl:"event_prefix,expand"`
	Keys            []*block        `hcl:"key,expand"`
	KeyPrefixes     []*block        `hcl:"key_prefix,expand"`
	Nodes           []*block        `hcl:"node,expand"`
	NodePrefixes    []*block        `hcl:"node_prefix,expand"`
	Queries         []*block        `hcl:"query,expand"`
	QueryPrefixes   []*block        `hcl:"query_prefix,expand"`
	Services        []*serviceBlock `hcl:"service,expand"`
	ServicePrefixes []*serviceBlock `hcl:"service_prefix,expand"`
	Sessions        []*block        `hcl:"session,expand"`
	SessionPrefixes []*block        `hcl:"session_prefix,expand"`

	// Read and dropped by the server; one that cannot be read is refused.
	Identities       []*serviceBlock `hcl:"identity,expand"`
	IdentityPrefixes []*serviceBlock `hcl:"identity_prefix,expand"`
}

type block struct {
	Segment string `hcl:",key"`
	Policy  string `hcl:"policy"`
}

type serviceBlock struct {
	Segment    string `hcl:",key"`
	Policy     string `hcl:"policy"`
	Intentions string `hcl:"intentions"`
}

// Parse reads a policy in HCL or JSON: its rules are in the order of the text, by kind. The
// error names every rule that the server would refuse; an empty text is a policy without rules.
func Parse(text string) ([]*Rule, error) {
	if text == "" {
		return nil, nil
	}
	file, doc, err := decode(text)
	if err != nil {
		return nil, err
	}
	at := linesOf(file)
	var rules []*Rule
	for _, s := range doc.scalars() {
		if s.level != "" {
			rules = append(rules, &Rule{Resource: s.resource, Level: s.level,
				Line: last(at[keyPosition{string(s.resource), 1}]), Overridden: overridden(file, s.resource)})
		}
	}
	for _, l := range doc.lists() {
		lines := at[keyPosition{l.key(), 2}]
		for i, b := range l.blocks {
			rules = append(rules, &Rule{Resource: l.resource, Prefix: l.prefix, Segment: b.Segment, Level: b.Policy,
				Line: nth(lines, i, len(l.blocks))})
		}
	}
	for _, l := range doc.serviceLists() {
		lines := at[keyPosition{l.key(), 2}]
		for i, b := range l.blocks {
			rules = append(rules, &Rule{Resource: Service, Prefix: l.prefix, Segment: b.Segment, Level: b.Policy,
				Intentions: b.Intentions, Line: nth(lines, i, len(l.blocks))})
		}
	}
	var refused []*ruleError
	for _, r := range rules {
		if err := r.check(); err != nil {
			refused = append(refused, err)
		}
	}
	slices.SortStableFunc(refused, func(a, b *ruleError) int { return cmp.Compare(a.line, b.line) })
	var errs []error
	for _, err := range refused {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return rules, nil
}

// ruleError is what the server would refuse a rule for. The line is 0 when unknown.
type ruleError struct {
	line int
	text string
}

func (e *ruleError) Error() string { return lineText(e.line) + e.text }

// check returns what the server would refuse a rule for.
func (r *Rule) check() *ruleError {
	refuse := func(what, level string, allowed string) *ruleError {
		return &ruleError{r.Line, fmt.Sprintf("%s: %s %q: want %s", r.Subject(), what, level, allowed)}
	}
	l, ok := LevelOf(r.Level)
	switch {
	case r.Resource == Key && !ok:
		return refuse("policy", r.Level, "deny, read, list or write")
	case r.Resource != Key && (!ok || l == LevelList):
		return refuse("policy", r.Level, "deny, read or write")
	}
	if r.Intentions == "" {
		return nil
	}
	if l, ok := LevelOf(r.Intentions); !ok || l == LevelList {
		return refuse("intentions", r.Intentions, "deny, read or write")
	}
	return nil
}

func lineText(line int) string {
	if line == 0 {
		return ""
	}
	return fmt.Sprintf("line %d: ", line)
}

// decode decodes the text twice: into a syntax tree, and into a document. The
// library panics on some texts that are no policies; those are errors, too.
func decode(text string) (file *ast.File, doc *document, err error) {
	if len(text) > maxPolicy {
		return nil, nil, fmt.Errorf("the text has %d bytes: want at most %d", len(text), maxPolicy)
	}
	if depth(text) > maxDepth {
		return nil, nil, fmt.Errorf("brackets are nested more than %d deep", maxDepth)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("neither HCL nor JSON: %v", p)
		}
	}()
	if file, err = hcl.Parse(text); err != nil {
		return nil, nil, fmt.Errorf("neither HCL nor JSON: %w", err)
	}
	doc = &document{}
	if err := hcl.DecodeObject(doc, file); err != nil {
		return nil, nil, fmt.Errorf("not a policy: %w", err)
	}
	return file, doc, nil
}

// depth returns how deep brackets are nested, those in strings and comments included: a policy needs few
// there too.
func depth(text string) int {
	deepest, now := 0, 0
	for _, c := range text {
		switch c {
		case '{', '[':
			now++
			deepest = max(deepest, now)
		case '}', ']':
			now = max(0, now-1)
		}
	}
	return deepest
}

// keyPosition identifies an item of a text by its first key, in lower case, and how
// many keys it has, which are two in `service "web" {`.
type keyPosition struct {
	key  string
	keys int
}

// linesOf returns where the items of a text begin. The decoder keeps no positions, and JSON has none.
func linesOf(file *ast.File) map[keyPosition][]int {
	list, ok := file.Node.(*ast.ObjectList)
	if !ok {
		return nil
	}
	at := map[keyPosition][]int{}
	for _, item := range list.Items {
		p := keyPosition{strings.ToLower(keyOf(item)), len(item.Keys)}
		at[p] = append(at[p], item.Pos().Line)
	}
	return at
}

// overridden returns the last but one rule about a scalar; the decoder returns only the last.
func overridden(file *ast.File, of Resource) *Rule {
	list, _ := file.Node.(*ast.ObjectList)
	var before, rule *Rule
	for _, item := range list.Items {
		if value, is := item.Val.(*ast.LiteralType); is && strings.EqualFold(keyOf(item), string(of)) {
			level, _ := value.Token.Value().(string)
			before, rule = rule, &Rule{Resource: of, Level: level, Line: item.Pos().Line, Overridden: rule}
		}
	}
	return before
}

func last(lines []int) int { return nth(lines, len(lines)-1, len(lines)) }

// nth returns the line of the i-th rule, or 0 if there are not as many lines as
// rules, as when the text has them in another form.
func nth(lines []int, i, rules int) int {
	if len(lines) != rules || i < 0 {
		return 0
	}
	return lines[i]
}

type scalar struct {
	resource Resource
	level    string
}

func (d *document) scalars() []scalar {
	return []scalar{
		{ACL, d.ACL},
		{Keyring, d.Keyring},
		{Operator, d.Operator},
		{Mesh, d.Mesh},
		{Peering, d.Peering},
	}
}

type list[B any] struct {
	resource Resource
	prefix   bool
	blocks   []B
}

// key returns the key of the resource in a policy.
func (l list[B]) key() string {
	if l.prefix {
		return string(l.resource) + "_prefix"
	}
	return string(l.resource)
}

func (d *document) lists() []list[*block] {
	return []list[*block]{
		{Agent, false, d.Agents}, {Agent, true, d.AgentPrefixes},
		{Event, false, d.Events}, {Event, true, d.EventPrefixes},
		{Key, false, d.Keys}, {Key, true, d.KeyPrefixes},
		{Node, false, d.Nodes}, {Node, true, d.NodePrefixes},
		{PreparedQuery, false, d.Queries}, {PreparedQuery, true, d.QueryPrefixes},
		{Session, false, d.Sessions}, {Session, true, d.SessionPrefixes},
	}
}

func (d *document) serviceLists() []list[*serviceBlock] {
	return []list[*serviceBlock]{{Service, false, d.Services}, {Service, true, d.ServicePrefixes}}
}

// knownKeys returns the language's keys, in lower case.
func knownKeys() []string {
	var keys []string
	for _, r := range Scalars() {
		keys = append(keys, string(r))
	}
	for _, r := range Segmented() {
		keys = append(keys, string(r), string(r)+"_prefix")
	}
	return keys
}

func isKnown(key string, known []string) bool {
	return slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, key) })
}
