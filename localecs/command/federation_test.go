package command

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// federationTasks has web in dc1 call stock in dc2, and the servers of both call each other,
// through mesh gateways only.
const federationTasks = `
tasks:
  controller: controller.json
  dc2: dc2.json
  operator: operator.json
  web: web.json
  gateway-1: mesh-gateway.json
  gateway-1b: mesh-gateway.json
  stock: stock.json
  gateway-2: mesh-gateway-dc2.json

steps:
  # The servers of dc2 wait for the gateway of dc1, and its tasks for the servers.
  - start: [controller, dc2, gateway-2, stock, gateway-1]
  - await: {task: gateway-1, inTraffic: true, within: 90s}
  - start: [operator]
  - await: {task: operator, stopped: true, stopCode: EssentialContainerExited, within: 120s}
  - start: [web]
  - await: {service: web, passing: 1, within: 90s}

  - traffic: {task: web, port: 8080, rate: 20}
  - await: {requests: 40, within: 60s}
  - endTraffic: {name: between datacenters, failed: 0}
  # Another gateway, and the first one leaves under traffic. Consul sends requests to a
  # gateway of a federation as soon as it is registered, also before its Envoy listens.
  - start: [gateway-1b]
  - await: {task: gateway-1b, inTraffic: true, within: 60s}
  - traffic: {task: web, port: 8080, rate: 20}
  - await: {requests: 20, within: 60s}
  - stop: [gateway-1]
  - await: {requests: 40, within: 60s}
  - endTraffic: {name: a gateway leaves, failed: 0}
  - get:
      task: gateway-1b
      url: "http://127.0.0.1:19000/stats?usedonly&filter=mesh_gateway"
      has: [tcp.mesh_gateway_remote]
  - get:
      task: gateway-2
      url: "http://127.0.0.1:19000/stats?usedonly&filter=mesh_gateway"
      has: [tcp.mesh_gateway_local]
  - stop: [web]
  - stop: [gateway-2, stock]
  # The rights of the anonymous token are replicated, too.
  - get: {task: dc2, url: "http://127.0.0.1:8500/v1/catalog/services", has: [consul], lacks: [stock, mesh-gateway]}
  - kill: {task: dc2}
  - await: {task: dc2, stopped: true, within: 30s}
  - stop: [gateway-1b]
  - stop: [controller]

checks:
  minRequests: 100
  noTokensOf: [iam-ecs-service-token]
  noServices: [web, web-sidecar-proxy, mesh-gateway]
  cleanExits: true
`

// primaryOfFederation goes in front of the tokens of the scenario's server.
const primaryOfFederation = `  datacenter: dc1
  config:
    primary_datacenter: dc1
    ports: {grpc_tls: 8503}
    connect: {enable_mesh_gateway_wan_federation: true}
    tls:
      defaults: {ca_file: /tls/ca.pem, cert_file: /tls/cert.pem, key_file: /tls/key.pem, verify_outgoing: true}
      internal_rpc: {verify_incoming: true, verify_server_hostname: true}
` + federationTokens

// federationTokens are an intention, what servers of another datacenter need, and the token of its tasks.
const federationTokens = `  configEntries:
    - {Kind: service-intentions, Name: stock, Sources: [{Name: web, Action: allow}]}
  tokens:
    - secret: arn:aws:secretsmanager:us-east-1:123456789012:secret:two-datacenters/server-token
      rules: |
        acl = "write"
        operator = "write"
        node_prefix "" { policy = "write" }
        agent_prefix "" { policy = "write" }
        service_prefix "" { policy = "read" intentions = "read" }
    - secret: arn:aws:secretsmanager:us-east-1:123456789012:secret:two-datacenters/task-token
      rules: |
        mesh = "write"
        node_prefix "" { policy = "write" }
        service_prefix "" { policy = "write" }
`

// secondaryOfFederation is the server of dc2, whose only way to dc1 are mesh gateways.
const secondaryOfFederation = `exec consul agent "$@" -hcl="acl { tokens { agent = \"$CONSUL_HTTP_TOKEN\" replication = \"$CONSUL_HTTP_TOKEN\" } }" -hcl='
primary_datacenter = "dc1"
primary_gateways = ["mesh-gateway.datacenters.local:8443"]
primary_gateways_interval = "1s"
retry_interval_wan = "1s"
ports { grpc_tls = 8503 }
connect { enabled = true enable_mesh_gateway_wan_federation = true }
acl { enabled = true default_policy = "deny" enable_token_replication = true }
tls {
  defaults { ca_file = "/tls/ca.pem" cert_file = "/tls/cert.pem" key_file = "/tls/key.pem" verify_outgoing = true }
  internal_rpc { verify_incoming = true verify_server_hostname = true }
}'
`

