package aclread

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/aclrules/resolver"
	"github.com/meshtask/consul-ecs/consulutil"
)

// Reader reads through one client and remembers. It is for one goroutine.
type Reader struct {
	client   *api.Client
	policies map[resolver.Link]got[resolver.Policy]
	roles    map[resolver.Link]got[resolver.Role]
}

// got is an answer or its error.
type got[T any] struct {
	value T
	err   error
}

// New reads in the name of the client's token.
func New(client *api.Client) *Reader {
	return &Reader{client, map[resolver.Link]got[resolver.Policy]{}, map[resolver.Link]got[resolver.Role]{}}
}

// Getters are what a resolver takes.
func (r *Reader) Getters() resolver.Getters {
	return resolver.Getters{Policies: r, Roles: r, Tokens: r, Logins: r}
}

func options(ctx context.Context) *api.QueryOptions { return new(api.QueryOptions).WithContext(ctx) }

// Policy implements resolver.Policies.
func (r *Reader) Policy(ctx context.Context, l resolver.Link) (resolver.Policy, error) {
	if known, ok := r.policies[l]; ok {
		return known.value, known.err
	}
	p, err := r.policy(ctx, l)
	r.policies[l] = got[resolver.Policy]{p, err}
	return p, err
}

func (r *Reader) policy(ctx context.Context, l resolver.Link) (resolver.Policy, error) {
	var p *api.ACLPolicy
	var err error
	if l.ID != "" {
		p, _, err = r.client.ACL().PolicyRead(l.ID, options(ctx))
	} else {
		p, _, err = r.client.ACL().PolicyReadByName(l.Name, options(ctx))
	}
	if err := meaning(err, p == nil, resolver.ErrDangling); err != nil {
		return resolver.Policy{}, err
	}
	return policyOf(*p), nil
}

func policyOf(p api.ACLPolicy) resolver.Policy {
	return resolver.Policy{ID: p.ID, Name: p.Name, Rules: p.Rules, Datacenters: p.Datacenters}
}

// Role implements resolver.Roles.
func (r *Reader) Role(ctx context.Context, l resolver.Link) (resolver.Role, error) {
	if known, ok := r.roles[l]; ok {
		return known.value, known.err
	}
	role, err := r.role(ctx, l)
	r.roles[l] = got[resolver.Role]{role, err}
	return role, err
}

func (r *Reader) role(ctx context.Context, l resolver.Link) (resolver.Role, error) {
	var role *api.ACLRole
	var err error
	if l.ID != "" {
		role, _, err = r.client.ACL().RoleRead(l.ID, options(ctx))
	} else {
		role, _, err = r.client.ACL().RoleReadByName(l.Name, options(ctx))
	}
	if err := meaning(err, role == nil, resolver.ErrDangling); err != nil {
		return resolver.Role{}, err
	}
	return roleOf(role), nil
}

// Token implements resolver.Tokens.
func (r *Reader) Token(ctx context.Context, accessor string) (resolver.Token, error) {
	var t *api.ACLToken
	var err error
	if accessor == "" {
		t, _, err = r.client.ACL().TokenReadSelf(options(ctx))
	} else {
		t, _, err = r.client.ACL().TokenRead(accessor, options(ctx))
	}
	if err := meaning(err, t == nil, resolver.ErrNotFound); err != nil {
		return resolver.Token{}, err
	}
	token := resolver.Token{
		Accessor: t.AccessorID, Description: t.Description,
		Grants: grants(t.Policies, t.Roles, t.ServiceIdentities, t.NodeIdentities, t.TemplatedPolicies),
	}
	if t.ExpirationTime != nil {
		token.Expires = *t.ExpirationTime
	}
	return token, nil
}

// meaning turns a client's error into the resolver's.
func meaning(err error, absent bool, missing error) error {
	switch {
	case err == nil && !absent:
		return nil
	case err == nil, consulutil.Status(err) == http.StatusNotFound:
		return missing
	case consulutil.UnknownToken(err):
		// The reading token, or the one asked for: the server does not tell.
		return fmt.Errorf("%w: %w", resolver.ErrNotFound, err)
	case consulutil.Status(err) == http.StatusForbidden:
		return fmt.Errorf("%w: a token with acl:read can read it", resolver.ErrUnreadable)
	}
	return err
}

