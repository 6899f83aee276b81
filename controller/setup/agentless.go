package setup

import (
	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/config"
)

// Names of the objects that only the generation without agents has.
const (
	APIGatewayPolicy       = "consul-ecs-api-gateway-policy"
	APIGatewayRole         = "consul-ecs-api-gateway-role"
	MeshGatewayPolicy      = "consul-ecs-mesh-gateway-policy"
	MeshGatewayRole        = "consul-ecs-mesh-gateway-role"
	TerminatingGatewayRole = "consul-ecs-terminating-gateway-role"
)

// AgentlessName is the Name of an Agentless state.
const AgentlessName = "agentless"

// TagGatewayKind is the tag of a gateway's IAM role.
const TagGatewayKind = config.TagGatewayKind

// Agentless is the state of the generation without agents: all tasks' services are on
// one node, which is the cluster's, and gateways log in by the method of services. Its
// error is as Agent's.
func Agentless(o Options) (State, error) {
	s, err := common(o)
	if err != nil {
		return State{}, err
	}
	scope := s.Rules[0].Scope
	s.Name, s.ACLsOptional = AgentlessName, true
	s.Policies = []Policy{
		{Name: APIGatewayPolicy, Description: "API Gateway token Policy", Rules: apiGatewayRules(o.Partition), Scope: scope},
		{Name: MeshGatewayPolicy, Description: "Mesh Gateway token Policy", Rules: meshGatewayRules(o.Partition), Scope: scope},
	}
	s.Roles = []Role{
		{Name: APIGatewayRole, Description: "API Gateway Role for ECS", Policies: []string{APIGatewayPolicy}, Scope: scope},
		{Name: MeshGatewayRole, Description: "Mesh Gateway Role for ECS", Policies: []string{MeshGatewayPolicy}, Scope: scope},
		// Operators link the policies that its services' callers need.
		{Name: TerminatingGatewayRole, Description: "Terminating Gateway Role for ECS", Scope: scope},
	}
	s.Methods[0].EntityTags = append(s.Methods[0].EntityTags, TagGatewayKind)
	for _, g := range []struct{ kind, text, role string }{
		{"api-gateway", "API gateways", APIGatewayRole},
		{"terminating-gateway", "Terminating gateways", TerminatingGatewayRole},
		{"mesh-gateway", "mesh gateways", MeshGatewayRole},
	} {
		s.Rules = append(s.Rules, BindingRule{
			Method: ServiceMethod, Description: "Bind a Consul role from IAM role tag for ECS based " + g.text,
			Selector: `entity_tags["` + TagGatewayKind + `"] == "` + g.kind + `"`,
			BindType: api.BindingRuleBindTypeRole, BindName: g.role, Scope: scope,
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