// awaitFederation asks dc1 for the health of dc2.
const awaitFederation = `until case $(consul watch -datacenter=dc2 -type=service -service=stock-sidecar-proxy -passingonly=true) in *ServiceID*) true ;; *) false ;; esac; do
	sleep 0.2
done
`

// secretOf returns the beginning of a container's member environment, with a secret before it.
func secretOf(name, rest string) string {
	return `"secrets": [{"name": "CONSUL_HTTP_TOKEN", "valueFrom": "arn:aws:secretsmanager:us-east-1:123456789012:secret:two-datacenters/` + name + `"}],
      ` + rest
}

// Two datacenters that are federated through their mesh gateways: requests, the servers' own calls, and the replication
// of tokens and intentions go through them, with the rights that the controller gives to mesh gateways.
func TestEndToEndFederationThroughMeshGateways(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for _, consul := range []string{"consul", testkit.NewestConsul} {
		t.Run(consul, func(t *testing.T) {
			t.Parallel()
			code, report, events := runReport(t, programsWith(t, consul), federation(t))
			if code != 0 || report.Answered < 100 || report.Failed != 0 || len(report.Failures) != 0 || len(report.Left) != 0 {
				t.Errorf("exit %d, report %+v; want nothing lost of 100 requests and more", code, report)
			}
			wantEvents(t, events, []event{
				{Kind: "check", Task: "gateway-1", Text: "Consul dataplane readiness (mesh-gateway): gone"},
				{Kind: "cleared", Task: "gateway-1", Text: "nothing left of the task"},
				{Kind: "cleared", Task: "gateway-1b", Text: "nothing left of the task"},
			})
		})
	}
}

// leavingGatewaysTasks has gateways of dc1 leave under traffic, one without an agent and one
// with it. The servers gossip, so no gateway is marked as one of a federation. An agent
// asks every 30 s which datacenters there are, so the gateways of dc1 start when dc2 is one.
const leavingGatewaysTasks = `
tasks:
  acl-controller: acl-controller.json
  controller: controller.json
  dc2: dc2.json
  operator: operator.json
  web: web.json
  gateway-1: mesh-gateway.json
  gateway-1a: agent-gateway.json
  gateway-1b: mesh-gateway.json
  stock: stock.json
  gateway-2: mesh-gateway-dc2.json

steps:
  - start: [acl-controller, controller]
  - await: {logins: [iam-ecs-client-token, iam-ecs-service-token], within: 60s}
  - start: [dc2, gateway-2, stock, operator]
  - await: {task: operator, stopped: true, stopCode: EssentialContainerExited, within: 120s}
  - start: [web, gateway-1, gateway-1a]
  - await: {task: gateway-1, inTraffic: true, within: 90s}
  - await: {task: gateway-1a, inTraffic: true, within: 90s}
  - await: {service: web, passing: 1, within: 90s}
  - traffic: {task: web, port: 8080, rate: 50}
  - await: {requests: 100, within: 60s}
  - stop: [gateway-1]
  - await: {requests: 100, within: 60s}
  - endTraffic: {name: a gateway without an agent leaves, failed: 0}
  - start: [gateway-1b]
  - await: {task: gateway-1b, inTraffic: true, within: 60s}
  - traffic: {task: web, port: 8080, rate: 50}
  - await: {requests: 100, within: 60s}
  - stop: [gateway-1a]
  - await: {requests: 100, within: 60s}
  - endTraffic: {name: a gateway with an agent leaves, failed: 0}
  - get:
      task: gateway-1b
      url: "http://127.0.0.1:19000/stats?usedonly&filter=mesh_gateway"
      has: [tcp.mesh_gateway_remote]
  - stop: [web]
  - stop: [gateway-1b, gateway-2, stock]
  - kill: {task: dc2}
  - await: {task: dc2, stopped: true, within: 30s}
  - stop: [controller, acl-controller]

checks:
  minRequests: 400
  noTokensOf: [iam-ecs-client-token, iam-ecs-service-token]
  noServices: [web, web-sidecar-proxy, mesh-gateway]
  agentsLeft: true
  cleanExits: true
`

