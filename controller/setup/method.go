package setup

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/consul/api"
)

// methodType is the type of every wanted method.
const methodType = "aws-iam"

// Keys of a method's Config, as Consul's aws-iam type knows them.
const (
	keyPrincipals = "BoundIAMPrincipalARNs"
	keyDetails    = "EnableIAMEntityDetails"
	keyTags       = "IAMEntityTags"
)

// create returns the method as it is created.
func (m AuthMethod) create() *api.ACLAuthMethod {
	config := map[string]any{
		keyPrincipals: sortedUnique(m.Principals),
		keyDetails:    true,
	}
	if len(m.EntityTags) > 0 {
		config[keyTags] = sortedUnique(m.EntityTags)
	}
	method := &api.ACLAuthMethod{Name: m.Name, Type: methodType, Description: m.Description, MaxTokenTTL: m.TokenTTL,
		Config: config}
	for _, rule := range m.NamespaceRules {
		method.NamespaceRules = append(method.NamespaceRules, &rule)
	}
	return method
}

// compare returns the found method with our fields corrected, and the names of
// those that were not, for principals with what was added and removed. Everything
// else in it stays, known to us or not.
func (m AuthMethod) compare(found *api.ACLAuthMethod, t trust) (*api.ACLAuthMethod, []string, error) {
	if found.Type != methodType {
		return nil, nil, fmt.Errorf(
			"auth method %s has type %q, want %s, and Consul cannot change a method's type: delete or rename it",
			m.Name, found.Type, methodType)
	}
	changed := []string{}
	fixed := *found
	fixed.Config = maps.Clone(found.Config)
	if fixed.Config == nil {
		fixed.Config = map[string]any{}
	}
	if len(t.add)+len(t.remove) > 0 {
		kept := slices.DeleteFunc(stringList(fixed.Config, keyPrincipals),
			func(arn string) bool { return slices.Contains(t.remove, arn) })
		fixed.Config[configKey(fixed.Config, keyPrincipals)] = append(kept, t.add...)
		changed = append(changed, keyPrincipals+t.String())
	}
	if key := configKey(fixed.Config, keyDetails); !isTrue(fixed.Config[key]) {
		fixed.Config[key] = true
		changed = append(changed, keyDetails)
	}
	tags := stringList(fixed.Config, keyTags)
	if missing := without(m.EntityTags, tags); len(missing) > 0 {
		fixed.Config[configKey(fixed.Config, keyTags)] = append(tags, missing...)
		changed = append(changed, keyTags)
	}
	if fixed.MaxTokenTTL != t.ttl {
		fixed.MaxTokenTTL = t.ttl
		changed = append(changed, "MaxTokenTTL "+t.ttl.String())
	}
	fixed.NamespaceRules = slices.Clone(found.NamespaceRules)
	for _, rule := range m.NamespaceRules {
		if !slices.ContainsFunc(found.NamespaceRules,
			func(r *api.ACLAuthMethodNamespaceRule) bool { return r != nil && *r == rule }) {
			fixed.NamespaceRules = append(fixed.NamespaceRules, &rule)
			changed = append(changed, "NamespaceRules")
		}
	}
	return &fixed, changed, nil
}

// configKey returns how a method's Config writes a key: Consul reads it in any
// letter case and keeps it as it was given.
func configKey(config map[string]any, key string) string {
	if _, ok := config[key]; ok {
		return key
	}
	for _, k := range sortedKeys(config) {
		if strings.EqualFold(k, key) {
			return k
		}
	}
	return key
}

// stringList returns a list of a method's Config, in its order. Consul takes a lone
// string for a list of one.
func stringList(config map[string]any, key string) []string {
	switch v := config[configKey(config, key)].(type) {
	case string:
		if v != "" {
			return []string{v}
		}
	case []string:
		return slices.Clone(v)
	case []any:
		list := make([]string, 0, len(v))
		for _, e := range v {
			list = append(list, fmt.Sprint(e))
		}
		return list
	}
	return nil
}

// isTrue reads a boolean of a method's Config as Consul does, weakly typed.
func isTrue(v any) bool {
	switch v := v.(type) {
	case bool:
		return v
	case string:
		b, _ := strconv.ParseBool(v)
		return b
	case float64:
		return v != 0
	}
	return false
}

// without returns what of want is not in have, sorted.
func without(want, have []string) []string {
	return slices.DeleteFunc(sortedUnique(want), func(w string) bool { return slices.Contains(have, w) })
}

func sortedUnique(list []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
