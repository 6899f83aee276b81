package terraform_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/terraform/internal/stub"
	"github.com/meshtask/consul-ecs/terraform/internal/tftest"
)

// helloTask returns the variables of mesh-task for a task of examples/agentless-mesh.
func helloTask(name string, port int, command ...string) values {
	check := []string{"CMD", "/hello", "get", "http://127.0.0.1:8080/health"}
	if port != 8080 {
		check[3] = "http://127.0.0.1:9090/health"
	}
	return values{
		"family": name, "port": port, "cpu": 512, "memory": 1024, "requires_compatibilities": []string{"FARGATE"},
		"acls": true, "consul_server_hosts": "10.42.0.254",
		"consul_ecs_image": "consul-ecs:1.0.0-beta.1", // as the scenarios name it
		"container_definitions": []values{{
			"name": name, "image": "example/hello:1", "entryPoint": []string{"/hello"}, "command": command,
			"healthCheck": values{"command": check, "interval": 5, "retries": 1, "timeout": 2},
			"logConfiguration": values{"logDriver": "awslogs", "options": values{
				"awslogs-group": "/ecs/rendered", "awslogs-region": "us-east-1", "awslogs-stream-prefix": name,
			}},
		}},
	}
}

// definition returns what terraform would register, as localecs reads it.
func definition(t *testing.T, s *tftest.State, module string) []byte {
	t.Helper()
	address := module + ".aws_ecs_task_definition.this"
	resource := s.Resource(address)
	var containers []any
	s.JSON(address, "container_definitions", &containers)
	volumes := []any{}
	for _, v := range resource["volume"].([]any) {
		volumes = append(volumes, map[string]any{"name": v.(map[string]any)["name"]})
	}
	doc, err := json.Marshal(map[string]any{
		"family": resource["family"], "networkMode": resource["network_mode"],
		"requiresCompatibilities": resource["requires_compatibilities"],
		"cpu":                     resource["cpu"], "memory": resource["memory"],
		"taskRoleArn":      resource["task_role_arn"],
		"executionRoleArn": resource["execution_role_arn"], "volumes": volumes, "containerDefinitions": containers,
	})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// simulation is what localecs run needs.
type simulation struct{ bin, consul, envoy string }

func newSimulation(t *testing.T) simulation {
	t.Helper()
	testkit.Long(t)
	if os.Getuid() != 0 {
		testkit.Missing(t, "network namespaces need root")
	}
	return simulation{
		bin: testkit.Programs(t), consul: testkit.RequireBinary(t, "consul"), envoy: testkit.RequireBinary(t, "envoy"),
	}
}

// run runs the scenario in a directory.
func (s simulation) run(t *testing.T, dir string, flags ...string) {
	t.Helper()
	args := append([]string{"run", "-var", "bin=" + s.bin, "-var", "consul=" + s.consul, "-var", "envoy=" + s.envoy},
		flags...)
	cmd := exec.CommandContext(t.Context(), filepath.Join(s.bin, "localecs"), append(args, dir)...)
	cmd.Dir = t.TempDir()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("localecs run: %v\n%s", err, tail(string(out), 40))
	}
}

func write(t *testing.T, dir, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestEndToEndRenderedTasksStopInBothOrders runs what mesh-task renders with a real Consul
// and Envoy: all containers essential that can be, without capabilities and with a
// read-only root, stopped in the order of ECS and at once. No request may fail.
//
// It counts lost requests, so no other test of the package runs beside it.
func TestEndToEndRenderedTasksStopInBothOrders(t *testing.T) {
	s := newSimulation(t)
	for example, generation := range map[string]values{
		"agentless-mesh": {},
		"hello-mesh": {
			"generation": "agent", "consul_server_hosts": "", "retry_join": []string{"10.42.0.254"},
			"consul_http_addr":           "http://10.42.0.254:8500",
			"consul_agent_configuration": "disable_update_check = true\nretry_interval = \"1s\"",
		},
	} {
		t.Run(example, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(filepath.Join(testkit.Root(), "examples", example))); err != nil {
				t.Fatal(err)
			}
			web := helloTask("web", 8080, "web", "0.0.0.0:8080", "http://127.0.0.1:9191/")
			web["upstreams"] = []values{{"destinationName": "api", "localBindPort": 9191}}
			for name, input := range map[string]values{
				"web": web, "api": helloTask("api", 9090, "api", "127.0.0.1:9090"),
			} {
				input["sidecars"] = values{
					"proxy":       values{"essential": true},
					"health_sync": values{"essential": true},
				}
				write(t, dir, name+".json",
					definition(t, tftest.New(t, "modules/mesh-task", stub.AWS6).Apply(input.with(generation)),
						"module.task"))
			}
			text, err := os.ReadFile(filepath.Join(dir, "scenario.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			roles := strings.NewReplacer("consul-ecs/web:", "consul-ecs/web-task:", "consul-ecs/api:",
				"consul-ecs/api-task:")
			write(t, dir, "scenario.yaml", []byte(roles.Replace(string(text))))
			s.run(t, dir, "-stop-order", "both")
		})
	}
}

// TestEndToEndSecureMeshIsDeployedAtOnce runs the task definitions of the example as one
// apply starts them: controller and services at the same instant, before there is an
// auth method and while the server does not answer yet. The server has TLS, with a CA that
// the containers know only from the secret that the module's variable names.
func TestEndToEndSecureMeshIsDeployedAtOnce(t *testing.T) {
	s := newSimulation(t)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/secure-mesh")); err != nil {
		t.Fatal(err)
	}
	input := exampleInputs()["secure-mesh"].with(values{
		"consul_server_hosts":  "10.42.0.254",
		"tls_server_name":      "server.dc1.consul",
		"consul_ca_cert_arn":   "arn:aws:secretsmanager:us-east-1:123456789012:secret:ca-AbCdEf",
		"controller_token_arn": "arn:aws:secretsmanager:us-east-1:123456789012:secret:token-AbCdEf",
	})
	state := tftest.New(t, "examples/secure-mesh", stub.AWS6).Apply(input)
	for file, module := range map[string]string{
		"controller.json": "module.controller", "web.json": "module.web.module.task",
		"api.json": "module.api.module.task",
	} {
		write(t, dir, file, definition(t, state, module))
	}
	s.run(t, dir)
}

// tail returns the last lines of a text.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
