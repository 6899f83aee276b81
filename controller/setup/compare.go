package setup

import (
	"cmp"
	"slices"
	"strings"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/aclrules"
)

// Observed is what Consul has of a State. A missing key was not read, and its
// object is left alone; a nil value does not exist.
type Observed struct {
	// NoPartition means that the partition does not exist yet, and so nothing in it.
	NoPartition bool
	Policies    map[string]*api.ACLPolicy
	Roles       map[string]*api.ACLRole
	Methods     map[string]*api.ACLAuthMethod
	// Rules are the binding rules by auth method, the records of all controllers among
	// them: no method is touched without.
	Rules map[string][]*api.ACLBindingRule
	// Unrenewed are, by auth method, whose tokens are not replaced before they expire; read only
	// to decide whether tokens may begin to.
	Unrenewed map[string][]string
	// Anonymous is the anonymous token; nil was not read.
	Anonymous *api.ACLToken
	Nodes     map[string]*api.Node
	// Namespaces are those of the partition. Only EnsureNamespaces reads them.
	Namespaces []*api.Namespace
}

// Write is one write. Value is what to write: *api.ACLPolicy, *api.ACLRole,
// *api.ACLAuthMethod, *api.ACLBindingRule, *api.ACLToken, *api.Partition,
// *api.Namespace or *api.CatalogRegistration.
type Write struct {
	Object
	Value any
	Scope Scope
	// Create distinguishes creating from correcting; Changed are the corrected fields.
	Create  bool
	Changed []string
	// Needs must exist, and must have been written if they are in the plan.
	Needs []Object
}

// Plan is the writes to make, in this order.
type Plan struct {
	Writes []Write
	// Notices are for the log.
	Notices []notice
	// Refused are objects that only an operator can correct, with the reason.
	Refused failures
}

// compare plans the writes that turn what was found into what is wanted. It
// plans nothing where nothing differs.
func (s State) compare(f Observed) Plan {
	p := Plan{Refused: failures{}}
	var all []Object
	if s.Partition != "" {
		o := Object{kindPartition, s.Partition}
		all = []Object{o}
		if f.NoPartition {
			p.Writes = append(p.Writes, Write{Object: o, Create: true,
				Value: &api.Partition{Name: s.Partition,
					Description: "Created by consul-ecs for the tasks of an ECS cluster"}})
		}
	}
	for _, want := range s.Policies {
		p.policy(want, f, all)
	}
	for _, want := range s.Roles {
		p.role(want, f, all)
	}
	var records []Write
	for _, want := range s.Methods {
		records = append(records, s.method(&p, want, f, all)...)
	}
	for _, want := range s.Rules {
		p.rule(want, f, all)
	}
	p.Writes = append(p.Writes, records...)
	granted := f.Anonymous != nil && slices.ContainsFunc(f.Anonymous.Policies, named(anonymousPolicy))
	switch {
	case s.Anonymous != nil:
		p.policy(*s.Anonymous, f, nil)
		p.anonymous(*s.Anonymous, f)
	case granted:
		p.Notices = append(p.Notices, notice{Text: noticeAnonymous})
	}
	if s.Node != nil {
		p.node(*s.Node, f, all)
	}
	return p
}

func (p *Plan) policy(want Policy, f Observed, needs []Object) {
	found, read := f.Policies[want.Name]
	w := Write{Object: Object{kindPolicy, want.Name}, Scope: want.Scope, Needs: needs}
	switch {
	case !read:
		return
	case found == nil:
		w.Create, w.Value = true, &api.ACLPolicy{Name: want.Name, Description: want.Description, Rules: want.Rules}
	case sameRules(want.Rules, found.Rules):
		return
	case want.Shared:
		p.Notices = append(p.Notices, notice{Text: noticeForeign, Other: want.Name})
		return
	default:
		fixed := *found
		fixed.Rules = want.Rules
		w.Value, w.Changed = &fixed, []string{"Rules"}
	}
	p.Writes = append(p.Writes, w)
}

// sameRules compares two policies by what the server makes of them. Where one
// has keys that we do not read (Enterprise's partitions and namespaces among
// them), the texts must agree but for spaces.
func sameRules(a, b string) bool {
	if strings.Join(strings.Fields(a), " ") == strings.Join(strings.Fields(b), " ") {
		return true
	}
	first, ok := readRulesOf(a)
	second, ok2 := readRulesOf(b)
	return ok && ok2 && slices.Equal(first, second)
}

