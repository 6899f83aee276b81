package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// verdict is the report of a run, as far as tests look at it.
type verdict struct {
	Kind             string
	StopOrder        string `json:"stop_order"`
	Answered, Failed int
	Phases           []struct {
		Name, Verdict    string
		Answered, Failed int
	}
	Left     []struct{ Task, What, Reason string }
	Failures []string
}

// runReport runs a scenario with more flags and returns its exit code, its
// report and the events before it.
func runReport(t *testing.T, flags []string, path string) (code int, report verdict, events []event) {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() { showLogs(t, dir) })
	got := call(t, append(append([]string{"run", "-json", "-dir", dir}, flags...), path)...)
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &report); err != nil {
		t.Fatalf("exit %d, no report: %v\n%s\n%s", got.code, err, got.stdout, got.stderr)
	}
	for _, line := range lines[:len(lines)-1] {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		events = append(events, e)
	}
	t.Cleanup(func() { showEvents(t, events) })
	return got.code, report, events
}

// losesOnlyIn fails the test for each request that was lost in another phase.
func (v verdict) losesOnlyIn(t *testing.T, phases ...string) {
	t.Helper()
	for _, p := range v.Phases {
		if p.Failed != 0 && !slices.Contains(phases, p.Name) {
			t.Errorf("%s: %d requests failed", p.Name, p.Failed)
		}
	}
}

func example(name string) string { return filepath.Join(testkit.Root(), "examples", name) }

// Every instance of api is replaced under 50 requests a second, then a
// health-sync, an Envoy, its container and two Consul client agents are killed, in both
// stop orders of ECS. The example has the number of requests that each may cost: none but for
// the killed Envoy and container, and the agent that ECS starts again.
func TestEndToEndRollingUpdate(t *testing.T) {
	t.Parallel()
	programs := programs(t)
	for _, order := range []string{"reverse", "at-once"} {
		t.Run(order, func(t *testing.T) {
			if order == "at-once" {
				testkit.Long(t)
			}
			t.Parallel()
			code, report, events := runReport(t, append([]string{"-stop-order", order}, programs...), example("rolling-update"))
			if code != 0 || report.Answered < 2000 || len(report.Failures) != 0 || report.StopOrder != order {
				t.Errorf("exit %d, report %+v; want no failure, 2000 requests and more", code, report)
			}
			var phases []string
			for _, p := range report.Phases {
				phases = append(phases, p.Name+" "+p.Verdict)
			}
			report.losesOnlyIn(t, "Envoy killed", "proxy's container killed", "agent restarted")
			want := []string{
				"orderly passed", "health-sync killed passed", "Envoy killed passed", "proxy's container killed passed",
				"after it passed", "agent killed passed", "agent restarted passed",
			}
			if diff := cmp.Diff(want, phases); diff != "" {
				t.Errorf("phases (-want +got):\n%s", diff)
			}
			if len(report.Left) != 1 || report.Left[0].Task != "api-7" || !strings.HasSuffix(report.Left[0].What, ".ec2.internal, which is failed") {
				t.Errorf("left: %+v, want the agent of api-7", report.Left)
			}
			wantEvents(t, events, []event{
				{Kind: "kill", Task: "api-4", Container: "consul-ecs-health-sync", Text: "SIGKILL to consul-ecs"},
				{Kind: "kill", Task: "api-5", Container: "sidecar-proxy", Text: "SIGKILL to envoy"},
				{Kind: "kill", Task: "api-5", Container: "sidecar-proxy", Text: "SIGKILL to its first process"},
				{Kind: "status", Task: "api-5", Container: "sidecar-proxy", Text: "STOPPED (exit code 137)"},
				// Its health-sync's token, which the controller has removed.
				{Kind: "cleared", Task: "api-4", Text: "nothing left of the task, its agent has left"},
				{Kind: "get", Task: "api-4", Text: "GET http://127.0.0.1:9090/, has hello"},
				{Kind: "cleared", Task: "api-5", Text: "nothing left of the task, its agent has left"},
				{Kind: "status", Task: "api-7", Container: "consul-client", Text: "STOPPED (exit code 137)"},
				{Kind: "status", Task: "api-7", Text: "STOPPED (EssentialContainerExited: Essential container in task exited)"},
				{Kind: "status", Task: "web", Container: "consul-client", Text: "STOPPED (exit code 0)"},
			})
		})
	}
}

