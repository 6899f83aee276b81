package terraform_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/meshtask/consul-ecs/terraform/internal/stub"
	"github.com/meshtask/consul-ecs/terraform/internal/tftest"
)

// controllerInput returns the required variables of modules/controller, with changes.
func controllerInput(changes map[string]any) map[string]any {
	input := map[string]any{
		"name_prefix": "mesh", "consul_ecs_image": "consul-ecs:1", "subnets": []string{"subnet-1"},
		"consul_server_hosts":               "consul.example.com",
		"ecs_cluster_arn":                   "arn:aws:ecs:us-east-1:123456789012:cluster/mesh",
		"consul_bootstrap_token_secret_arn": "arn:aws:secretsmanager:us-east-1:123456789012:secret:token-AbCdEf",
	}
	maps.Copy(input, changes)
	return input
}

// only fails the test unless there is one message, and it has the text.
func only(t *testing.T, messages []string, want string) {
	t.Helper()
	if len(messages) != 1 || !strings.Contains(strings.Join(strings.Fields(messages[0]), " "), want) {
		t.Errorf("got %q, want one message with %q", messages, want)
	}
}

func TestControllerAppliesOnceAndIsDestroyed(t *testing.T) {
	t.Parallel()
	w := tftest.New(t, "modules/controller", stub.AWS6)
	state := w.Apply(controllerInput(map[string]any{"tags": map[string]any{"team": "mesh"}, "metrics_port": 9102}))
	if got := state.Outputs["ecs_service_name"]; got != "consul-ecs-controller" {
		t.Errorf("service %v", got)
	}
	w.Unchanged()
	w.Destroy()
}

// TestControllerIsAppliedWithItsServer applies secrets that the plan does not know.
func TestControllerIsAppliedWithItsServer(t *testing.T) {
	t.Parallel()
	w := tftest.New(t, "modules/controller/tests/first_apply", stub.AWS6)
	for _, generation := range []string{"agentless", "agent"} {
		state := w.Apply(map[string]any{"generation": generation})
		var containers []taskdef.Container
		state.JSON("module.controller.aws_ecs_task_definition.this", "container_definitions", &containers)
		if got := containers[0].Secrets[0].ValueFrom; got != state.Outputs["token"] {
			t.Errorf("%s: the token is %v, want %v", generation, got, state.Outputs["token"])
		}
		w.Unchanged()
	}
}

// TestControllerReadsItsConfiguration gives what the module renders to the parser of the
// command.
func TestControllerReadsItsConfiguration(t *testing.T) {
	t.Parallel()
	w := tftest.New(t, "modules/controller", stub.AWS6)
	plan := w.Plan(controllerInput(map[string]any{
		"tls": true, "tls_server_name": "server.dc1.consul", "consul_partitions_enabled": true,
		"consul_partition": "ecs",
		"http_config":      map[string]any{"port": 443, "https": true, "tlsServerName": "h"},
		"grpc_config":      map[string]any{"port": 444, "tls": true, "tlsServerName": "g"},
	}))
	var containers []taskdef.Container
	plan.JSON("aws_ecs_task_definition.this", "container_definitions", &containers)
	var document string
	for _, e := range containers[0].Environment {
		if e.Name == config.EnvVar {
			document = e.Value
		}
	}
	cfg, findings, err := config.Parse([]byte(document))
	if err != nil || len(findings) > 0 {
		t.Fatalf("%v %v\n%s", err, findings, document)
	}
	c := cfg.Controller
	if got, want := []any{
		c.IAMRolePath, c.PartitionsEnabled, c.Partition,
	}, []any{"/consul-ecs/", true, "ecs"}; !slices.Equal(got, want) {
		t.Errorf("role path, partitions enabled and partition are %v, want %v", got, want)
	}
	s := cfg.ConsulServers
	if got, want := []any{
		s.HTTP.Port, s.GRPC.Port, s.Defaults.TLS, s.HTTP.TLSServerName,
	}, []any{443, 444, true, "h"}; !slices.Equal(got, want) {
		t.Errorf("ports, TLS and server name are %v, want %v", got, want)
	}
}

func TestControllerErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	w := tftest.New(t, "modules/controller", stub.AWS6)
	for _, tt := range []struct {
		name    string
		changes map[string]any
		want    string
	}{
		{
			"long prefix", map[string]any{"name_prefix": strings.Repeat("a", 33)},
			"name_prefix must have 1 to 32 letters",
		},
		{
			"token in the open", map[string]any{"consul_bootstrap_token_secret_arn": "1234"},
			"the token itself would be in the task definition",
		},
		{
			"no hosts", map[string]any{"consul_server_hosts": nil},
			"Set consul_server_hosts to the address of the Consul servers",
		},
		{
			"unknown key", map[string]any{"http_config": map[string]any{"prot": 1}},
			"http_config accepts only port, https, tls and tlsServerName.",
		},
		{
			"container without a list", map[string]any{
				"extra_container_definitions": map[string]any{"name": "log", "image": "log:1"},
			}, "extra_container_definitions must be a list of containers, each with a name.",
		},
		{
			"name of the cluster", map[string]any{"ecs_cluster_arn": "mesh"},
			"ecs_cluster_arn must be the ARN of the cluster",
		},
		{
			"whole account", map[string]any{"iam_role_path": "/"},
			"every role of the account could log in as any service",
		},
		{
			"long image", map[string]any{"consul_ecs_image": strings.Repeat("i", 256)},
			"Container.image should be 255 characters or less",
		},
	} {
		t.Run(tt.name, func(t *testing.T) { // one after the other: they share a directory
			only(t, w.PlanErrors(controllerInput(tt.changes)), tt.want)
		})
	}
	only(t, w.PlanWarnings(controllerInput(map[string]any{"region": "eu-west-1"})),
		"region has no effect: the controller is in the provider's region, us-east-1.")
}

// TestValidateIsNotVacuous removes what the module sets from the provider's schema.
func TestValidateIsNotVacuous(t *testing.T) {
	t.Parallel()
	w := tftest.New(t, "modules/controller", stub.AWS6)
	for _, path := range []string{
		"aws_ecs_task_definition.runtime_platform.cpu_architecture", "aws_ecs_service.deployment_circuit_breaker",
		"aws_iam_role.permissions_boundary",
	} {
		out, code := w.Run([]string{stub.DropVariable + "=" + path}, "validate", "-json")
		if errs := slices.Collect(strings.Lines(out)); code == 0 {
			t.Errorf("valid without %s: %q", path, errs)
		}
	}
}
