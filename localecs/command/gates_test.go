package command

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
)

// gatesInARow gives a definition of hello-mesh the order of containers that ECS had to
// keep before they waited themselves.
func gatesInARow(t *testing.T, name, text string) string {
	t.Helper()
	if filepath.Ext(name) != ".json" {
		return text
	}
	var definition map[string]any
	if err := json.Unmarshal([]byte(text), &definition); err != nil {
		t.Fatal(err)
	}
	on := func(container string, condition string) map[string]any {
		return map[string]any{"containerName": container, "condition": condition}
	}
	meshInit, client := on("consul-ecs-mesh-init", "SUCCESS"), on("consul-client", "START")
	for _, c := range definition["containerDefinitions"].([]any) {
		c := c.(map[string]any)
		switch c["name"] {
		case "consul-ecs-mesh-init":
			c["dependsOn"] = []any{client}
		case "sidecar-proxy", "consul-ecs-health-sync":
			c["dependsOn"] = []any{client, meshInit}
		case "api", "web":
			c["dependsOn"] = []any{meshInit, on("sidecar-proxy", "HEALTHY")}
			words := c["entryPoint"].([]any)
			at := slices.Index(words, any("-await-proxy"))
			c["entryPoint"] = slices.Delete(words, at, at+2)
		}
	}
	changed, err := json.Marshal(definition)
	if err != nil {
		t.Fatal(err)
	}
	return string(changed)
}

// Definitions of consul-ecs 0.6, in which ECS keeps the order, start and stop as before.
func TestEndToEndGatesInARow(t *testing.T) {
	t.Parallel()
	scene := variant(t, `
- start: [web, api-1, api-2]
- await: {service: api, passing: 2, within: 60s}
- await: {service: web, passing: 1, within: 60s}
- traffic: {task: web, port: 8080, rate: 50}
- await: {requests: 100, within: 30s}
- stop: [api-1]
- await: {requests: 100, within: 30s}
- endTraffic: true
- stop: [web, api-2]
`, func(name, text string) string { return gatesInARow(t, name, text) })
	code, report, events := runReport(t, programs(t), scene)
	if code != 0 || report.Failed != 0 || len(report.Failures) != 0 {
		t.Errorf("exit %d, report %+v", code, report)
	}
	for _, task := range []string{"api-1", "api-2", "web"} {
		if left := (event{Kind: "cleared", Task: task, Text: "nothing left of the task, its agent has left"}); !happened(events, left) {
			t.Errorf("the agent of %s has not left", task)
		}
	}
}
