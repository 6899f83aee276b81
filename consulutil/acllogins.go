package consulutil

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/aclrules"
)

var errNoMethod = errors.New("there is no such auth method")

// AuthMethod implements aclrules.Objects.
func (r *ACLReader) AuthMethod(ctx context.Context, name string) (aclrules.AuthMethod, []aclrules.BindingRule, error) {
	m, _, err := r.client.ACL().AuthMethodRead(name, r.options(ctx))
	if err := meaning(err, m == nil, errNoMethod); err != nil {
		return aclrules.AuthMethod{}, nil, err
	}
	rules, err := r.bindingRules(ctx, name)
	return methodOf(m), rules, err
}

func methodOf(m *api.ACLAuthMethod) aclrules.AuthMethod {
	method := aclrules.AuthMethod{Name: m.Name, Type: m.Type}
	method.EntityDetails, _ = m.Config["EnableIAMEntityDetails"].(bool)
	tags, _ := m.Config["IAMEntityTags"].([]any)
	for _, tag := range tags {
		if name, ok := tag.(string); ok {
			method.EntityTags = append(method.EntityTags, name)
		}
	}
	method.Values, method.Lists = names(m.Config["ClaimMappings"]), names(m.Config["ListClaimMappings"])
	return method
}

// names are those that a mapping of claims gives them in selectors.
func names(mapping any) []string {
	claims, _ := mapping.(map[string]any)
	found := map[string]bool{}
	for _, to := range claims {
		if name, ok := to.(string); ok {
			found[name] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func (r *ACLReader) bindingRules(ctx context.Context, method string) ([]aclrules.BindingRule, error) {
	list, _, err := r.client.ACL().BindingRuleList(method, r.options(ctx))
	if err := meaning(err, false, err); err != nil {
		return nil, fmt.Errorf("list binding rules: %w", err)
	}
	var rules []aclrules.BindingRule
	for _, b := range list {
		rule := aclrules.BindingRule{ID: b.ID, Selector: b.Selector, BindType: string(b.BindType), BindName: b.BindName}
		if b.BindVars != nil {
			rule.Variable = b.BindVars.Name
		}
		rules = append(rules, rule)
	}
	return rules, nil
}
