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

// helloTask are the variables of mesh-task for a task of examples/agentless-mesh.
func helloTask(name string, port int, command ...string) values {
	check := []string{"CMD", "/hello", "get", "http://127.0.0.1:8080/health"}
	if port != 8080 {
		check[3] = "http://127.0.0.1:9090/health"
	}
	return values{
		"family": name, "port": port, "cpu": 512, "memory": 1024, "requires_compatibilities": []string{"FARGATE"},
		"acls": true, "consul_server_hosts": "10.42.0.254",
		"container_definitions": []values{{
			"name": name, "image": "example/hello:1", "entryPoint": []string{"/hello"}, "command": command,
			"healthCheck": values{"command": check, "interval": 5, "retries": 1, "timeout": 2},
			"logConfiguration": values{"logDriver": "awslogs", "options": values{
				"awslogs-group": "/ecs/rendered", "awslogs-region": "us-east-1", "awslogs-stream-prefix": name,
			}},
		}},
	}
}

// definition is what terraform would register, as localecs reads it.
func definition(t *testing.T, s *tftest.State) []byte {
	t.Helper()
	resource := s.Resource("module.task.aws_ecs_task_definition.this")
	var containers []any
	s.JSON("module.task.aws_ecs_task_definition.this", "container_definitions", &containers)
	doc, err := json.Marshal(map[string]any{
		"family": resource["family"], "networkMode": resource["network_mode"], "requiresCompatibilities": resource["requires_compatibilities"],
		"cpu": resource["cpu"], "memory": resource["memory"], "taskRoleArn": resource["task_role_arn"],
		"executionRoleArn": "arn:aws:iam::123456789012:role/agentless-mesh-execution",
		"volumes":          []any{map[string]any{"name": "consul_data"}}, "containerDefinitions": containers,
	})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestEndToEndRenderedTasksStopInBothOrders runs what mesh-task renders with a real Consul
// and Envoy: all containers essential that can be, without capabilities and with a
// read-only root, stopped in the order of ECS and at once. No request may fail.
//
// It counts lost requests, so no other test of the package runs beside it.
func TestEndToEndRenderedTasksStopInBothOrders(t *testing.T) {
	testkit.Long(t)
	if os.Getuid() != 0 {
		testkit.Missing(t, "network namespaces need root")
	}
	bin, consul, envoy := testkit.Programs(t), testkit.RequireBinary(t, "consul"), testkit.RequireBinary(t, "envoy")

	example := filepath.Join(testkit.Root(), "examples", "agentless-mesh")
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(example)); err != nil {
		t.Fatal(err)
	}
	web := helloTask("web", 8080, "web", "0.0.0.0:8080", "http://127.0.0.1:9191/")
	web["upstreams"] = []values{{"destinationName": "api", "localBindPort": 9191}}
	for name, input := range map[string]values{"web": web, "api": helloTask("api", 9090, "api", "127.0.0.1:9090")} {
		input["sidecars"] = values{
			"all":         values{"readonly_root_filesystem": true, "drop_capabilities": []string{"ALL"}},
			"proxy":       values{"essential": true},
			"health_sync": values{"essential": true},
		}
		if err := os.WriteFile(filepath.Join(dir, name+".json"), definition(t, tftest.New(t, "modules/mesh-task", stub.AWS6).Apply(input)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	scenario := filepath.Join(dir, "scenario.yaml")
	text, err := os.ReadFile(scenario)
	if err != nil {
		t.Fatal(err)
	}
	roles := strings.NewReplacer("consul-ecs/web:", "consul-ecs/web-task:", "consul-ecs/api:", "consul-ecs/api-task:")
	if err := os.WriteFile(scenario, []byte(roles.Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "localecs"), "run", "-stop-order", "both",
		"-var", "bin="+bin, "-var", "consul="+consul, "-var", "envoy="+envoy, dir)
	cmd.Dir = t.TempDir()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("localecs run: %v\n%s", err, tail(string(out), 40))
	}
}

// tail returns the last lines of a text.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
