package consulutil

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// ErrUnknownReader means that the server does not know the token that reads.
var ErrUnknownReader = WithClass(errors.New("the token that reads, of CONSUL_HTTP_TOKEN or of a flag, is unknown to "+
	"the server (wrong, deleted or expired)"), retry.Permanent)

// anonymous is the secret of the token of requests without one. With it that token
// may see what it links to.
const anonymous = "anonymous"

// ACLReader reads through one client and remembers. It is for one goroutine.
type ACLReader struct {
	client     *api.Client
	datacenter string
	policies   readMemory[aclrules.Policy]
	roles      readMemory[aclrules.Role]
	templates  *readResult[map[string]string]
	// byDefault is the default policy, as far as it is known. foreign is whether
	// another datacenter than the asked server's answers.
	byDefault string
	foreign   bool
}

// readResult is an answer or its error.
type readResult[T any] struct {
	value T
	err   error
}

// readMemory are answers by link; of one with an ID, the ID alone.
type readMemory[T any] map[aclrules.Link]readResult[T]

func key(l aclrules.Link) aclrules.Link {
	if l.ID != "" {
		return aclrules.Link{ID: l.ID}
	}
	return l
}

// OpenACLReader returns a reader with the options' token, or with the anonymous one when there is
// none. datacenter is as in NewACLReader.
func OpenACLReader(o Options, datacenter string) (*ACLReader, error) {
	token, err := EffectiveToken(o)
	if err != nil {
		return nil, err
	}
	if token == "" {
		o.Token = anonymous
	}
	client, err := NewClient(o)
	if err != nil {
		return nil, err
	}
	return NewACLReader(client, datacenter), nil
}

// NewACLReader reads with the client's token; in the datacenter that the server
// belongs to when the name is empty.
func NewACLReader(client *api.Client, datacenter string) *ACLReader {
	return &ACLReader{client: client, datacenter: datacenter, policies: readMemory[aclrules.Policy]{},
		roles: readMemory[aclrules.Role]{}}
}

func (r *ACLReader) options(ctx context.Context) *api.QueryOptions {
	return (&api.QueryOptions{Datacenter: r.datacenter}).WithContext(ctx)
}

// Policy implements aclrules.Objects.
func (r *ACLReader) Policy(ctx context.Context, l aclrules.Link) (aclrules.Policy, error) {
	if known, ok := r.policies[key(l)]; ok {
		return known.value, known.err
	}
	p, err := r.policy(ctx, l)
	r.policies[key(l)] = readResult[aclrules.Policy]{p, err}
	if err == nil {
		r.policies[aclrules.Link{ID: p.ID}] = readResult[aclrules.Policy]{p, nil}
	}
	return p, err
}

func (r *ACLReader) policy(ctx context.Context, l aclrules.Link) (aclrules.Policy, error) {
	var p *api.ACLPolicy
	var err error
	if l.ID != "" {
		p, _, err = r.client.ACL().PolicyRead(l.ID, r.options(ctx))
	} else {
		p, _, err = r.client.ACL().PolicyReadByName(l.Name, r.options(ctx))
	}
	if err := meaning(err, p == nil, aclrules.ErrDangling); err != nil {
		return aclrules.Policy{}, err
	}
	return policyOf(*p), nil
}

func policyOf(p api.ACLPolicy) aclrules.Policy {
	return aclrules.Policy{ID: p.ID, Name: p.Name, Rules: p.Rules, Datacenters: p.Datacenters}
}

// Role implements aclrules.Objects.
func (r *ACLReader) Role(ctx context.Context, l aclrules.Link) (aclrules.Role, error) {
	if known, ok := r.roles[key(l)]; ok {
		return known.value, known.err
	}
	role, err := r.role(ctx, l)
	r.roles[key(l)] = readResult[aclrules.Role]{role, err}
	return role, err
}

func (r *ACLReader) role(ctx context.Context, l aclrules.Link) (aclrules.Role, error) {
	var role *api.ACLRole
	var err error
	if l.ID != "" {
		role, _, err = r.client.ACL().RoleRead(l.ID, r.options(ctx))
	} else {
		role, _, err = r.client.ACL().RoleReadByName(l.Name, r.options(ctx))
	}
	if err := meaning(err, role == nil, aclrules.ErrDangling); err != nil {
		return aclrules.Role{}, err
	}
	return roleOf(role), nil
}

