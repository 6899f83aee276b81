package consulutil

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-viper/mapstructure/v2"
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
	method, err := methodOf(m)
	if err != nil {
		return aclrules.AuthMethod{}, nil, err
	}
	rules, err := r.bindingRules(ctx, name)
	return method, rules, err
}

// methodConfig is what matters of an auth method's Config.
type methodConfig struct {
	EnableIAMEntityDetails           bool
	IAMEntityTags                    []string
	ClaimMappings, ListClaimMappings map[string]string
}

// methodOf reads a method's Config as Consul does: keys in any letter case, a text for a boolean, a
// lone string for a list.
func methodOf(m *api.ACLAuthMethod) (aclrules.AuthMethod, error) {
	var c methodConfig
	if err := mapstructure.WeakDecode(m.Config, &c); err != nil {
		return aclrules.AuthMethod{}, fmt.Errorf("read the config of auth method %q: %w", m.Name, err)
	}
	return aclrules.AuthMethod{
		Name: m.Name, Type: m.Type, EntityDetails: c.EnableIAMEntityDetails, EntityTags: c.IAMEntityTags,
		Values: names(c.ClaimMappings), Lists: names(c.ListClaimMappings),
	}, nil
}

// names returns those that a mapping of claims gives them in selectors.
func names(mapping map[string]string) []string {
	return slices.Compact(slices.Sorted(maps.Values(mapping)))
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