func grants(policies []*api.ACLTokenPolicyLink, roles []*api.ACLTokenRoleLink, services []*api.ACLServiceIdentity, nodes []*api.ACLNodeIdentity, templates []*api.ACLTemplatedPolicy) resolver.Grants {
	var g resolver.Grants
	for _, p := range policies {
		g.Policies = append(g.Policies, resolver.Link{ID: p.ID, Name: p.Name})
	}
	for _, r := range roles {
		g.Roles = append(g.Roles, resolver.Link{ID: r.ID, Name: r.Name})
	}
	for _, s := range services {
		g.ServiceIdentities = append(g.ServiceIdentities, resolver.ServiceIdentity{Name: s.ServiceName, Datacenters: s.Datacenters})
	}
	for _, n := range nodes {
		g.NodeIdentities = append(g.NodeIdentities, resolver.NodeIdentity{Name: n.NodeName, Datacenter: n.Datacenter})
	}
	for _, t := range templates {
		templated := resolver.TemplatedPolicy{Template: t.TemplateName, Datacenters: t.Datacenters}
		if t.TemplateVariables != nil {
			templated.Name = t.TemplateVariables.Name
		}
		g.TemplatedPolicies = append(g.TemplatedPolicies, templated)
	}
	return g
}

// AuthMethod implements resolver.Logins.
func (r *Reader) AuthMethod(ctx context.Context, name string) (resolver.AuthMethod, error) {
	m, _, err := r.client.ACL().AuthMethodRead(name, options(ctx))
	if err := meaning(err, m == nil, errors.New("there is no such auth method")); err != nil {
		return resolver.AuthMethod{}, err
	}
	return methodOf(m), nil
}

func methodOf(m *api.ACLAuthMethod) resolver.AuthMethod {
	method := resolver.AuthMethod{Name: m.Name, Type: m.Type}
	method.EntityDetails, _ = m.Config["EnableIAMEntityDetails"].(bool)
	tags, _ := m.Config["IAMEntityTags"].([]any)
	for _, tag := range tags {
		if name, ok := tag.(string); ok {
			method.EntityTags = append(method.EntityTags, name)
		}
	}
	return method
}

// BindingRules implements resolver.Logins.
func (r *Reader) BindingRules(ctx context.Context, method string) ([]resolver.BindingRule, error) {
	list, _, err := r.client.ACL().BindingRuleList(method, options(ctx))
	if err := meaning(err, false, err); err != nil {
		return nil, err
	}
	var rules []resolver.BindingRule
	for _, b := range list {
		rule := resolver.BindingRule{ID: b.ID, Selector: b.Selector, BindType: string(b.BindType), BindName: b.BindName}
		if b.BindVars != nil {
			rule.Variable = b.BindVars.Name
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// DefaultPolicy is what the server answers where no rule does; Unknown when the
// reading token may not see that.
func (r *Reader) DefaultPolicy(ctx context.Context) aclrules.Verdict {
	self, _, err := r.client.ACL().TokenReadSelf(options(ctx))
	if err != nil {
		return aclrules.Unknown
	}
	expanded, _, err := r.client.ACL().TokenReadExpanded(self.AccessorID, options(ctx))
	if err != nil {
		return aclrules.Unknown
	}
	switch expanded.AgentACLDefaultPolicy {
	case "allow":
		return aclrules.Allowed
	case "deny":
		return aclrules.Denied
	}
	return aclrules.Unknown
}

// Datacenter is the answering one: the nearest of those that the server knows.
func (r *Reader) Datacenter(ctx context.Context) (string, error) {
	names, err := r.client.Catalog().Datacenters()
	if err != nil {
		return "", fmt.Errorf("ask for the datacenter: %w", err)
	}
	if len(names) == 0 {
		return "", errors.New("the server knows no datacenter")
	}
	return names[0], nil
}
