package command

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// Tasks are in Consul's mesh and in that of Service Connect, whose Envoy stops last, and have
// GuardDuty's agent. They are replaced under 50 requests a second.
func TestEndToEndServiceConnect(t *testing.T) {
	t.Parallel()
	code, report, events := runReport(t, programs(t), example("service-connect"))
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	if len(report.Failures) > 0 {
		t.Errorf("failures: %q", report.Failures)
	}
	if report.Failed != 0 {
		t.Errorf("%d requests failed", report.Failed)
	}
	if report.Answered < 500 {
		t.Errorf("%d requests answered, want 500 and more", report.Answered)
	}
	for _, task := range []string{"api-1", "api-2", "api-3", "api-4"} {
		checkServiceConnect(t, task, lives(events, task))
	}
	for _, task := range []string{"web", "controller"} {
		if _, found := added(lives(events, task), "ecs-service-connect-"); found {
			t.Errorf("%s has a proxy of Service Connect without being of a service", task)
		}
	}
}

// life is when a container was first seen in a status, or in a health.
type life map[string]time.Time

// lives returns those of a task's containers by name, and of the task by the empty one.
func lives(events []event, task string) map[string]life {
	found := map[string]life{}
	for _, e := range events {
		if e.Task != task || e.Kind != "status" && e.Kind != "health" {
			continue
		}
		if found[e.Container] == nil {
			found[e.Container] = life{}
		}
		state, _, _ := strings.Cut(e.Text, " ")
		if _, known := found[e.Container][state]; !known {
			found[e.Container][state] = e.Time
		}
	}
	return found
}

// added finds the container that AWS has added under a name with that prefix.
func added(of map[string]life, prefix string) (name string, found bool) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if strings.HasPrefix(name, prefix) {
			return name, true
		}
	}
	return "", false
}

// checkServiceConnect checks that the proxy of Service Connect was HEALTHY before the others
// ran, ended after them, and held the task's end for no longer than they took.
func checkServiceConnect(t *testing.T, task string, of map[string]life) {
	t.Helper()
	proxy, found := added(of, "ecs-service-connect-")
	if !found {
		t.Errorf("%s has no proxy of Service Connect, but %v", task, slices.Collect(maps.Keys(of)))
		return
	}
	agent, found := added(of, "aws-guardduty-agent-")
	if !found {
		t.Errorf("%s has no agent of GuardDuty", task)
	}
	for _, name := range []string{"api", "helper", "sidecar-proxy", "consul-ecs-health-sync", "consul-ecs-mesh-init"} {
		if of[name]["RUNNING"].Before(of[proxy]["HEALTHY"]) {
			t.Errorf("%s: %s ran before the proxy of Service Connect was HEALTHY", task, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if name != "" && name != proxy && of[name]["STOPPED"].After(of[proxy]["STOPPED"]) {
			t.Errorf("%s: %s stopped after the proxy of Service Connect", task, name)
		}
	}
	if of[agent]["STOPPED"].IsZero() {
		t.Errorf("%s: the agent of GuardDuty has not stopped", task)
	}
	took := of[""]["STOPPED"].Sub(of["api"]["STOPPED"])
	t.Logf("%s: STOPPED %s after its application", task, took.Round(time.Millisecond))
	if took > 3*time.Second {
		t.Errorf("%s: STOPPED %s after its application, want 3 s at most", task, took)
	}
}
