package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// agentGatewayTasks has web in dc1, which has no agent, call stock in dc2 through a
// mesh gateway that has one.
const agentGatewayTasks = `
tasks:
  acl-controller: acl-controller.json
  controller: controller.json
  dc2: dc2.json
  operator: operator.json
  web: web.json
  gateway-1: agent-gateway.json
  stock: stock.json
  gateway-2: mesh-gateway-dc2.json

steps:
  - start: [acl-controller, controller]
  - await: {logins: [iam-ecs-client-token, iam-ecs-service-token], within: 60s}
  - start: [dc2, operator, stock, gateway-2, gateway-1]
  - await: {task: operator, stopped: true, stopCode: EssentialContainerExited, within: 90s}
  - await: {task: gateway-1, inTraffic: true, within: 90s}
  - start: [web]
  - await: {service: web, passing: 1, within: 90s}
  - traffic: {task: web, port: 8080, rate: 20}
  - await: {requests: 40, within: 60s}
  - endTraffic: {name: between datacenters, failed: 0}
  - get:
      task: gateway-1
      url: "http://127.0.0.1:19000/stats?usedonly&filter=mesh_gateway"
      has: [tcp.mesh_gateway_local.default.downstream_cx_total]
  - stop: [web]
  - stop: [gateway-1, gateway-2, stock]
  - kill: {task: dc2}
  - await: {task: dc2, stopped: true, within: 30s}
  - stop: [controller, acl-controller]

checks:
  minRequests: 40
  noTokensOf: [iam-ecs-client-token, iam-ecs-service-token]
  noServices: [web, web-sidecar-proxy, mesh-gateway]
  agentsLeft: true
  cleanExits: true
`

// A mesh gateway of the generation with an agent joins two datacenters, beside tasks
// without one.
func TestEndToEndTwoDatacentersThroughAnAgentsGateway(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	dir := derive(t, "two-datacenters", agentGatewayTasks, aclControllerBefore, aclControllerRole, "  tokens:\n", "  tokens:\n"+aclControllerToken)
	writeAgentGateway(t, dir)
	code, report, _ := runReport(t, programs(t), dir)
	if code != 0 || report.Answered < 40 || report.Failed != 0 || len(report.Failures) != 0 || len(report.Left) != 0 {
		t.Errorf("exit %d, report %+v; want nothing lost of 40 requests and more", code, report)
	}
}

// aclControllerRole goes in place of aclControllerBefore, and aclControllerToken in front of
// the tokens of a scenario's server, for a controller of tasks with agents.
const (
	aclControllerBefore = "  agentless-mesh-controller:\n"
	aclControllerRole   = "  hello-mesh-controller:\n    actions: [\"ecs:ListTasks\", \"ecs:DescribeTasks\"]\n" + aclControllerBefore
	aclControllerToken  = `    - secret: arn:aws:secretsmanager:us-east-1:123456789012:secret:hello-mesh/controller-token
      rules: |
        acl = "write"
        key_prefix "consul-ecs/" { policy = "write" }
        session_prefix "" { policy = "write" }
        node_prefix "" { policy = "write" }
        service_prefix "" { policy = "write" }
`
)

// writeAgentGateway writes the task definitions of a gateway with an agent and of both
// controllers.
func writeAgentGateway(t *testing.T, dir string) {
	t.Helper()
	writeFiles(t, dir, map[string]string{
		"acl-controller.json": string(readFile(t, filepath.Join(example("hello-mesh"), "controller.json"))),
		"controller.json":     string(readFile(t, filepath.Join(example("agentless-mesh"), "controller.json"))),
		"agent-gateway.json":  string(agentGateway(t)),
	})
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// agentGateway makes a gateway of hello-mesh's api: another configuration, and no
// application.
func agentGateway(t *testing.T) []byte {
	t.Helper()
	text := strings.NewReplacer("role/consul-ecs/api", "role/consul-ecs/mesh-gateway", `"family": "api"`, `"family": "mesh-gateway"`,
		`\"healthSyncContainers\":[\"api\"],\"service\":{\"name\":\"api\",\"port\":9090},\"proxy\":{\"upstreams\":[]}`,
		`\"gateway\":{\"kind\":\"mesh-gateway\",\"name\":\"mesh-gateway\"}`,
		`"127.0.0.1:20000"`, `"127.0.0.1:19000"`,
	).Replace(string(readFile(t, filepath.Join(example("hello-mesh"), "api.json"))))
	var definition map[string]any
	if err := json.Unmarshal([]byte(text), &definition); err != nil {
		t.Fatal(err)
	}
	containers := definition["containerDefinitions"].([]any)
	definition["containerDefinitions"] = slices.DeleteFunc(containers, func(c any) bool { return c.(map[string]any)["name"] == "api" })
	gateway, err := json.Marshal(definition)
	if err != nil {
		t.Fatal(err)
	}
	return gateway
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