// The scheduler of ECS replaces every task of a service, and scales it, under 50
// requests a second, of which none is lost.
func TestEndToEndRollingService(t *testing.T) {
	t.Parallel()
	code, report, events := runReport(t, programs(t), example("rolling-service"))
	if code != 0 || report.Answered < 1000 || report.Failed != 0 || len(report.Failures) != 0 || len(report.Left) != 0 {
		t.Errorf("exit %d, report %+v; want nothing lost of 1000 requests and more", code, report)
	}
	for _, task := range []string{"api-1", "api-2", "api-3", "api-4", "api-5"} {
		if want := (event{Kind: "cleared", Task: task, Text: "nothing left of the task, its agent has left"}); !happened(events, want) {
			t.Errorf("did not happen: %+v", want)
		}
	}
}

// wantEvents reports those that did not happen.
func wantEvents(t *testing.T, events, wants []event) {
	t.Helper()
	for _, want := range wants {
		if !happened(events, want) {
			t.Errorf("did not happen: %+v", want)
		}
	}
}

// happened looks for an event, whenever it was.
func happened(events []event, want event) bool {
	for _, e := range events {
		if want.Time = e.Time; e == want {
			return true
		}
	}
	return false
}

// The negative control: the same traffic, and a task definition without what
// rolling-update is about. It passes because requests are lost.
func TestEndToEndWithoutDelayLosesRequests(t *testing.T) {
	t.Parallel()
	code, report, _ := runReport(t, programs(t), example("without-delay"))
	if code != 0 || report.Failed == 0 || report.StopOrder != "at-once" || len(report.Failures) != 0 {
		t.Errorf("exit %d, report %+v; want lost requests and no failure", code, report)
	}
}

// So in both stop orders, of which a summary has a line each.
func TestEndToEndWithoutDelayLosesRequestsInBothStopOrders(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	args := append([]string{"run", "-dir", t.TempDir(), "-stop-order", "both"}, programs(t)...)
	got := call(t, append(args, example("without-delay"))...)
	if got.code != 0 {
		t.Fatalf("exit %d\n%s\n%s", got.code, got.stdout, got.stderr)
	}
	_, summary, _ := strings.Cut(got.stdout, "\nSummary\n")
	lines := strings.Split(summary, "\n")
	if len(lines) != 6 || lines[4] != "2 of 2 passed" {
		t.Fatalf("summary:\n%s", summary)
	}
	for i, order := range []string{"reverse", "at-once"} {
		fields := strings.Fields(lines[i+1]) // scenario, stop order, tasks, answered, failed, verdict, seconds
		if len(fields) != 7 || fields[0] != "without-delay" || fields[1] != order || fields[2] != "4" || fields[4] == "0" || fields[5] != "passed" {
			t.Errorf("line %d of the summary: %q", i+1, fields)
		}
	}
}

// The control differs from hello-mesh only in that TERM is delivered at once.
func TestWithoutDelayIsHelloMeshWithTERMAtOnce(t *testing.T) {
	t.Parallel()
	text := func(path string) string {
		data, err := os.ReadFile(example(path))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	const proxy = `"-await-proxy",
        "127.0.0.1:20000"`
	want := strings.Replace(text("hello-mesh/api.json"), proxy, proxy+`,
        "-shutdown-delay",
        "0s"`, 1)
	if diff := cmp.Diff(want, text("without-delay/api.json")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
