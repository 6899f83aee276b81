package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// serverArgs is the command line of the scenario's Consul server: one server,
// ACLs on with default deny, quick elections.
func serverArgs(c *file.Consul, managementToken string) []string {
	acl, _ := json.Marshal(map[string]any{
		"acl": map[string]any{
			"enabled":        true,
			"default_policy": "deny",
			"tokens":         map[string]any{"initial_management": managementToken, "agent": managementToken},
		},
		"connect":              map[string]any{"enabled": true},
		"disable_update_check": true,
		"performance":          map[string]any{"raft_multiplier": 1},
		"ports":                map[string]any{"grpc": 8502, "dns": -1},
	})
	return []string{
		"consul", "agent", "-server", "-bootstrap-expect=1", "-log-level=warn",
		"-node=consul-server", "-data-dir=/consul/data",
		"-datacenter=" + c.Datacenter, "-bind=" + c.Address, "-client=" + c.Address,
		"-hcl=" + string(acl),
	}
}

// setUp makes what the scenario wants in Consul. Secrets of the tokens it makes
// are returned by the name they have in the task definitions.
func setUp(ctx context.Context, c *file.Consul, client *api.Client, awsEndpoint string) (map[string]string, error) {
	secrets := map[string]string{}
	w := (&api.WriteOptions{}).WithContext(ctx)
	for _, m := range c.AuthMethods {
		if err := createAuthMethod(m, client, w, awsEndpoint); err != nil {
			return nil, fmt.Errorf("auth method %s: %w", m.Name, err)
		}
	}
	for i, t := range c.Tokens {
		policy, _, err := client.ACL().PolicyCreate(&api.ACLPolicy{Name: fmt.Sprintf("scenario-token-%d", i+1), Rules: t.Rules}, w)
		if err != nil {
			return nil, fmt.Errorf("policy for %s: %w", t.Secret, err)
		}
		token, _, err := client.ACL().TokenCreate(&api.ACLToken{
			Description: "scenario token for " + t.Secret,
			Policies:    []*api.ACLTokenPolicyLink{{ID: policy.ID}},
		}, w)
		if err != nil {
			return nil, fmt.Errorf("token for %s: %w", t.Secret, err)
		}
		secrets[t.Secret] = token.SecretID
	}
	for _, raw := range c.ConfigEntries {
		entry, err := api.DecodeConfigEntry(raw)
		if err != nil {
			return nil, fmt.Errorf("config entry %v: %w", raw["Kind"], err)
		}
		if _, _, err := client.ConfigEntries().Set(entry, w); err != nil {
			return nil, fmt.Errorf("config entry %s/%s: %w", entry.GetKind(), entry.GetName(), err)
		}
	}
	return secrets, nil
}

// createAuthMethod makes an auth method that asks the simulated STS and IAM, and
// its binding rule.
func createAuthMethod(m file.AuthMethod, client *api.Client, w *api.WriteOptions, awsEndpoint string) error {
	_, _, err := client.ACL().AuthMethodCreate(&api.ACLAuthMethod{
		Name: m.Name,
		Type: "aws-iam",
		Config: map[string]any{
			"BoundIAMPrincipalARNs":  m.BoundPrincipals,
			"EnableIAMEntityDetails": true,
			"IAMEntityTags":          m.EntityTags,
			"STSEndpoint":            awsEndpoint,
			"IAMEndpoint":            awsEndpoint,
		},
	}, w)
	if err != nil {
		return err
	}
	_, _, err = client.ACL().BindingRuleCreate(&api.ACLBindingRule{
		AuthMethod: m.Name,
		BindType:   api.BindingRuleBindTypeService,
		BindName:   m.BindService,
	}, w)
	return err
}

// left lists what Consul still holds of a task: services and login tokens. An
// empty taskID means of any task: then only the given services and methods
// count.
func left(ctx context.Context, client *api.Client, taskID string, methods, services []string) ([]string, error) {
	q := (&api.QueryOptions{}).WithContext(ctx)
	var found []string
	tokens, _, err := client.ACL().TokenList(q)
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	for _, t := range tokens {
		if slices.Contains(methods, t.AuthMethod) && strings.Contains(t.Description, taskID) {
			found = append(found, fmt.Sprintf("token %s of %s", t.AccessorID, t.AuthMethod))
		}
	}
	for _, name := range services {
		instances, _, err := client.Catalog().Service(name, "", q)
		if err != nil {
			return nil, fmt.Errorf("list service %s: %w", name, err)
		}
		for _, s := range instances {
			if hasTask(s.ServiceID, taskID) {
				found = append(found, "service "+s.ServiceID)
			}
		}
	}
	return found, nil
}
