package terraform_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/terraform/internal/stub"
	"github.com/meshtask/consul-ecs/terraform/internal/tftest"
)

type values map[string]any

// with returns the values with others over them.
func (v values) with(others values) values {
	merged := maps.Clone(v)
	maps.Copy(merged, others)
	return merged
}

var meshTask = values{
	"family": "web", "port": 8080, "consul_server_hosts": "consul.example.com", "consul_ecs_image": consulECS,
	"container_definitions": []values{{"name": "web", "image": "web:1", "entryPoint": []string{"/web"}}},
}

func TestSecondPlanOfMeshTaskIsEmpty(t *testing.T) {
	t.Parallel()
	for _, aws := range []stub.AWS{stub.AWS5, stub.AWS6} {
		t.Run(string(aws), func(t *testing.T) {
			t.Parallel()
			if aws == stub.AWS5 {
				testkit.Long(t)
			}
			w := tftest.New(t, "modules/mesh-task", aws)
			w.Apply(meshTask.with(values{
				"requires_compatibilities": []string{"EC2"}, "acls": true, "tls": true,
				"consul_ca_cert_arn": "arn:aws:secretsmanager:us-east-1:123456789012:secret:ca-AbCdEf",
				"volumes": []values{
					{"name": "data", "host_path": "/data"}, {"name": "cache", "docker_volume_configuration": values{}},
				},
				"runtime_platform": values{"cpu_architecture": "ARM64"},
				"tags":             values{"team": "shop"},
			}))
			w.Unchanged()
		})
	}
}

// TestMeshTaskIsAppliedWithItsServers applies servers, secrets and images that the plan does not know.
func TestMeshTaskIsAppliedWithItsServers(t *testing.T) {
	t.Parallel()
	w := tftest.New(t, "modules/mesh-task/tests/first_apply", stub.AWS6)
	if warnings := w.PlanWarnings(values{}); len(warnings) > 0 {
		t.Errorf("the first plan warns: %q", warnings)
	}
	w.Apply(values{})
	w.Unchanged()
}

// TestExecutionRoleOfMeshTaskReadsEverySecretOfTheTask plans the agent's secrets, the application's and those of its
// log driver.
func TestExecutionRoleOfMeshTaskReadsEverySecretOfTheTask(t *testing.T) {
	t.Parallel()
	secret := func(name string) string { return "arn:aws:secretsmanager:us-east-1:123456789012:secret:" + name }
	plan := tftest.New(t, "modules/mesh-task", stub.AWS6).Plan(meshTask.with(values{
		"generation": "agent", "consul_server_hosts": "", "retry_join": []string{"10.0.0.4"}, "tls": true,
		"consul_server_ca_cert_arn": secret("rpc-AbCdEf"), "consul_https_ca_cert_arn": secret("https-AbCdEf"),
		"gossip_key_secret_arn": secret("gossip-AbCdEf"),
		"container_definitions": []values{{
			"name": "web", "image": "web:1", "entryPoint": []string{"/web"},
			"secrets": []values{{"name": "KEY", "valueFrom": secret("web-AbCdEf:key::")}},
			"logConfiguration": values{
				"logDriver": "splunk", "secretOptions": []values{{"name": "splunk-token", "valueFrom": "/shop/splunk"}},
			},
		}},
	}))
	var policy struct {
		Statement []struct{ Action, Resource []string }
	}
	plan.JSON("module.task.aws_iam_role_policy.execution[0]", "policy", &policy)
	got := map[string][]string{}
	for _, s := range policy.Statement {
		got[s.Action[0]] = slices.Sorted(slices.Values(s.Resource))
	}
	want := map[string][]string{
		"secretsmanager:GetSecretValue": {
			secret("gossip-AbCdEf"), secret("https-AbCdEf"), secret("rpc-AbCdEf"), secret("web-AbCdEf"),
		},
		"ssm:GetParameters":         {"arn:aws:ssm:us-east-1:123456789012:parameter/shop/splunk"},
		"ecr:GetAuthorizationToken": {"*"},
	}
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("the execution role may %v, want %v", got, want)
	}
}

// wantErrors fails the test unless a plan has exactly these errors.
func wantErrors(t *testing.T, w *tftest.Workspace, input values, want ...string) {
	t.Helper()
	found := w.PlanErrors(input)
	for _, message := range want {
		if !slices.ContainsFunc(found, func(have string) bool { return strings.Contains(have, message) }) {
			t.Errorf("no error has %q:\n%s", message, strings.Join(found, "\n"))
		}
	}
	if len(found) != len(want) {
		t.Errorf("%d errors, want %d:\n%s", len(found), len(want), strings.Join(found, "\n"))
	}
}