// Token implements aclrules.Objects. With acl:read one request brings all that
// the token links to; without, the reading token sees its own links.
func (r *ACLReader) Token(ctx context.Context, accessor string) (aclrules.Token, error) {
	if accessor != "" {
		return r.expanded(ctx, accessor)
	}
	t, _, err := r.client.ACL().TokenReadSelf(r.options(ctx))
	if err := meaning(err, t == nil, aclrules.ErrNotFound); err != nil {
		return aclrules.Token{}, err
	}
	if token, err := r.expanded(ctx, t.AccessorID); err == nil {
		return token, nil
	}
	return tokenOf(t), nil
}

func (r *ACLReader) expanded(ctx context.Context, accessor string) (aclrules.Token, error) {
	t, _, err := r.client.ACL().TokenReadExpanded(accessor, r.options(ctx))
	if err := meaning(err, t == nil, aclrules.ErrNotFound); err != nil {
		return aclrules.Token{}, err
	}
	for _, p := range t.ExpandedPolicies {
		r.policies[aclrules.Link{ID: p.ID}] = readResult[aclrules.Policy]{policyOf(p), nil}
	}
	for _, role := range t.ExpandedRoles {
		r.roles[aclrules.Link{ID: role.ID}] = readResult[aclrules.Role]{roleOf(&role), nil}
	}
	r.byDefault = t.AgentACLDefaultPolicy
	return tokenOf(&t.ACLToken), nil
}

func tokenOf(t *api.ACLToken) aclrules.Token {
	token := aclrules.Token{
		Accessor: t.AccessorID, Description: t.Description,
		Grants: grants(t.Policies, t.Roles, t.ServiceIdentities, t.NodeIdentities, t.TemplatedPolicies),
	}
	if t.ExpirationTime != nil {
		token.Expires = *t.ExpirationTime
	}
	return token
}

// meaning turns a client's error into the resolver's.
func meaning(err error, absent bool, missing error) error {
	switch {
	case err == nil && !absent:
		return nil
	case err == nil, Status(err) == http.StatusNotFound:
		return missing
	case UnknownToken(err) && strings.HasPrefix(Reason(err), "token does not exist"):
		return missing // that was asked for
	case UnknownToken(err):
		return ErrUnknownReader
	case Status(err) == http.StatusForbidden:
		return fmt.Errorf("%w: a token with acl:read can read it", aclrules.ErrUnreadable)
	case ACLsDisabled(err):
		return aclrules.ErrDisabled
	}
	return err
}

func grants(
	policies []*api.ACLTokenPolicyLink, roles []*api.ACLTokenRoleLink, services []*api.ACLServiceIdentity,
	nodes []*api.ACLNodeIdentity, templates []*api.ACLTemplatedPolicy,
) aclrules.Grants {
	var g aclrules.Grants
	for _, p := range policies {
		g.Policies = append(g.Policies, aclrules.Link{ID: p.ID, Name: p.Name})
	}
	for _, r := range roles {
		g.Roles = append(g.Roles, aclrules.Link{ID: r.ID, Name: r.Name})
	}
	for _, s := range services {
		g.ServiceIdentities = append(g.ServiceIdentities,
			aclrules.ServiceIdentity{Name: s.ServiceName, Datacenters: s.Datacenters})
	}
	for _, n := range nodes {
		g.NodeIdentities = append(g.NodeIdentities, aclrules.NodeIdentity{Name: n.NodeName, Datacenter: n.Datacenter})
	}
	for _, t := range templates {
		templated := aclrules.TemplatedPolicy{Template: t.TemplateName, Datacenters: t.Datacenters}
		if t.TemplateVariables != nil {
			templated.Name = t.TemplateVariables.Name
		}
		g.TemplatedPolicies = append(g.TemplatedPolicies, templated)
	}
	return g
}

// Template implements aclrules.Objects.
func (r *ACLReader) Template(ctx context.Context, name string) (string, error) {
	if r.templates == nil {
		list, _, err := r.client.ACL().TemplatedPolicyList(r.options(ctx))
		texts := map[string]string{}
		for name, t := range list {
			texts[name] = t.Template
		}
		r.templates = &readResult[map[string]string]{texts, meaning(err, false, nil)}
	}
	text, ok := r.templates.value[name]
	if r.templates.err == nil && !ok {
		return "", aclrules.ErrDangling
	}
	return text, r.templates.err
}
