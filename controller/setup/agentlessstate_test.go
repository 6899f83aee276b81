package setup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/consul/api"
)

func agentlessState(t testing.TB, o Options) State {
	t.Helper()
	o.Cluster, o.RolePath, o.Address = mainCluster, DefaultRolePath, "10.0.0.9"
	s, err := Agentless(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAgentless(t *testing.T) {
	t.Parallel()
	const read = "node_prefix \"\" {\n  policy = \"read\"\n}\nservice_prefix \"\" {\n  policy = \"read\"\n}"
	want := State{
		Cluster: mainCluster, Name: "agentless", Keys: "consul-ecs/setup/",
		Policies: []Policy{
			{Name: "consul-ecs-api-gateway-policy", Description: "API Gateway token Policy",
				Rules: "mesh = \"read\"\n" + read},
			{Name: "consul-ecs-mesh-gateway-policy", Description: "Mesh Gateway token Policy",
				Rules: "mesh = \"write\"\npeering = \"read\""},
		},
		Roles: []Role{
			{Name: "consul-ecs-api-gateway-role", Description: "API Gateway Role for ECS",
				Policies: []string{"consul-ecs-api-gateway-policy"}},
			{Name: "consul-ecs-mesh-gateway-role", Description: "Mesh Gateway Role for ECS",
				Policies: []string{"consul-ecs-mesh-gateway-policy"}},
			{Name: "consul-ecs-terminating-gateway-role", Description: "Terminating Gateway Role for ECS"},
		},
		Methods: []AuthMethod{{
			Name: "iam-ecs-service-token", Description: "AWS IAM auth method for ECS service tokens",
			Principals: []string{ours},
			EntityTags: []string{"consul.hashicorp.com.service-name", "consul.hashicorp.com.namespace",
				"consul.hashicorp.com.gateway-kind"},
		}},
		Rules: []BindingRule{
			{Method: "iam-ecs-service-token", Description: "Bind a service identity from IAM role tag for ECS",
				BindType: "service", BindName: "${entity_tags.consul.hashicorp.com.service-name}"},
			{Method: "iam-ecs-service-token",
				Description: "Bind a Consul role from IAM role tag for ECS based API gateways",
				Selector:    `entity_tags["consul.hashicorp.com.gateway-kind"] == "api-gateway"`,
				BindType:    "role", BindName: "consul-ecs-api-gateway-role"},
			{Method: "iam-ecs-service-token",
				Description: "Bind a Consul role from IAM role tag for ECS based Terminating gateways",
				Selector:    `entity_tags["consul.hashicorp.com.gateway-kind"] == "terminating-gateway"`,
				BindType:    "role", BindName: "consul-ecs-terminating-gateway-role"},
			{Method: "iam-ecs-service-token",
				Description: "Bind a Consul role from IAM role tag for ECS based mesh gateways",
				Selector:    `entity_tags["consul.hashicorp.com.gateway-kind"] == "mesh-gateway"`,
				BindType:    "role", BindName: "consul-ecs-mesh-gateway-role"},
		},
		Anonymous: &Policy{Name: "anonymous-token-policy", Description: "Anonymous token Policy",
			Rules: read, Shared: true},
		Node: &Node{Name: mainCluster, Address: "10.0.0.9"},
	}
	if diff := cmp.Diff(want, agentlessState(t, Options{AnonymousRead: true})); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}

func TestAgentlessInPartition(t *testing.T) {
	t.Parallel()
	const gateway = "mesh = \"read\"\nnamespace_prefix \"\" {\n  node_prefix \"\" {\n    policy = \"read\"\n  }\n  " +
		"service_prefix \"\" {\n    policy = \"read\"\n  }\n}"
	for partition, mesh := range map[string]string{
		"team":    "mesh = \"write\"\npeering = \"read\"",
		"default": "mesh = \"write\"\npeering = \"read\"\npartition_prefix \"\" {\n  peering = \"read\"\n}",
	} {
		s := agentlessState(t, Options{Partition: partition})
		scope := Scope{Partition: partition, Namespace: "default"}
		want := []Policy{
			{Name: "consul-ecs-api-gateway-policy", Description: "API Gateway token Policy",
				Rules: gateway, Scope: scope},
			{Name: "consul-ecs-mesh-gateway-policy", Description: "Mesh Gateway token Policy",
				Rules: mesh, Scope: scope},
		}
		if diff := cmp.Diff(want, s.Policies); diff != "" {
			t.Errorf("%s: policies (-want +got):\n%s", partition, diff)
		}
		if diff := cmp.Diff(&Node{Name: mainCluster, Address: "10.0.0.9", Scope: Scope{Partition: partition}},
			s.Node); diff != "" {
			t.Errorf("%s: node (-want +got):\n%s", partition, diff)
		}
		rules := []api.ACLAuthMethodNamespaceRule{{
			Selector:      `entity_tags["consul.hashicorp.com.namespace"] != ""`,
			BindNamespace: "${entity_tags.consul.hashicorp.com.namespace}",
		}}
		if diff := cmp.Diff(rules, s.Methods[0].NamespaceRules); diff != "" {
			t.Errorf("%s: namespace rules (-want +got):\n%s", partition, diff)
		}
	}
}

// TestControllersOfOneClusterHaveOwnRecords: each removes the trust that it recorded and
// does not want any more, which must not be the other's.
func TestControllersOfOneClusterHaveOwnRecords(t *testing.T) {
	t.Parallel()
	a, b := agent(t, Options{}), agentlessState(t, Options{})
	if got := a.controller(); got != mainCluster {
		t.Errorf("agent: %s, want %s", got, mainCluster)
	}
	if got, want := b.controller(), mainCluster+"/agentless"; got != want {
		t.Errorf("agentless: %s, want %s", got, want)
	}
	if a.lockKey() != b.lockKey() {
		t.Error("they do not share the lock")
	}
	found := apply(t, nothing(a), a.compare(nothing(a)))
	narrow, err := Agentless(Options{Cluster: mainCluster, RolePath: "/narrow/"})
	if err != nil {
		t.Fatal(err)
	}
	found = apply(t, found, narrow.compare(found))
	want := []string{ours, "arn:aws:iam::123456789012:role/narrow/*"}
	if diff := cmp.Diff(want, found.Methods["iam-ecs-service-token"].Config["BoundIAMPrincipalARNs"]); diff != "" {
		t.Errorf("trust (-want +got):\n%s", diff)
	}
	if p := a.compare(found); len(p.Writes) > 0 {
		t.Errorf("the first controller then writes %+v", p.Writes)
	}
}

func TestCompareNode(t *testing.T) {
	t.Parallel()
	synthetic := map[string]string{"synthetic-node": "true"}
	for name, tt := range map[string]struct {
		address string
		found   *api.Node
		want    *api.CatalogRegistration
		changed []string
	}{
		"missing": {"10.0.0.9", nil, &api.CatalogRegistration{Node: "n", Address: "10.0.0.9", NodeMeta: synthetic},
			nil},
		"missing, and the controller runs in no task": {"", nil,
			&api.CatalogRegistration{Node: "n", Address: "127.0.0.1", NodeMeta: synthetic}, nil},
		"as wanted":   {"10.0.0.9", &api.Node{Node: "n", Address: "10.0.0.9", Meta: synthetic}, nil, nil},
		"any address": {"", &api.Node{Node: "n", Address: "10.0.0.9", Meta: synthetic}, nil, nil},
		"other metadata": {"10.0.0.9",
			&api.Node{Node: "n", Address: "10.0.0.9", Meta: map[string]string{"synthetic-node": "true", "team": "a"}},
			nil, nil},
		"other address": {"10.0.0.9",
			&api.Node{ID: "i", Node: "n", Address: "10.0.0.8",
				Meta:            map[string]string{"synthetic-node": "true", "team": "a"},
				TaggedAddresses: map[string]string{"wan": "1.2.3.4"}},
			&api.CatalogRegistration{ID: "i", Node: "n", Address: "10.0.0.9",
				NodeMeta:        map[string]string{"synthetic-node": "true", "team": "a"},
				TaggedAddresses: map[string]string{"wan": "1.2.3.4"}}, []string{"Address"}},
		"made by a task": {"10.0.0.9", &api.Node{Node: "n", Address: "10.0.0.9"},
			&api.CatalogRegistration{Node: "n", Address: "10.0.0.9", NodeMeta: synthetic}, []string{"Meta"}},
	} {
		s := State{Node: &Node{Name: "n", Address: tt.address}}
		p := s.compare(Observed{Nodes: map[string]*api.Node{"n": tt.found}})
		if tt.want == nil {
			if len(p.Writes) > 0 {
				t.Errorf("%s: writes %+v", name, p.Writes)
			}
			continue
		}
		want := []Write{{Object: Object{kindNode, "n"}, Value: tt.want, Create: tt.found == nil, Changed: tt.changed}}
		if diff := cmp.Diff(want, p.Writes); diff != "" {
			t.Errorf("%s: writes (-want +got):\n%s", name, diff)
		}
	}
	if p := (State{Node: &Node{Name: "n"}}).compare(Observed{}); len(p.Writes) > 0 {
		t.Errorf("not read: writes %+v", p.Writes)
	}
}