func TestMeshTaskNamesInvalidVariables(t *testing.T) {
	t.Parallel()
	w := tftest.New(t, "modules/mesh-task", stub.AWS6)
	bad := values{"x": 1}
	t.Run("a wrong key at each level", func(t *testing.T) {
		wantErrors(t, w, meshTask.with(values{
			"http_config": bad, "grpc_config": bad,
			"consul_ecs_config": values{
				"gateway": bad, "consulLogin": bad,
				"transparentProxy": values{"x": 1, "consulDNS": bad},
				"service": values{
					"name": "x", "weights": bad, "networkResilienceConfig": values{"x": 1, "outlierDetection": bad},
				},
				"proxy": values{
					"upstreams": []any{}, "meshGateway": bad, "expose": values{"x": 1, "paths": []values{bad}},
				},
			},
		}),
			"http_config accepts only", "grpc_config accepts only",
			"consul_ecs_config accepts only", "consul_ecs_config.consulLogin accepts only",
			"consul_ecs_config.transparentProxy accepts only",
			"consul_ecs_config.transparentProxy.consulDNS accepts only",
			"consul_ecs_config.service accepts only", "consul_ecs_config.service.weights accepts only",
			"consul_ecs_config.service.networkResilienceConfig accepts only",
			"consul_ecs_config.service.networkResilienceConfig.outlierDetection accepts only",
			"consul_ecs_config.proxy accepts only", "consul_ecs_config.proxy.meshGateway accepts only",
			"consul_ecs_config.proxy.expose accepts only", "consul_ecs_config.proxy.expose.paths accepts only",
		)
	})
	t.Run("servers with scheme or port", func(t *testing.T) {
		for _, hosts := range []string{"https://consul.example.com", "consul.example.com:8501", "10.0.0.4:8501"} {
			wantErrors(t, w, meshTask.with(values{"consul_server_hosts": hosts}),
				"consul_server_hosts has a scheme or a port: give the address alone.")
		}
	})
	t.Run("a certificate in place of its ARN", func(t *testing.T) {
		wantErrors(t, w, meshTask.with(values{"tls": true, "consul_ca_cert_arn": "-----BEGIN CERTIFICATE-----\nMIIB"}),
			"has the certificate itself: store it in Secrets Manager")
	})
	t.Run("members without a value or of another type", func(t *testing.T) {
		wantErrors(t, w, meshTask.with(values{"upstreams": []values{{"destinationName": nil, "localBindPort": 9191}}}),
			"Each item of upstreams needs destinationName and localBindPort")
		wantErrors(t, w, meshTask.with(values{"upstreams": []values{{"destinationName": "api", "localBindPort": nil}}}),
			"Each item of upstreams needs destinationName and localBindPort")
		wantErrors(t, w, meshTask.with(values{"consul_ecs_config": values{"service": "web"}}),
			"In consul_ecs_config, service, proxy, consulLogin and transparentProxy must be objects.")
	})
	t.Run("users that the transparent proxy does not leave out", func(t *testing.T) {
		ec2 := meshTask.with(values{"requires_compatibilities": []string{"EC2"}})
		wantErrors(t, w, ec2.with(values{
			"sidecars": values{"all": values{"user": "1000"}, "health_sync": values{"user": "5996:5996"}},
		}),
			"sidecars sets user 1000 for container consul-ecs-mesh-init, which runs as 0 with the transparent proxy: "+
				"remove it from sidecars.\nsidecars sets user 1000 for container sidecar-proxy, which runs as 5995")
		w.Plan(ec2.with(values{"sidecars": values{"all": values{"user": "1000"}}, "enable_transparent_proxy": false}))
	})
	t.Run("unknown keys of volumes", func(t *testing.T) {
		wantErrors(t, w, meshTask.with(values{"volumes": []values{
			{"name": "data", "hostpath": "/data"},
			{
				"name": "share", "host_path": nil, "docker_volume_configuration": nil,
				"efs_volume_configuration": values{
					"file_system_id": "fs-1", "authorization_config": values{"IAM": "ENABLED"},
				},
			},
			{"name": "cache", "docker_volume_configuration": values{"scope": "task", "driver_options": values{}}},
		}}), "In volumes, data accepts only name, host_path, docker_volume_configuration, efs_volume_configuration, "+
			"fsx_windows_file_server_volume_configuration, and not hostpath. "+
			"share.efs_volume_configuration.authorization_config accepts only access_point_id, iam, and not IAM. "+
			"cache.docker_volume_configuration accepts only autoprovision, driver, driver_opts, labels, scope, and "+
			"not driver_options.")
	})
	t.Run("a reserved name", func(t *testing.T) {
		wantErrors(t, w, meshTask.with(values{
			"container_definitions": []values{{"name": "consul-dataplane", "image": "i"}},
		}),
			"has the name of a container of the mesh")
	})
	t.Run("two containers of one name", func(t *testing.T) {
		wantErrors(t, w, meshTask.with(values{
			"container_definitions": []values{{"name": "web", "image": "i"}, {"name": "web", "image": "i"}},
		}),
			"Two containers in container_definitions have the same name.")
	})
	t.Run("no essential application", func(t *testing.T) {
		wantErrors(t, w, meshTask.with(values{
			"container_definitions": []values{{"name": "web", "image": "i", "essential": false}},
		}),
			"No container of container_definitions is an essential application")
	})
	t.Run("long family", func(t *testing.T) {
		wantErrors(t, w, meshTask.with(values{"family": strings.Repeat("f", 55)}),
			"family has more than 54 characters: the execution role is named <family>-execution")
	})
	t.Run("agent without servers", func(t *testing.T) {
		wantErrors(t, w, meshTask.with(values{"generation": "agent", "acls": true, "tls": true}),
			"generation agent needs retry_join", "acls with generation agent needs consul_http_addr",
			"tls with generation agent needs consul_server_ca_cert_arn")
	})
}

