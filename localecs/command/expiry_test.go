package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shortLives are the auth methods of both generations, made before the controllers, which leave
// their MaxTokenTTL alone: the least that Consul permits.
const shortLives = `datacenter: dc1
  authMethods:
    - name: iam-ecs-client-token
      maxTokenTTL: 1m
      boundPrincipals: ["arn:aws:iam::123456789012:role/consul-ecs/*"]
      bindRules: |
        node_prefix "" { policy = "write" }
        service_prefix "" { policy = "read" }
    - name: iam-ecs-service-token
      maxTokenTTL: 1m
      boundPrincipals: ["arn:aws:iam::123456789012:role/consul-ecs/*"]
      entityTags: [consul.hashicorp.com.service-name]
      bindService: ${entity_tags.consul.hashicorp.com.service-name}`

// throughExpiries has requests cross both generations while tokens expire, and then the mesh
// change: an Envoy without a valid token would not learn of it.
const throughExpiries = `
tasks:
  acl-controller: hello-mesh-controller.json
  controller: agentless-mesh-controller.json
  web-agent: hello-mesh-web.json
  web-agentless: agentless-mesh-web.json
  api-agent-1: hello-mesh-api.json
  api-agent-2: hello-mesh-api.json
  api-agentless-1: agentless-mesh-api.json
  api-agentless-2: agentless-mesh-api.json

steps:
  - start: [acl-controller, controller]
  - await: {logins: [iam-ecs-client-token, iam-ecs-service-token], within: 60s}
  - start: [web-agent, web-agentless, api-agent-1, api-agentless-1]
  - await: {service: api, passing: 2, within: 90s}
  - await: {service: web, passing: 2, within: 90s}
  - traffic: {task: web-agent, port: 8080, rate: 20}
PAUSES
  - start: [api-agent-2, api-agentless-2]
  - await: {service: api, passing: 4, within: 90s}
  - post: {task: api-agent-1, url: "http://127.0.0.1:9090/health/fail"}
  - post: {task: api-agentless-1, url: "http://127.0.0.1:9090/health/fail"}
  - await: {task: api-agent-1, inTraffic: false, within: 60s}
  - await: {task: api-agentless-1, inTraffic: false, within: 60s}
  - stop: [api-agent-1, api-agentless-1]
  - await: {requests: 40, within: 60s}
  - endTraffic: {name: with an agent, failed: 0}
  - traffic: {task: web-agentless, port: 8080, rate: 20}
  - await: {requests: 100, within: 60s}
  - stop: [api-agent-2]
  - await: {requests: 40, within: 60s}
  - endTraffic: {name: without an agent, failed: 0}
  - stop: [web-agent, web-agentless, api-agentless-2]
  - pause: 3s # for the events of the last logouts
  - stop: [acl-controller, controller]

checks:
  minRequests: 1000
  noTokensOf: [iam-ecs-client-token, iam-ecs-service-token]
  noServices: [web, web-sidecar-proxy, api, api-sidecar-proxy]
  agentsLeft: true
  cleanExits: true
`

// TestEndToEndExpiringTokens measures two expiries of each token, or in the long lane ten: no
// request fails, and no token is left.
func TestEndToEndExpiringTokens(t *testing.T) {
	t.Parallel()
	pauses, renewals := "  - pause: 125s", 2
	if !testing.Short() {
		pauses, renewals = "  - pause: 310s\n  - pause: 310s", 10
	}
	dir := derive(t, "mixed-mesh", strings.Replace(throughExpiries, "PAUSES", pauses, 1), "datacenter: dc1", shortLives)
	copyDefinitions(t, dir, "hello-mesh", "agentless-mesh")
	code, report, events := runReport(t, programs(t), dir)
	if code != 0 {
		t.Errorf("exit %d", code)
	}
	if report.Failed != 0 || len(report.Failures) != 0 {
		t.Errorf("report %+v, want no failure", report)
	}
	if len(report.Left) != 0 {
		t.Errorf("left: %+v", report.Left)
	}
	tokens := map[string]int{}
	for _, e := range events {
		if e.Kind == "token" {
			tokens[e.Task+": "+e.Text]++
		}
	}
	for of, n := range tokens {
		if ended := strings.Replace(of, "login", "logout", 1); tokens[ended] != n && ended != of {
			t.Errorf("%s: %d times, but %d logouts", of, n, tokens[ended])
		}
	}
	for _, of := range []string{
		"web-agent: login by iam-ecs-client-token", "web-agent: login by iam-ecs-service-token",
		"web-agentless: login by iam-ecs-service-token",
	} {
		if n := tokens[of]; n <= renewals {
			t.Errorf("%s: %d times, want more than %d", of, n, renewals)
		}
	}
	t.Logf("%d requests; tokens: %v", report.Answered, tokens)
}

// copyDefinitions copies the task definitions of examples, whose names they get in front.
func copyDefinitions(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		files, err := filepath.Glob(filepath.Join(example(name), "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name+"-"+filepath.Base(file)), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
