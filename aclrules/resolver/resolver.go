package resolver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/aclrules/policy"
)

// AuthorizationRuleResolver resolves references and subjects to rules.
type AuthorizationRuleResolver interface {
	// ReferenceRules resolves one reference to its rules, or an error and none.
	// Namespace is empty or default: others match ErrEnterprise.
	ReferenceRules(ctx context.Context, ref Reference, namespace string) ([]aclrules.Sourced, error)
	// VisitRulesFor calls visit with each rule of the subject and its source, and
	// with each error met on the way; false ends the visit at once.
	VisitRulesFor(ctx context.Context, subject Subject, visit Visitor)
	// RulesFor returns every rule that can be had, and the errors of the others.
	RulesFor(ctx context.Context, subject Subject) ([]aclrules.Sourced, error)
}

// Visitor gets a rule, or an error, and where it comes from.
type Visitor func(source fmt.Stringer, rule *policy.Rule, err error) (more bool)

// Subject is whose rules are asked for: all that is set counts together.
type Subject struct {
	// Token is read by its accessor, or is the reading token itself when Self.
	Token string
	Self  bool
	// Policies are given as text, PolicyLinks and Roles are read.
	Policies    []Policy
	PolicyLinks []Link
	Roles       []Link
	// Login is what an auth method would grant.
	Login *Login
	// direct is what ReferenceRules asks about.
	direct Grants
}

// Getters read what a Resolver needs.
type Getters struct {
	Policies Policies
	Roles    Roles
	Tokens   Tokens
	Logins   Logins
}

// Options are about where and when.
type Options struct {
	// Datacenter is the answering one: what is for others does not count.
	Datacenter string
	// Now decides what has expired.
	Now time.Time
}

// Resolver resolves by getters. Every policy is read once.
type Resolver struct {
	get     Getters
	options Options
}

var _ AuthorizationRuleResolver = (*Resolver)(nil)

// New makes a resolver.
func New(get Getters, o Options) *Resolver { return &Resolver{get, o} }

// RulesFor implements AuthorizationRuleResolver.
func (r *Resolver) RulesFor(ctx context.Context, s Subject) ([]aclrules.Sourced, error) {
	result := r.Resolve(ctx, s)
	return result.Rules, errors.Join(result.Errors...)
}

// Resolution is all that could be found out about a subject.
type Resolution struct {
	Rules []aclrules.Sourced
	// Errors are about what is missing; Notes about what does not count, on the
	// server either: dangling links, and policies of other datacenters.
	Errors, Notes []error
	// Refused is why the subject has no rights at all; nil otherwise.
	Refused error
}

// Resolve visits a subject and keeps everything. Rules are in the order in which
// the server pools them, by their policies' IDs: where two levels are not in
// lower case, the first counts.
func (r *Resolver) Resolve(ctx context.Context, s Subject) Resolution {
	var found Resolution
	var ids []string
	w := r.walk(ctx)
	w.visit = func(source fmt.Stringer, rule *policy.Rule, err error) bool {
		switch {
		case err == nil:
			at, _ := slices.BinarySearchFunc(ids, w.policyID, func(id, own string) int { return cmp.Or(strings.Compare(id, own), -1) })
			ids = slices.Insert(ids, at, w.policyID)
			found.Rules = slices.Insert(found.Rules, at, aclrules.Sourced{Rule: rule, Source: source})
		case Complete(err):
			found.Notes = append(found.Notes, err)
		default:
			found.Errors = append(found.Errors, err)
		}
		if errors.Is(err, ErrRefused) {
			found.Refused = err
		}
		return true
	}
	w.subject(s)
	return found
}

// VisitRulesFor implements AuthorizationRuleResolver.
func (r *Resolver) VisitRulesFor(ctx context.Context, s Subject, visit Visitor) {
	w := r.walk(ctx)
	w.visit = visit
	w.subject(s)
}

func (r *Resolver) walk(ctx context.Context) *walk {
	return &walk{Resolver: r, ctx: ctx, policies: map[string]bool{}}
}

// subject visits all that is set.
func (w *walk) subject(s Subject) {
	if s.Self || s.Token != "" {
		w.token(s.Token)
	}
	w.grants(nil, s.direct)
	w.grants(nil, Grants{Policies: s.PolicyLinks, Roles: s.Roles})
	for i, p := range s.Policies {
		if p.ID == "" {
			p.ID = fmt.Sprintf("text %d", i)
		}
		w.policy(Source{}.step("policy %q", p.Name), p)
	}
	if s.Login != nil {
		w.login(*s.Login)
	}
	w.identities()
}

// walk is one visit. Identities are gathered first, since those of one name
// count together wherever they come from.
type walk struct {
	*Resolver
	ctx   context.Context
	visit Visitor
	ended bool
	// bound: a role, policy or identity was there, or may be and cannot be read.
	bound bool

	policies map[string]bool // by ID: seen
	// policyID is that of the rules being visited; afterLast for identities,
	// which the server pools last.
	policyID  string
	services  []gathered[ServiceIdentity]
	nodes     []gathered[NodeIdentity]
	templates []gathered[TemplatedPolicy]
}

// gathered is an identity and where it was seen first.
type gathered[T any] struct {
	source   Source
	identity T
}

func (w *walk) fail(source Source, err error) {
	if !w.ended {
		w.ended = !w.visit(source, nil, &sourceError{source, err})
	}
}

