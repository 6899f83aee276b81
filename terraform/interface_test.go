package terraform_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-config-inspect/tfconfig"
)

// Variables of the older modules, by what they have in common.
const (
	// server is how a task reaches Consul without an agent.
	server = "consul_server_hosts skip_server_watch tls consul_ca_cert_arn consul_grpc_ca_cert_arn " +
		"consul_https_ca_cert_arn tls_server_name http_config grpc_config"
	// agent is what a task with an agent has besides.
	agent = "retry_join consul_http_addr client_token_auth_method_name consul_server_ca_cert_arn " +
		"gossip_key_secret_arn consul_datacenter " +
		"consul_primary_datacenter enable_acl_token_replication consul_agent_configuration audit_logging envoy_image " +
		"consul_image"
	// proxied is what all tasks with a proxy have.
	proxied = "consul_service_name consul_service_tags consul_service_meta consul_partition requires_compatibilities " +
		"cpu memory volumes log_configuration " +
		"iam_role_path additional_task_role_policies additional_execution_role_policies consul_ecs_image " +
		"consul_dataplane_image envoy_readiness_port " +
		"acls service_token_auth_method_name consul_ecs_config enable_transparent_proxy enable_consul_dns " +
		"exclude_inbound_ports exclude_outbound_ports " +
		"exclude_outbound_cidrs exclude_uids tags"
	// leader is what both controllers have.
	leader = "consul_partition consul_partitions_enabled requires_compatibilities log_configuration iam_role_path " +
		"additional_execution_role_policies " +
		"launch_type assign_public_ip security_groups region consul_ecs_image"
	roleOutputs = "task_definition_arn task_role_id task_role_arn execution_role_id execution_role_arn task_tags"
)

// interfaces is what users of the older modules write: required variables, optional ones
// and outputs.
var interfaces = map[string]struct{ required, optional, outputs string }{
	"mesh-task": {
		required: "family container_definitions",
		optional: server + " " + agent + " " + proxied +
			" consul_namespace create_task_role create_execution_role task_role execution_role port outbound_only " +
			"envoy_public_listener_port upstreams ca_cert_file application_shutdown_delay_seconds checks",
		outputs: roleOutputs,
	},
	"gateway-task": {
		required: "family kind ecs_cluster_arn subnets",
		optional: server + " " + agent + " " + proxied +
			" extra_container_definitions gateway_count launch_type assign_public_ip security_groups " +
			"lan_address lan_port wan_address wan_port enable_mesh_gateway_wan_federation lb_enabled lb_vpc_id " +
			"lb_subnets lb_ingress_rule_cidr_blocks " +
			"lb_create_security_group lb_modify_security_group lb_modify_security_group_id custom_load_balancer_config",
		outputs: roleOutputs + " wan_address wan_port lb_security_group_id",
	},
	"controller": {
		required: "name_prefix consul_bootstrap_token_secret_arn ecs_cluster_arn subnets",
		optional: server + " " + leader,
	},
	"acl-controller": {
		required: "name_prefix consul_bootstrap_token_secret_arn ecs_cluster_arn subnets consul_server_http_addr",
		optional: leader + " consul_server_ca_cert_arn",
	},
	"dev-server": {
		required: "ecs_cluster_arn subnet_ids vpc_id",
		optional: "requires_compatibilities cpu memory launch_type assign_public_ip name consul_image consul_license " +
			"log_configuration " +
			"service_discovery_namespace tags tls generate_ca ca_cert_arn ca_key_arn acls generate_bootstrap_token " +
			"bootstrap_token bootstrap_token_arn " +
			"wait_for_steady_state datacenter node_name primary_datacenter retry_join_wan primary_gateways " +
			"enable_mesh_gateway_wan_federation " +
			"enable_cluster_peering additional_dns_names replication_token lb_enabled lb_subnets " +
			"lb_ingress_rule_cidr_blocks " +
			"lb_ingress_rule_security_groups consul_server_startup_timeout gossip_encryption_enabled " +
			"generate_gossip_encryption_key gossip_key_secret_arn",
		outputs: "ecs_service_name security_group_id lb_dns_name lb_security_group_id ca_cert_arn ca_key_arn " +
			"server_dns bootstrap_token_secret_arn " +
			"bootstrap_token_id gossip_key_arn",
	},
}

