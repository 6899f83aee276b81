package setup

import (
	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/config"
)

// Names of the objects that only the generation without agents has.
const (
	apiGatewayPolicy       = "consul-ecs-api-gateway-policy"
	apiGatewayRole         = "consul-ecs-api-gateway-role"
	meshGatewayPolicy      = "consul-ecs-mesh-gateway-policy"
	meshGatewayRole        = "consul-ecs-mesh-gateway-role"
	terminatingGatewayRole = "consul-ecs-terminating-gateway-role"
)

// AgentlessName is the Name of an Agentless state.
const AgentlessName = "agentless"

// Agentless returns the state of the generation without agents: all tasks' services are on
// one node, which is the cluster's, and gateways log in by the method of services. Its
// error is as Agent's.
func Agentless(o Options) (State, error) {
	s, err := common(o)
	if err != nil {
		return State{}, err
	}
	scope := s.Rules[0].Scope
	s.Name = AgentlessName
	s.Policies = []Policy{
		{Name: apiGatewayPolicy, Description: "API Gateway token Policy",
			Rules: apiGatewayRules(o.Partition), Scope: scope},
		{Name: meshGatewayPolicy, Description: "Mesh Gateway token Policy",
			Rules: meshGatewayRules(o.Partition), Scope: scope},
	}
	s.Roles = []Role{
		{Name: apiGatewayRole, Description: "API Gateway Role for ECS",
			Policies: []string{apiGatewayPolicy}, Scope: scope},
		{Name: meshGatewayRole, Description: "Mesh Gateway Role for ECS",
			Policies: []string{meshGatewayPolicy}, Scope: scope},
		// Operators link the policies that its services' callers need.
		{Name: terminatingGatewayRole, Description: "Terminating Gateway Role for ECS", Scope: scope},
	}
	s.Methods[0].EntityTags = append(s.Methods[0].EntityTags, config.TagGatewayKind)
	for _, g := range []struct{ kind, text, role string }{
		{"api-gateway", "API gateways", apiGatewayRole},
		{"terminating-gateway", "Terminating gateways", terminatingGatewayRole},
		{"mesh-gateway", "mesh gateways", meshGatewayRole},
	} {
		s.Rules = append(s.Rules, BindingRule{
			Method:      config.ServiceAuthMethod,
			Description: "Bind a Consul role from IAM role tag for ECS based " + g.text,
			Selector:    `entity_tags["` + config.TagGatewayKind + `"] == "` + g.kind + `"`,
			BindType:    api.BindingRuleBindTypeRole, BindName: g.role, Scope: scope,
		})
	}
	s.Node = &Node{Name: o.Cluster, Address: o.Address, Scope: Scope{Partition: o.Partition}}
	return s, nil
}

func apiGatewayRules(partition string) string {
	if partition == "" {
		return "mesh = \"read\"\n" + readRules
	}
	return `mesh = "read"
namespace_prefix "" {
  node_prefix "" {
    policy = "read"
  }
  service_prefix "" {
    policy = "read"
  }
}`
}

func meshGatewayRules(partition string) string {
	const rules = `mesh = "write"
peering = "read"`
	if partition != defaultPartition {
		return rules
	}
	return rules + `
partition_prefix "" {
  peering = "read"
}`
}
