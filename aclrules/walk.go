package aclrules

import (
	"context"
	"errors"
	"fmt"
)

func (r Resolver) walk(visit visitor) *walk {
	return &walk{Resolver: r, visit: visit, policies: map[string]bool{}}
}

// subject visits all that is set.
func (w *walk) subject(ctx context.Context, s Subject) {
	if s.Self || s.Token != "" {
		w.token(ctx, s.Token)
	}
	w.grants(ctx, nil, Grants{Policies: s.PolicyLinks, Roles: s.Roles})
	for i, p := range s.Policies {
		if p.ID == "" {
			p.ID = fmt.Sprintf("text %d", i)
		}
		w.policy(Source{}.step("policy %q", p.Name), p)
	}
	if s.Login != nil {
		w.login(ctx, *s.Login)
	}
	w.identities(ctx)
}

// walk is one visit. Identities are gathered first, since those of one name
// count together wherever they come from.
type walk struct {
	Resolver
	visit visitor
	// bound: a role, policy or identity was there, or may be and cannot be read.
	bound bool

	policies map[string]bool // visited, by ID
	// policyID and datacenters are those of the rules being visited, see Sourced.
	policyID    string
	datacenters []string

	services  []gathered[ServiceIdentity]
	nodes     []gathered[NodeIdentity]
	templates []gathered[TemplatedPolicy]
}

// gathered is an identity and where it was found first.
type gathered[T any] struct {
	source   Source
	identity T
}

func (w *walk) fail(source Source, err error) {
	w.visit(source, nil, &sourceError{source, err})
}

// rules visits a policy's rules.
func (w *walk) rules(source Source, rules []*Rule) {
	for _, rule := range rules {
		w.visit(source, rule, nil)
	}
}

func (w *walk) token(ctx context.Context, accessor string) {
	source := tokenSource(accessor)
	if accessor == "" {
		source = Source{"the token"}
	}
	t, err := w.Objects.Token(ctx, accessor)
	switch {
	case err != nil:
		w.fail(source, err)
		return
	case !t.Expires.IsZero() && !t.Expires.After(w.Now):
		w.fail(source, ErrExpired)
		return
	case accessor == "" && t.Accessor != "":
		source = tokenSource(t.Accessor)
	}
	w.grants(ctx, source, t.Grants)
}

func tokenSource(accessor string) Source {
	if accessor == Anonymous {
		return Source{"anonymous token"}
	}
	return Source{}.step("token %s", short(accessor))
}

// short returns an accessor's beginning, enough to find it by.
func short(accessor string) string {
	if len(accessor) > 8 {
		return accessor[:8] + "…"
	}
	return accessor
}

// grants visits direct policies, then roles, and gathers identities.
func (w *walk) grants(ctx context.Context, source Source, g Grants) {
	for _, l := range g.Policies {
		w.link(ctx, source, l)
	}
	w.gather(source, g)
	for _, l := range g.Roles {
		at := source.step("role %q", l.label())
		role, err := w.Objects.Role(ctx, l)
		w.bound = w.bound || !errors.Is(err, ErrDangling)
		if err != nil {
			w.fail(at, err)
			continue
		}
		at = source.step("role %q", role.Name)
		for _, p := range role.Policies {
			w.link(ctx, at, p)
		}
		w.gather(at, role.Grants)
	}
}

// link reads a policy and visits its rules, unless that was done before.
func (w *walk) link(ctx context.Context, source Source, l Link) {
	if l.ID != "" && w.policies[l.ID] {
		return
	}
	p, err := w.Objects.Policy(ctx, l)
	w.bound = w.bound || !errors.Is(err, ErrDangling)
	if err != nil {
		w.policies[l.ID] = true
		w.fail(source.step("policy %q", l.label()), err)
		return
	}
	w.policy(source.step("policy %q", p.Name), p)
}

func (w *walk) policy(source Source, p Policy) {
	if w.policies[p.ID] {
		return
	}
	w.policies[p.ID], w.policyID = true, p.ID
	w.within(source, p.Datacenters, func() {
		parsed, err := Parse(p.Rules)
		if err != nil {
			w.fail(source, err)
			return
		}
		w.rules(source, parsed)
	})
}

// within visits something that counts in these datacenters, and before it that it does
// not count here.
func (w *walk) within(source Source, datacenters []string, visit func()) {
	w.datacenters = datacenters
	if !countsIn(w.Datacenter, datacenters) {
		w.fail(source, &elsewhere{datacenters, w.Datacenter})
	}
	visit()
	w.datacenters = nil
}
