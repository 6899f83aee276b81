package command

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// hello-mesh without Consul agents, in both stop orders of ECS: no request, token or
// service is lost, also of a task that is killed.
func TestEndToEndAgentlessMesh(t *testing.T) {
	t.Parallel()
	programs := programs(t)
	for _, order := range []string{"reverse", "at-once"} {
		t.Run(order, func(t *testing.T) {
			if order == "at-once" {
				testkit.Long(t)
			}
			t.Parallel()
			code, report, events := runReport(t, append([]string{"-stop-order", order}, programs...), example("agentless-mesh"))
			if code != 0 || report.Failed != 0 || report.Answered < 200 || len(report.Failures) != 0 || len(report.Left) != 0 || report.StopOrder != order {
				t.Errorf("exit %d, report %+v, want no failure, nothing left and 200 requests", code, report)
			}
			wantEvents(t, events, []event{
				{Kind: "kill", Task: "api-3", Text: "SIGKILL to everything in it"},
				{Kind: "get", Task: "controller", Text: `GET http://127.0.0.1:9102/metrics, has deletions_total{kind="token",reason="stopped"} 1, deletions_total{kind="service",reason="stopped"} 2`},
				{Kind: "cleared", Task: "api-3", Text: "nothing left of the task"},
				{Kind: "cleared", Task: "api-1", Text: "nothing left of the task"},
			})
			checkPace(t, events)
		})
	}
}

// checkPace compares the life of api-1 with limits far above what it takes on an idle
// machine: 10.5 s, of which ECS's gate and first health check take 10, and 2 s.
func checkPace(t *testing.T, events []event) {
	t.Helper()
	first := moment(t, events, "consul-ecs-mesh-init", "RUNNING", "task ")
	serves := moment(t, events, "", "in traffic", "task ")
	if d := serves.Sub(first); d < 8*time.Second || d > time.Minute {
		t.Errorf("in traffic %s after the first container, want 8 to 60 s", d)
	}
	asked := moment(t, events, "", "asked to stop", "asked to stop")
	stopped := moment(t, events, "", "STOPPED (UserInitiated", "asked to stop")
	if d := stopped.Sub(asked); d > 25*time.Second {
		t.Errorf("stopped %s after it was asked to, want less than the default stopTimeout of 30 s", d)
	}
	critical := moment(t, events, "", "Consul ECS health check synced (api): critical", "asked to stop")
	ended := moment(t, events, "api", "STOPPED", "asked to stop")
	if lead := ended.Sub(critical); lead <= 0 {
		t.Errorf("critical %s before the application ended, want before it on a busy machine too", lead)
	}
	if proxy := moment(t, events, "sidecar-proxy", "STOPPED", "asked to stop"); proxy.Before(ended) {
		t.Errorf("Envoy ended %s before the application", ended.Sub(proxy))
	}
}

// Tasks with and without an agent call each other while api and web move from the one
// generation to the other, and api back, under 50 requests a second.
func TestEndToEndMixedMesh(t *testing.T) {
	t.Parallel()
	programs := programs(t)
	for _, order := range []string{"reverse", "at-once"} {
		t.Run(order, func(t *testing.T) {
			if order == "at-once" {
				testkit.Long(t)
			}
			t.Parallel()
			code, report, events := runReport(t, append([]string{"-stop-order", order}, programs...), example("mixed-mesh"))
			if code != 0 || report.Failed != 0 || report.Answered < 1000 || len(report.Failures) != 0 || len(report.Left) != 0 {
				t.Errorf("exit %d, report %+v, want no failure, nothing left and 1000 requests", code, report)
			}
			var phases []string
			for _, p := range report.Phases {
				phases = append(phases, p.Name+" "+p.Verdict)
			}
			if diff := cmp.Diff([]string{"api is mixed passed", "api moves passed", "agent to agentless passed", "agentless only passed", "back to an agent passed"}, phases); diff != "" {
				t.Errorf("phases (-want +got):\n%s", diff)
			}
			for task, text := range map[string]string{
				"api-agent-1":     "nothing left of the task, its agent has left",
				"api-agent-2":     "nothing left of the task, its agent has left",
				"web-agent":       "nothing left of the task, its agent has left",
				"api-agent-3":     "nothing left of the task, its agent has left",
				"api-agentless-1": "nothing left of the task",
				"api-agentless-2": "nothing left of the task",
				"web-agentless":   "nothing left of the task",
			} {
				if !happened(events, event{Kind: "cleared", Task: task, Text: text}) {
					t.Errorf("%s: did not happen: %s", task, text)
				}
			}
		})
	}
}