// readRulesOf returns the rules of a text, sorted, and reports whether that is all of it.
func readRulesOf(text string) ([]aclrules.Rule, bool) {
	parsed, err := aclrules.Parse(text)
	if err != nil {
		return nil, false
	}
	if unread, err := aclrules.UnknownKeys(text); err != nil || len(unread) > 0 {
		return nil, false
	}
	rules := make([]aclrules.Rule, 0, len(parsed))
	for _, r := range parsed {
		rule := *r
		rule.Line = 0
		rules = append(rules, rule)
	}
	slices.SortFunc(rules, func(a, b aclrules.Rule) int { return strings.Compare(a.HCL(), b.HCL()) })
	return rules, true
}

func (p *Plan) role(want Role, f Observed, needs []Object) {
	found, read := f.Roles[want.Name]
	if !read {
		return
	}
	w := Write{Object: Object{kindRole, want.Name}, Scope: want.Scope, Needs: slices.Clone(needs)}
	fixed := api.ACLRole{Name: want.Name, Description: want.Description}
	if found != nil {
		fixed = *found
	}
	fixed.Policies = slices.Clone(fixed.Policies)
	for _, name := range want.Policies {
		w.Needs = append(w.Needs, Object{kindPolicy, name})
		if !slices.ContainsFunc(fixed.Policies, named(name)) {
			fixed.Policies = append(fixed.Policies, &api.ACLLink{Name: name})
			w.Changed = []string{"Policies"}
		}
	}
	if found == nil {
		w.Create, w.Changed = true, nil
	}
	if w.Create || len(w.Changed) > 0 {
		w.Value = &fixed
		p.Writes = append(p.Writes, w)
	}
}

func named(name string) func(*api.ACLLink) bool {
	return func(l *api.ACLLink) bool { return aclrules.SameName(l.Name, name) }
}

func (p *Plan) rule(want BindingRule, f Observed, needs []Object) {
	found, read := f.Rules[want.Method]
	if method := (Object{kindMethod, want.Method}); !read || f.Methods[want.Method] == nil && !p.writes(method) {
		return
	}
	w := Write{Object: want.Object(), Scope: want.Scope,
		Needs: append(slices.Clone(needs), Object{kindMethod, want.Method})}
	if want.BindType == api.BindingRuleBindTypeRole {
		w.Needs = append(w.Needs, Object{kindRole, want.BindName})
	}
	if slices.ContainsFunc(found, want.met) {
		return
	}
	own := slices.IndexFunc(found, func(r *api.ACLBindingRule) bool { return r.Description == want.Description })
	if own < 0 {
		w.Create = true
		w.Value = &api.ACLBindingRule{
			AuthMethod: want.Method, Description: want.Description,
			BindType: want.BindType, BindName: want.BindName, Selector: want.Selector,
		}
	} else {
		fixed := *found[own]
		w.Changed = want.correct(&fixed)
		w.Value = &fixed
	}
	p.Writes = append(p.Writes, w)
}

// writes reports whether the plan has a write of an object.
func (p *Plan) writes(o Object) bool {
	return slices.ContainsFunc(p.Writes, func(w Write) bool { return w.Object == o })
}

// met reports whether a rule binds what is wanted; any client may have created it.
func (b BindingRule) met(r *api.ACLBindingRule) bool {
	sameName := r.BindName == b.BindName ||
		b.BindType == api.BindingRuleBindTypeRole && aclrules.SameName(r.BindName, b.BindName)
	return r.BindType == b.BindType && sameName && (b.Selector == "" || r.Selector == b.Selector)
}

// correct sets our fields of a rule.
func (b BindingRule) correct(r *api.ACLBindingRule) (changed []string) {
	if r.BindType != b.BindType {
		r.BindType, r.BindVars = b.BindType, nil
		changed = append(changed, "BindType")
	}
	if r.BindName != b.BindName {
		r.BindName = b.BindName
		changed = append(changed, "BindName")
	}
	if b.Selector != "" && r.Selector != b.Selector {
		r.Selector = b.Selector
		changed = append(changed, "Selector")
	}
	return changed
}

func (p *Plan) anonymous(want Policy, f Observed) {
	if f.Anonymous == nil || slices.ContainsFunc(f.Anonymous.Policies, named(want.Name)) {
		return
	}
	fixed := *f.Anonymous
	fixed.Policies = append(slices.Clone(fixed.Policies), &api.ACLLink{Name: want.Name})
	p.Writes = append(p.Writes, Write{
		Object: Object{kindToken, cmp.Or(fixed.AccessorID, anonymousToken)}, Scope: want.Scope,
		Value: &fixed, Changed: []string{"Policies"}, Needs: []Object{{kindPolicy, want.Name}},
	})
}