// rules visits a policy's rules.
func (w *walk) rules(source Source, p *policy.Policy) {
	for _, rule := range p.Rules {
		if w.ended {
			return
		}
		w.ended = !w.visit(source, rule, nil)
	}
}

func (w *walk) token(accessor string) {
	source := Source{}.step("token %s", short(accessor))
	if accessor == "" {
		source = Source{"own token"}
	}
	t, err := w.get.Tokens.Token(w.ctx, accessor)
	switch {
	case err != nil:
		w.fail(source, err)
		return
	case !t.Expires.IsZero() && !t.Expires.After(w.options.Now):
		w.fail(source, ErrExpired)
		return
	case accessor == "" && t.Accessor != "":
		source = Source{}.step("token %s", short(t.Accessor))
	}
	w.grants(source, t.Grants)
}

// short is an accessor's beginning, enough to find it by.
func short(accessor string) string {
	if len(accessor) > 8 {
		return accessor[:8] + "…"
	}
	return accessor
}

// grants visits direct policies, then roles, and gathers identities.
func (w *walk) grants(source Source, g Grants) {
	for _, l := range g.Policies {
		w.link(source, l)
	}
	w.gather(source, g)
	for _, l := range g.Roles {
		if w.ended {
			return
		}
		at := source.step("role %q", l.label())
		role, err := w.get.Roles.Role(w.ctx, l)
		w.bound = w.bound || !errors.Is(err, ErrDangling)
		if err != nil {
			w.fail(at, err)
			continue
		}
		at = source.step("role %q", role.Name)
		for _, p := range role.Policies {
			w.link(at, p)
		}
		w.gather(at, role.Grants)
	}
}

// link reads a policy and visits its rules, unless that was done before.
func (w *walk) link(source Source, l Link) {
	if w.ended || l.ID != "" && w.policies[l.ID] {
		return
	}
	p, err := w.get.Policies.Policy(w.ctx, l)
	w.bound = w.bound || !errors.Is(err, ErrDangling)
	if err != nil {
		w.policies[l.ID] = true
		w.fail(source.step("policy %q", l.label()), err)
		return
	}
	w.policy(source.step("policy %q", p.Name), p)
}

func (w *walk) policy(source Source, p Policy) {
	if w.ended || w.policies[p.ID] {
		return
	}
	w.policies[p.ID], w.policyID = true, p.ID
	if !w.here(source, p.Datacenters) {
		return
	}
	parsed, err := policy.Parse(p.Rules)
	if err != nil {
		w.fail(source, err)
		return
	}
	w.rules(source, parsed)
}

// here tells whether something with these datacenters counts, and visits why
// not.
func (w *walk) here(source Source, datacenters []string) bool {
	if len(datacenters) == 0 || slices.Contains(datacenters, w.options.Datacenter) {
		return true
	}
	w.fail(source, fmt.Errorf("datacenters %v, answering %s: %w", datacenters, w.options.Datacenter, ErrElsewhere))
	return false
}

// gather keeps identities as the server does: services by name with the union
// of their datacenters, which makes a restriction of one hold for all; nodes by
// name and datacenter; templates by name and variable, the first of them.
func (w *walk) gather(source Source, g Grants) {
	w.bound = w.bound || len(g.ServiceIdentities)+len(g.NodeIdentities)+len(g.TemplatedPolicies) > 0
	for _, id := range g.ServiceIdentities {
		i := slices.IndexFunc(w.services, func(s gathered[ServiceIdentity]) bool { return s.identity.Name == id.Name })
		if i < 0 {
			id.Datacenters = slices.Clone(id.Datacenters)
			w.services = append(w.services, gathered[ServiceIdentity]{source, id})
			continue
		}
		w.services[i].identity.Datacenters = append(w.services[i].identity.Datacenters, id.Datacenters...)
	}
	for _, id := range g.NodeIdentities {
		if !slices.ContainsFunc(w.nodes, func(n gathered[NodeIdentity]) bool { return n.identity == id }) {
			w.nodes = append(w.nodes, gathered[NodeIdentity]{source, id})
		}
	}
	for _, t := range g.TemplatedPolicies {
		same := func(g gathered[TemplatedPolicy]) bool {
			return g.identity.Template == t.Template && g.identity.Name == t.Name
		}
		if !slices.ContainsFunc(w.templates, same) {
			w.templates = append(w.templates, gathered[TemplatedPolicy]{source, t})
		}
	}
}

// afterLast comes after any ID.
const afterLast = "\xff"

// identities visits what was gathered.
func (w *walk) identities() {
	w.policyID = afterLast
	for _, s := range w.services {
		source := s.source.step("service identity %q", s.identity.Name)
		if w.here(source, s.identity.Datacenters) {
			w.rules(source, policy.ServiceIdentity(s.identity.Name))
		}
	}
	for _, n := range w.nodes {
		source := n.source.step("node identity %q", n.identity.Name)
		if w.here(source, []string{n.identity.Datacenter}) {
			w.rules(source, policy.NodeIdentity(n.identity.Name))
		}
	}
	for _, t := range w.templates {
		source := t.source.step("templated policy %q", t.identity.Template)
		if t.identity.Name != "" {
			source = t.source.step("templated policy %q of %q", t.identity.Template, t.identity.Name)
		}
		if !w.here(source, t.identity.Datacenters) {
			continue
		}
		p, err := policy.Template(t.identity.Template, t.identity.Name)
		if err != nil {
			w.fail(source, err)
			continue
		}
		w.rules(source, p)
	}
}
