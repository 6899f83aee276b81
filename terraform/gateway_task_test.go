package terraform_test

import (
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/terraform/internal/stub"
	"github.com/meshtask/consul-ecs/terraform/internal/tftest"
)

var gatewayTask = values{
	"family": "edge", "kind": "mesh-gateway", "consul_server_hosts": "consul.example.com",
	"consul_ecs_image": consulECS,
	"ecs_cluster_arn":  "arn:aws:ecs:us-east-1:123456789012:cluster/mesh", "subnets": []string{"subnet-1"},
}

func TestSecondPlanOfGatewayTaskIsEmpty(t *testing.T) {
	t.Parallel()
	for _, aws := range []stub.AWS{stub.AWS5, stub.AWS6} {
		t.Run(string(aws), func(t *testing.T) {
			t.Parallel()
			if aws == stub.AWS5 {
				testkit.Long(t)
			}
			w := tftest.New(t, "modules/gateway-task", aws)
			w.Apply(gatewayTask.with(values{
				"acls": true, "tls": true,
				"consul_ca_cert_arn": "arn:aws:secretsmanager:us-east-1:123456789012:secret:ca-AbCdEf",
				"lb_enabled":         true, "lb_vpc_id": "vpc-1", "lb_subnets": []string{"subnet-1"},
				"lb_ingress_rule_cidr_blocks": []string{"192.0.2.0/24"},
				"deployment_circuit_breaker":  values{},
			}))
			w.Unchanged()
		})
	}
}

// TestGatewayTaskIsPlannedWithNewSubnets plans subnets of which the plan does not know the block, or the number, and
// servers whose addresses are sensitive.
func TestGatewayTaskIsPlannedWithNewSubnets(t *testing.T) {
	t.Parallel()
	w := tftest.New(t, "modules/gateway-task/tests/first_apply", stub.AWS6)
	w.Apply(values{})
	w.Unchanged()
	if warnings := w.PlanWarnings(values{}); len(warnings) > 0 {
		t.Errorf("warnings %q, want none", warnings)
	}
}

func TestGatewayTaskNamesInvalidVariables(t *testing.T) {
	t.Parallel()
	w := tftest.New(t, "modules/gateway-task", stub.AWS6)
	wantErrors(t, w, gatewayTask.with(values{"enable_mesh_gateway_wan_federation": true}),
		"enable_mesh_gateway_wan_federation needs tls.")
	wantErrors(t, w, gatewayTask.with(values{"lb_enabled": true}), "lb_enabled needs lb_subnets and lb_vpc_id.")
	wantErrors(t, w, gatewayTask.with(values{"lb_modify_security_group": true}),
		"lb_modify_security_group needs lb_modify_security_group_id.")
	wantErrors(t, w, gatewayTask.with(values{"lb_modify_security_group": true, "lb_modify_security_group_id": "sg-1"}),
		"lb_create_security_group and lb_modify_security_group are mutually exclusive")
	wantErrors(t, w, gatewayTask.with(values{
		"volumes": []values{{"name": "certificates", "host_path": "/consul/certificates"}},
	}),
		"Container sidecar-proxy mounts certificates at /consul/certificates, where the containers of the mesh share "+
			"/consul")
	wantErrors(t, w, gatewayTask.with(values{"extra_container_definitions": values{"name": "log", "image": "log:1"}}),
		"extra_container_definitions must be a list of containers, each with a name.")
	target := values{
		"target_group_arn": "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/a/1",
		"container_port":   8443,
	}
	log := values{
		"name": "log", "image": "log:1",
		"portMappings": []values{{"containerPort": 9100}, {"containerPortRange": "9000-9010"}},
	}
	wantErrors(t, w, gatewayTask.with(values{"extra_container_definitions": []values{log},
		"custom_load_balancer_config": []values{
			target.with(values{"container_name": "proxy"}),
			target.with(values{"container_name": "consul-dataplane", "container_port": 8080}),
			target.with(values{"container_name": "log", "container_port": 9100}),
		}}), "custom_load_balancer_config has proxy:8443, sidecar-proxy:8080, which the task does not have: take a "+
		"container and a containerPort of its portMappings, such as sidecar-proxy:8443.")
	wantErrors(t, w, gatewayTask.with(values{"kind": "gateway"}),
		"kind must be mesh-gateway, terminating-gateway or api-gateway.")
}
