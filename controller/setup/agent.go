package setup

import (
	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/config"
)

// Names of the objects that only the agent generation has.
const (
	clientPolicy = "consul-ecs-client-policy"
	clientRole   = "consul-ecs-client-role"
)

// Agent returns the state of the agent generation. Its error is a usage error that
// names every mistake in o.
func Agent(o Options) (State, error) {
	s, err := common(o)
	if err != nil {
		return State{}, err
	}
	scope := s.Rules[0].Scope
	s.Policies = []Policy{{
		Name: clientPolicy, Description: "Consul Client Token Policy for ECS",
		Rules: clientRules(o.Partition), Scope: scope,
	}}
	s.Roles = []Role{{
		Name: clientRole, Description: "Consul Client Token Role for ECS",
		Policies: []string{clientPolicy}, Scope: scope,
	}}
	client := AuthMethod{
		Name: config.ClientAuthMethod, Description: "AWS IAM auth method for ECS client tokens",
		Principals: s.Methods[0].Principals, Scope: scope,
		TokenTTL: o.TokenTTL, ForceTTL: o.ForceTokenTTL,
	}
	s.Methods = append([]AuthMethod{client}, s.Methods...)
	s.Rules = append([]BindingRule{{
		Method: config.ClientAuthMethod, Description: "Bind a policy for Consul clients on ECS",
		BindType: api.BindingRuleBindTypeRole, BindName: clientRole, Scope: scope,
	}}, s.Rules...)
	return s, nil
}

func clientRules(partition string) string {
	if partition == "" {
		return `node_prefix "" {
  policy = "write"
}
service_prefix "" {
  policy = "read"
}`
	}
	return `partition "` + partition + `" {
  node_prefix "" {
    policy = "write"
  }
  namespace_prefix "" {
    service_prefix "" {
      policy = "read"
    }
  }
}`
}
