package consulutil

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/aclrules"
)

// Export reads everything that decides about rights. It needs acl:read; part of
// it would look like all of it, so any error ends it.
func (r *ACLReader) Export(ctx context.Context) (*aclrules.Snapshot, error) {
	datacenter, err := r.Datacenter(ctx)
	if err != nil {
		return nil, err
	}
	s := &aclrules.Snapshot{Version: aclrules.Version, Datacenter: datacenter,
		Bindings: map[string][]aclrules.BindingRule{}}
	if v := r.DefaultPolicy(ctx); v != aclrules.Unknown {
		s.DefaultPolicy = v.String()
	}
	for _, part := range []struct {
		name string
		read func(context.Context, *aclrules.Snapshot) error
	}{
		{"policies", r.exportPolicies}, {"roles", r.exportRoles}, {"tokens", r.exportTokens},
		{"auth methods", r.exportMethods},
		{"templated policies", r.exportTemplates},
	} {
		if err := part.read(ctx, s); err != nil {
			return nil, fmt.Errorf("export %s: %w", part.name, err)
		}
	}
	return s, nil
}

func (r *ACLReader) exportTemplates(ctx context.Context, s *aclrules.Snapshot) error {
	_, err := r.Template(ctx, "")
	if err != nil && !errors.Is(err, aclrules.ErrDangling) {
		return err
	}
	s.Templates = r.templates.value
	return nil
}

func (r *ACLReader) exportPolicies(ctx context.Context, s *aclrules.Snapshot) error {
	list, _, err := r.client.ACL().PolicyList(r.options(ctx))
	if err := meaning(err, false, err); err != nil {
		return err
	}
	for _, entry := range list {
		p, err := r.Policy(ctx, aclrules.Link{ID: entry.ID})
		if errors.Is(err, aclrules.ErrDangling) {
			continue // deleted in the meantime
		}
		if err != nil {
			return fmt.Errorf("%s: %w", entry.Name, err)
		}
		s.Policies = append(s.Policies, p)
	}
	return nil
}

func (r *ACLReader) exportRoles(ctx context.Context, s *aclrules.Snapshot) error {
	list, _, err := r.client.ACL().RoleList(r.options(ctx))
	if err := meaning(err, false, err); err != nil {
		return err
	}
	for _, role := range list {
		s.Roles = append(s.Roles, roleOf(role))
	}
	return nil
}

func (r *ACLReader) exportTokens(ctx context.Context, s *aclrules.Snapshot) error {
	list, _, err := r.client.ACL().TokenList(r.options(ctx))
	if err := meaning(err, false, err); err != nil {
		return err
	}
	for _, t := range list {
		s.Tokens = append(s.Tokens, tokenOf(&api.ACLToken{
			AccessorID: t.AccessorID, Description: t.Description, Policies: t.Policies, Roles: t.Roles,
			ExpirationTime:    t.ExpirationTime,
			ServiceIdentities: t.ServiceIdentities, NodeIdentities: t.NodeIdentities,
			TemplatedPolicies: t.TemplatedPolicies,
		}))
	}
	return nil
}

func (r *ACLReader) exportMethods(ctx context.Context, s *aclrules.Snapshot) error {
	list, _, err := r.client.ACL().AuthMethodList(r.options(ctx))
	if err := meaning(err, false, err); err != nil {
		return err
	}
	for _, entry := range list {
		m, rules, err := r.AuthMethod(ctx, entry.Name)
		if errors.Is(err, errNoMethod) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", entry.Name, err)
		}
		s.AuthMethods = append(s.AuthMethods, m)
		s.Bindings[entry.Name] = rules
	}
	return nil
}

func roleOf(r *api.ACLRole) aclrules.Role {
	return aclrules.Role{ID: r.ID, Name: r.Name,
		Grants: grants(r.Policies, nil, r.ServiceIdentities, r.NodeIdentities, r.TemplatedPolicies)}
}
