package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// The applications take 25 s to end, of the 30 s before KILL. In both stop orders every container exits on its own,
// orderly, and no request is lost: neither from outside, nor one that a draining application sends itself. With the
// dependencies of consul-ecs 0.6, ECS stops the agent last; otherwise it leaves when 20 s are over.
func TestEndToEndLongDrain(t *testing.T) {
	t.Parallel()
	programs := programs(t)
	for name, order := range map[string]string{"at-once": "at-once", "reverse": "reverse", "gates in a row": "reverse"} {
		t.Run(name, func(t *testing.T) {
			if name != "at-once" {
				testkit.Long(t)
			}
			t.Parallel()
			scene, inARow := example("long-drain"), name == "gates in a row"
			if inARow {
				scene = longDrainInARow(t)
			}
			code, report, events := runReport(t, append([]string{"-stop-order", order}, programs...), scene)
			if code != 0 || len(report.Failures) != 0 || report.Failed != 0 || len(report.Left) != 0 {
				t.Errorf("exit %d, report %+v; want no failure", code, report)
			}
			ended := map[string][]string{}
			for _, e := range events {
				if e.Kind == "status" && strings.HasPrefix(e.Text, "STOPPED") && (e.Task == "web-1" || e.Task == "api-1") {
					ended[e.Task] = append(ended[e.Task], e.Container)
				}
			}
			for task, app := range map[string]string{"web-1": "web", "api-1": "api"} {
				wantOrder(t, task, ended[task], app, "sidecar-proxy")
				wantOrder(t, task, ended[task], "consul-ecs-health-sync", "consul-client")
				if inARow {
					wantOrder(t, task, ended[task], "sidecar-proxy", "consul-client")
				} else {
					wantOrder(t, task, ended[task], "consul-client", app)
				}
				if left := (event{Kind: "cleared", Task: task, Text: "nothing left of the task, its agent has left"}); !happened(events, left) {
					t.Errorf("the agent of %s has not left", task)
				}
			}
		})
	}
}

// longDrainInARow returns the example with definitions in which ECS keeps the order.
func longDrainInARow(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, file := range []string{"long-drain/scenario.yaml", "hello-mesh/web.json", "hello-mesh/api.json"} {
		text := gatesInARow(t, file, strings.ReplaceAll(string(readFile(t, example(file))), "../hello-mesh/", ""))
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// wantOrder wants first to have ended before second.
func wantOrder(t *testing.T, task string, ended []string, first, second string) {
	t.Helper()
	if _, after, ok := strings.Cut(strings.Join(ended, " ")+" ", first+" "); !ok || !strings.Contains(after, second+" ") {
		t.Errorf("%s: ended in the order %q, want %s before %s", task, ended, first, second)
	}
}

// An agent that is neither essential nor restarted: its task goes on, but nothing
// calls it any more, and when it stops at last only the failed agent stays.
func TestEndToEndTaskWithoutItsAgent(t *testing.T) {
	t.Parallel()
	const steps = `
- start: [api-1]
- await: {service: api, passing: 1, within: 60s}
- await: {task: api-1, tokens: 2, within: 60s}
- kill: {task: api-1, container: consul-client, process: consul}
- await: {task: api-1, inTraffic: false, within: 60s}
- await: {task: api-1, tokens: 1, within: 60s}
- get: {task: api-1, url: "http://127.0.0.1:9090/", has: [hello]}
- stop: {tasks: [api-1], agentFails: it was killed}
`
	scene := variant(t, steps, func(name, text string) string {
		switch name {
		case "api.json":
			return without(t, strings.Replace(text, `"essential": true`, `"essential": false`, 1), `(?s)      "restartPolicy": \{.*?\},\n`)
		case "scenario.yaml": // its health-sync has no agent to write critical to
			return without(t, text, `  (cleanExits|minRequests): .*\n`)
		}
		return text
	})
	code, report, events := runReport(t, programs(t), scene)
	if code != 0 || len(report.Failures) != 0 || len(report.Left) != 1 || !strings.HasPrefix(report.Left[0].What, "agent ip-10-42-0-4.ec2.internal, which is failed") {
		t.Errorf("exit %d, report %+v; want nothing left but the agent", code, report)
	}
	if stopped := (event{Kind: "status", Task: "api-1", Text: "STOPPED (UserInitiated: Task stopped by user)"}); !happened(events, stopped) {
		t.Error("the task did not go on until it was stopped")
	}
}