// webAndAPI starts web and one api.
const webAndAPI = `
tasks:
  controller: controller.json
  web: web.json
  api-1: api.json

steps:
  - start: [controller]
  - await: {logins: [iam-ecs-service-token], within: 60s}
  - start: [web, api-1]
  - await: {service: api, passing: 1, within: 90s}
  - await: {service: web, passing: 1, within: 90s}
`

// inTransparentProxy has web call api by the name of its task, with no upstream in the
// configuration. Only Envoys answer there: api listens on loopback, and what arrives
// from outside is redirected to its Envoy, which takes mTLS only.
const inTransparentProxy = webAndAPI + `
  - traffic: {task: web, port: 8080, rate: 20}
  - await: {requests: 40, within: 60s}
  - get:
      task: web
      url: http://127.0.0.1:19000/stats?filter=cluster.api.default.*upstream_cx_total
      has: [upstream_cx_total]
      lacks: ["upstream_cx_total: 0"]
  - endTraffic: {name: transparent, failed: 0}
  - stop: [web, api-1]
  - stop: [controller]

checks:
  minRequests: 40
  noTokensOf: [iam-ecs-service-token]
  noServices: [web, web-sidecar-proxy, api, api-sidecar-proxy]
  cleanExits: true
`

// deriveTransparent derives agentless-mesh with a transparent proxy: mesh-init runs as root with NET_ADMIN, on
// EC2, and web calls a URL without an upstream. Settings are further ones of the proxy, each with a comma behind.
func deriveTransparent(t *testing.T, scenario, settings, url string, more ...string) string {
	t.Helper()
	return derive(t, "agentless-mesh", scenario, append([]string{
		"FARGATE", "EC2",
		`\"transparentProxy\":{\"enabled\":false}`, `\"transparentProxy\":{` + settings + `\"excludeInboundPorts\":[8080]}`,
		`{\"destinationName\":\"api\",\"localBindPort\":9191}`, "",
		"http://127.0.0.1:9191/", url,
		`"mesh-init"
      ],`, `"mesh-init"
      ],
      "user": "0",`,
		`"initProcessEnabled": true`, `"initProcessEnabled": true, "capabilities": {"add": ["NET_ADMIN"]}`,
	}, more...)...)
}

func TestEndToEndTransparentProxy(t *testing.T) {
	t.Parallel()
	dir := deriveTransparent(t, inTransparentProxy, "", "http://api.agentless.local:9090/")
	code, report, _ := runReport(t, programs(t), dir)
	if code != 0 || report.Answered < 40 || len(report.Failures) != 0 {
		t.Errorf("exit %d, report %+v, want no failure and 40 requests", code, report)
	}
}

// withNames has web call api by the name of its upstream, at the port that an application
// expects. Both listeners of web's proxy have it: each upstream has its own address.
const withNames = `
tasks:
  controller: controller.json
  web: web.json
  api-1: api.json

steps:
  - start: [controller]
  - await: {logins: [iam-ecs-service-token], within: 60s}
  - start: [web, api-1]
  - await: {service: api, passing: 1, within: 90s}
  - await: {service: web, passing: 1, within: 90s}
  - traffic: {task: web, port: 7070, rate: 20}
  - await: {requests: 20, within: 60s}
  - endTraffic: {name: named, failed: 0}
  - get:
      task: web
      url: http://127.0.0.1:19000/listeners
      has: ["api:127.65.0.2:8080", "other:127.65.0.1:8080"]
  - stop: [web, api-1]
  - stop: [controller]

checks:
  minRequests: 20
  noServices: [web, web-sidecar-proxy, api, api-sidecar-proxy]
  cleanExits: true
`

// On Fargate, app-entrypoint writes the names as the application's user, which is root.
func TestEndToEndNamedUpstreams(t *testing.T) {
	t.Parallel()
	dir := derive(t, "agentless-mesh", withNames,
		`\"name\":\"web\",\"port\":8080`, `\"name\":\"web\",\"port\":7070`, `"containerPort": 8080`, `"containerPort": 7070`,
		"0.0.0.0:8080", "0.0.0.0:7070", "127.0.0.1:8080/health", "127.0.0.1:7070/health",
		`\"upstreams\":[{\"destinationName\":\"api\",\"localBindPort\":9191}]`,
		`\"namedUpstreams\":true,\"upstreams\":[{\"destinationName\":\"other\",\"localBindPort\":8080},{\"destinationName\":\"api\",\"localBindPort\":8080}]`,
		"http://127.0.0.1:9191/", "http://api:8080/")
	code, report, _ := runReport(t, programs(t), dir)
	if code != 0 || report.Failed != 0 || report.Answered < 20 || len(report.Failures) != 0 || len(report.Left) != 0 {
		t.Errorf("exit %d, report %+v, want no failure, nothing left and 20 requests", code, report)
	}
}
