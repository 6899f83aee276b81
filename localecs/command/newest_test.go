package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// The examples of both generations pass with the newest Consul, servers and agents.
func TestEndToEndNewestConsul(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	programs := programsWith(t, testkit.NewestConsul)
	for name, requests := range map[string]int{"hello-mesh": 200, "agentless-mesh": 200, "mixed-mesh": 1000, "agentless-gateways": 100, "two-datacenters": 80} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, report, _ := runReport(t, programs, example(name))
			if code != 0 || report.Failed != 0 || report.Answered < requests || len(report.Failures) != 0 {
				t.Errorf("exit %d, report %+v, want no failure and %d requests", code, report, requests)
			}
		})
	}
}

// withSessions kills the health-sync of api-1 and nothing else of it, while web calls
// api-1 and api-2.
const withSessions = `
tasks:
  controller: controller.json
  operator: operator.json
  web: web.json
  api-1: api.json
  api-2: api.json

steps:
  - start: [controller]
  - await: {logins: [iam-ecs-service-token], within: 60s}
  - start: [operator]
  - await: {task: operator, stopped: true, stopCode: EssentialContainerExited, within: 60s}
  - start: [web, api-1, api-2]
  - await: {service: api, passing: 2, within: 90s}
  - await: {service: web, passing: 1, within: 90s}
  - traffic: {task: web, port: 8080, rate: 20}
  - await: {requests: 40, within: 60s}
  - kill: {task: api-1, container: consul-ecs-health-sync, process: consul-ecs}
  - await: {task: api-1, inTraffic: false, within: 60s}
  - get: {task: api-1, url: "http://127.0.0.1:9090/", has: [hello]}
  - await: {requests: 40, within: 60s}
  - stop: [api-1]
  - get:
      task: controller
      url: http://127.0.0.1:9102/metrics
      has:
        - 'deletions_total{kind="token",reason="stopped"} 1'
        - 'deletions_total{kind="service",reason="stopped"} 2'
  - endTraffic: {name: health-sync killed, failed: 0}
  - stop: [web, api-2]
  - stop: [controller]

checks:
  minRequests: 80
  noTokensOf: [iam-ecs-service-token]
  noServices: [web, web-sidecar-proxy, api, api-sidecar-proxy]
`

// grantSessions is what docs/HEALTH.md has an operator do.
const grantSessions = `consul acl policy create -name consul-ecs-task-session \
  -rules 'session "arn:aws:ecs:us-east-1:123456789012:cluster/agentless" { policy = "write" }'
consul acl role create -name consul-ecs-task-session -policy-name consul-ecs-task-session
consul acl binding-rule create -method iam-ecs-service-token -bind-type role -bind-name consul-ecs-task-session
`

// With sessions, Consul takes a task whose health-sync was killed out of the traffic,
// without a lost request.
func TestEndToEndNewestConsulWithSessions(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	dir := derive(t, "agentless-mesh", withSessions,
		"/bin/consul: ${consul}", "/bin/consul: ${consul}\n      /bin/sh: /bin/sh\n    files:\n      /operator.sh: operator.sh")
	operator, err := os.ReadFile(filepath.Join(example("agentless-gateways"), "operator.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"operator.json": strings.NewReplacer("agentless-gateways/operator-token", "agentless-mesh/controller-token", "agentless-gateways", "agentless-mesh").Replace(string(operator)),
		"operator.sh":   grantSessions,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	code, report, events := runReport(t, programsWith(t, testkit.NewestConsul), dir)
	if code != 0 || report.Failed != 0 || report.Answered < 80 || len(report.Failures) != 0 || len(report.Left) != 0 {
		t.Errorf("exit %d, report %+v, want no failure, nothing left and 80 requests", code, report)
	}
	wantEvents(t, events, []event{
		{Kind: "check", Task: "api-1", Text: "Consul ECS health-sync alive (api): passing"},
		{Kind: "check", Task: "api-1", Text: "Consul ECS health-sync alive (api): critical"},
		{Kind: "cleared", Task: "api-1", Text: "nothing left of the task"},
	})
}