// TestMeshTaskShowsMessagesAboutSensitiveDefinitions plans a definition that is sensitive as a whole, as one with a
// password in it is.
func TestMeshTaskShowsMessagesAboutSensitiveDefinitions(t *testing.T) {
	t.Parallel()
	w := tftest.New(t, "modules/mesh-task/tests/sensitive", stub.AWS6)
	wantErrors(t, w, values{"user": "5995"}, "Container web runs as the user of the proxy or of health-sync")
	warnings := w.PlanWarnings(values{"user": "1000"})
	for _, want := range []string{
		"Container web is not wrapped, because it has neither entryPoint nor command",
		"no effect with generation agentless: consul_agent_configuration.",
	} {
		if len(warnings) != 2 || !strings.Contains(strings.Join(warnings, " "), want) {
			t.Errorf("warnings %q, want one with %q", warnings, want)
		}
	}
}

func TestMeshTaskWarnsAboutVariablesWithoutEffect(t *testing.T) {
	t.Parallel()
	w := tftest.New(t, "modules/mesh-task", stub.AWS6)
	for _, tt := range []struct {
		input values
		want  string
	}{
		{
			values{"audit_logging": true, "acls": true, "retry_join": []string{"10.0.0.4"}},
			"with generation agentless: audit_logging, retry_join.",
		},
		{
			values{
				"exclude_uids": []string{"1000"}, "consul_dataplane_image": "dataplane:1", "envoy_image": "envoy:1",
				"consul_primary_datacenter": "dc0", "enable_acl_token_replication": true,
			},
			"with generation agentless: consul_primary_datacenter, enable_acl_token_replication, envoy_image (with " +
				"consul_dataplane_image), exclude_uids (without transparent proxy).",
		},
		{
			values{
				"consul_ca_cert_arn": "arn:ca", "consul_grpc_ca_cert_arn": "arn:grpc",
				"consul_https_ca_cert_arn": "arn:https",
			},
			"with generation agentless: consul_ca_cert_arn (without tls), consul_grpc_ca_cert_arn (without tls), " +
				"consul_https_ca_cert_arn (without tls).",
		},
		{
			values{
				"generation": "agent", "consul_server_hosts": "", "retry_join": []string{"10.0.0.4"},
				"tls_server_name": "a", "ca_cert_file": "/ca.pem", "http_config": values{"port": 1},
			},
			"with generation agent: ca_cert_file, http_config, tls_server_name.",
		},
	} {
		t.Run(tt.want, func(t *testing.T) { // one after the other: they share a directory
			only(t, w.PlanWarnings(meshTask.with(tt.input)), "These variables have no effect "+tt.want)
		})
	}
}