// secondaryOfGossip is the server of dc2, which reaches that of dc1 by itself.
const secondaryOfGossip = `exec consul agent "$@" -hcl="acl { tokens { agent = \"$CONSUL_HTTP_TOKEN\" replication = \"$CONSUL_HTTP_TOKEN\" } }" -hcl='
primary_datacenter = "dc1"
retry_join_wan = ["10.42.0.254"]
retry_interval_wan = "1s"
acl { enabled = true default_policy = "deny" enable_token_replication = true }'
`

// Sidecar proxies send requests for another datacenter to each mesh gateway of theirs that
// is registered, whatever its health, also when the servers do without gateways.
func TestEndToEndGatewaysLeaveAFederation(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for _, consul := range []string{"consul", testkit.NewestConsul} {
		t.Run(consul, func(t *testing.T) {
			t.Parallel()
			dir := betweenDatacenters(t, leavingGatewaysTasks, secondaryOfGossip, aclControllerBefore, aclControllerRole,
				"  datacenter: dc1\n  tokens:\n", "  datacenter: dc1\n  config: {primary_datacenter: dc1}\n"+federationTokens+aclControllerToken)
			writeAgentGateway(t, dir)
			writeFiles(t, dir, map[string]string{"controller.json": anonymousReaders(t)})
			code, report, _ := runReport(t, programsWith(t, consul), dir)
			if code != 0 || report.Answered < 400 || report.Failed != 0 || len(report.Failures) != 0 || len(report.Left) != 0 {
				t.Errorf("exit %d, report %+v; want nothing lost of 400 requests and more", code, report)
			}
		})
	}
}

// federation derives the scenario of a federation through gateways.
func federation(t *testing.T) (dir string) {
	t.Helper()
	dir = betweenDatacenters(t, federationTasks, secondaryOfFederation,
		"      /operator.sh: operator.sh\n", `      /operator.sh: operator.sh
      /dc2.sh: dc2.sh
      /tls/ca.pem: ca.pem
      /tls/cert.pem: cert.pem
      /tls/key.pem: key.pem
`,
		"  datacenter: dc1\n  tokens:\n", primaryOfFederation,
		`\"name\":\"mesh-gateway\",`, `\"name\":\"mesh-gateway\",\"meta\":{\"consul-wan-federation\":\"1\"},`,
		`\"proxy\":{\"mode\":\"direct\"}}}`, `\"proxy\":{\"mode\":\"direct\"},\"wanAddress\":{\"address\":\"mesh-gateway.datacenters.local\",\"port\":8443}}}`)
	err := testkit.WriteCertificates(dir, "server.dc1.consul", "consul-server.server.dc1.consul", "server.dc2.consul", "dc2-server.server.dc2.consul")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// betweenDatacenters derives a scenario of federated datacenters from that of cluster peers.
// secondary starts the server of dc2.
func betweenDatacenters(t *testing.T, tasks, secondary string, oldnew ...string) (dir string) {
	t.Helper()
	const dc2Tasks = `"environment": [
        {
          "name": "CONSUL_ECS_CONFIG_JSON",
          "value": "{\"bootstrapDir\":\"/consul\",\"consulServers\":{\"hosts\":\"dc2.`
	dir = derive(t, "two-datacenters", tasks, append(oldnew,
		"      /operator.sh: operator.sh\n", "      /operator.sh: operator.sh\n      /dc2.sh: dc2.sh\n",
		`key_prefix "consul-ecs/"`, `agent_prefix "" { policy = "read" } key_prefix "consul-ecs/"`, // for -anonymous-read
		`peering = "write"`, `service_prefix "" { policy = "read" } node_prefix "" { policy = "read" }`,
		`"consul",
        "agent",
        "-server",`, `"sh", "-eu", "/dc2.sh", "-server",`,
		`"portMappings": [
        {
          "containerPort": 8500`, secretOf("server-token", `"portMappings": [
        {
          "containerPort": 8500`),
		dc2Tasks, secretOf("task-token", dc2Tasks),
		`\"destinationPeer\":\"dc2\"`, `\"datacenter\":\"dc2\"`)...)
	writeFiles(t, dir, map[string]string{
		"controller.json": anonymousReaders(t), "operator.sh": awaitFederation, "dc2.sh": secondary,
	})
	return dir
}

// anonymousReaders returns the controller that lets requests without a token read services, as a
// server's are to another datacenter: a task's token is not known there.
func anonymousReaders(t *testing.T) string {
	t.Helper()
	text := string(readFile(t, filepath.Join(example("agentless-mesh"), "controller.json")))
	return strings.Replace(text, `"-interval",`, `"-anonymous-read", "-interval",`, 1)
}
