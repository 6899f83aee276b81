package aclrules

import (
	"context"
	"slices"
)

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
func (w *walk) identities(ctx context.Context) {
	w.policyID = afterLast
	for _, s := range w.services {
		source := s.source.step("service identity %q", s.identity.Name)
		w.within(source, s.identity.Datacenters,
			func() { w.rules(source, identityRules(ServiceTemplate, s.identity.Name)) })
	}
	for _, n := range w.nodes {
		source := n.source.step("node identity %q", n.identity.Name)
		w.within(source, []string{n.identity.Datacenter},
			func() { w.rules(source, identityRules(NodeTemplate, n.identity.Name)) })
	}
	for _, t := range w.templates {
		source := t.source.step("templated policy %q", t.identity.Template)
		if t.identity.Name != "" {
			source = t.source.step("templated policy %q of %q", t.identity.Template, t.identity.Name)
		}
		w.within(source, t.identity.Datacenters, func() { w.rules(source, w.template(ctx, source, t.identity)) })
	}
}

// template returns what a templated policy stands for: by the server's text where it can be read, else as
// this program knows it. It visits why there is none.
func (w *walk) template(ctx context.Context, source Source, t TemplatedPolicy) []*Rule {
	known, err := Template(t.Template, t.Name)
	rules := known
	if text, readErr := w.Objects.Template(ctx, t.Template); readErr == nil {
		rules, err = Render(text, t.Name)
		if known != nil && err == nil && !EqualRules(rules, known) {
			w.fail(source, errOtherTemplate)
		}
	}
	if err != nil {
		w.fail(source, err)
	}
	return rules
}
