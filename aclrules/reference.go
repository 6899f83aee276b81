package aclrules

import (
	"context"
	"errors"
	"fmt"
)

// Kinds of references.
const (
	PolicyKind          = "policy"
	RoleKind            = "role"
	ServiceIdentityKind = "service-identity"
	NodeIdentityKind    = "node-identity"
	TemplatedPolicyKind = "templated-policy"
)

// Reference names something that has rules. Name is a policy's or role's name,
// ID its ID; for identities it is the service or node, for a templated policy
// the variable of Template.
type Reference struct {
	Kind, ID, Name, Template string
}

// ReferenceRules implements AuthorizationRuleResolver.
func (r *Resolver) ReferenceRules(ctx context.Context, ref Reference, namespace string) ([]Sourced, error) {
	if namespace != "" && namespace != "default" {
		return nil, fmt.Errorf("namespace %q: %w", namespace, ErrEnterprise)
	}
	subject := Subject{}
	link := []Link{{ID: ref.ID, Name: ref.Name}}
	var direct Grants
	switch ref.Kind {
	case PolicyKind:
		subject.PolicyLinks = link
	case RoleKind:
		subject.Roles = link
	case ServiceIdentityKind:
		direct.ServiceIdentities = []ServiceIdentity{{Name: ref.Name}}
	case NodeIdentityKind:
		direct.NodeIdentities = []NodeIdentity{{Name: ref.Name, Datacenter: r.options.Datacenter}}
	case TemplatedPolicyKind:
		direct.TemplatedPolicies = []TemplatedPolicy{{Template: ref.Template, Name: ref.Name}}
	default:
		return nil, fmt.Errorf("unsupported reference kind %q", ref.Kind)
	}
	subject.direct = direct
	found := r.Resolve(ctx, subject)
	err := errors.Join(append(found.Errors, found.Disabled)...)
	if len(found.Rules) == 0 { // what was asked for is itself what is missing
		err = errors.Join(err, errors.Join(found.Notes...))
	}
	if err != nil {
		return nil, err
	}
	return found.Rules, nil
}