// TestModulesAcceptTheVariablesOfTheOlderOnes needs no variable that those do not have.
func TestModulesAcceptTheVariablesOfTheOlderOnes(t *testing.T) {
	t.Parallel()
	for name, want := range interfaces {
		module, diagnostics := tfconfig.LoadModule("modules/" + name)
		if diagnostics.HasErrors() {
			t.Fatal(diagnostics.Err())
		}
		required := strings.Fields(want.required)
		for _, variable := range append(required, strings.Fields(want.optional)...) {
			if module.Variables[variable] == nil {
				t.Errorf("%s: no variable %s", name, variable)
			}
		}
		for variable, v := range module.Variables {
			if v.Required && !slices.Contains(required, variable) {
				t.Errorf("%s: variable %s is required, and older configurations do not have it", name, variable)
			}
		}
		for _, output := range strings.Fields(want.outputs) {
			if module.Outputs[output] == nil {
				t.Errorf("%s: no output %s", name, output)
			}
		}
	}
}

// TestModulesHaveTheSettingsThatTheOlderOnesLack says in which modules a setting has a
// meaning: mesh-task has no service, and containers of a mesh are set by sidecars.
func TestModulesHaveTheSettingsThatTheOlderOnesLack(t *testing.T) {
	t.Parallel()
	const (
		tasks    = "mesh-task gateway-task controller dev-server"
		services = "gateway-task controller dev-server"
		single   = "controller dev-server" // containers are not rendered; acl-controller takes what controller takes
	)
	for setting, modules := range map[string]string{
		"runtime_platform": tasks, "ephemeral_storage": tasks, "placement_constraints": tasks, "skip_destroy": tasks,
		"permissions_boundary": tasks, "restrict_role_trust": tasks, "ecr_repository_arns": tasks,
		"kms_key_arns": tasks, "log_configuration": tasks,
		"additional_execution_role_policies": tasks, "enable_execute_command": tasks,
		"sidecars":                   "mesh-task gateway-task",
		"capacity_provider_strategy": services, "ordered_placement_strategy": services,
		"deployment_circuit_breaker": services,
		"service_tags":               "gateway-task", "tags": tasks,
		"environment": single, "secrets": single, "restart_policy": single, "start_timeout": single,
		"stop_timeout":                single,
		"extra_container_definitions": services,
		// the controller's is read-only and has none
		"readonly_root_filesystem": "dev-server", "drop_capabilities": "dev-server",
	} {
		for _, name := range strings.Fields(modules) {
			module, diagnostics := tfconfig.LoadModule("modules/" + name)
			if diagnostics.HasErrors() {
				t.Fatal(diagnostics.Err())
			}
			if v := module.Variables[setting]; v == nil || v.Required {
				t.Errorf("%s: no optional variable %s", name, setting)
			}
		}
	}
}

// TestACLControllerHasTheVariablesOfController lists the variables that only tasks without an
// agent have.
func TestACLControllerHasTheVariablesOfController(t *testing.T) {
	t.Parallel()
	alias, diagnostics := tfconfig.LoadModule("modules/acl-controller")
	controller, more := tfconfig.LoadModule("modules/controller")
	if diagnostics.HasErrors() || more.HasErrors() {
		t.Fatal(diagnostics.Err(), more.Err())
	}
	text, err := os.ReadFile("modules/acl-controller/main.tf")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range controller.Variables {
		if name == "generation" || slices.Contains(strings.Fields(server), name) {
			continue
		}
		v := alias.Variables[name]
		if v == nil || strings.Join(strings.Fields(v.Type), " ") != strings.Join(strings.Fields(want.Type), " ") {
			t.Errorf("variable %s is %+v, want one of type %s", name, v, want.Type)
		}
		if passed := regexp.MustCompile(`(?m)^ +` + name + ` += var\.` + name + `$`); !passed.Match(text) {
			t.Errorf("variable %s is not passed to the controller", name)
		}
	}
	got, want := slices.Sorted(maps.Keys(alias.Outputs)), slices.Sorted(maps.Keys(controller.Outputs))
	if !slices.Equal(got, want) {
		t.Errorf("outputs %q, want %q", got, want)
	}
}
