package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// traffic is the report of a run about its requests.
type traffic struct {
	Answered, Failed int
	Failures         []string
}

// runReport runs a scenario and returns its exit code and report.
func runReport(t *testing.T, programs []string, path string) (code int, report traffic) {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() { showLogs(t, dir) })
	got := call(t, append(append([]string{"run", "-json", "-dir", dir}, programs...), path)...)
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &report); err != nil {
		t.Fatalf("exit %d, no report: %v\n%s\n%s", got.code, err, got.stdout, got.stderr)
	}
	return got.code, report
}

// Every instance of api is replaced under 50 requests a second, in both stop
// orders of ECS, and not one request fails.
func TestRollingUpdateLosesNothing(t *testing.T) {
	programs := programs(t)
	for _, order := range []string{"reverse", "at-once"} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			code, report := runReport(t, programs, rollingUpdate(t, order))
			if code != 0 || report.Failed != 0 || report.Answered < 2000 || len(report.Failures) != 0 {
				t.Errorf("exit %d, report %+v; want no failure of 2000 requests and more", code, report)
			}
		})
	}
}

// rollingUpdate is a copy of the example with the given stop order.
func rollingUpdate(t *testing.T, order string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"hello-mesh/web.json", "hello-mesh/api.json", "rolling-update/scenario.yaml"} {
		data, err := os.ReadFile(filepath.Join(testkit.Root(), "examples", name))
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(string(data), "\nsubnet:", "\nstopOrder: "+order+"\nsubnet:", 1)
		if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "rolling-update")
}

// The negative control of TestRollingUpdateLosesNothing: without health checks
// that turn critical, and without the delay, the application ends before its
// callers have heard of it, and the check sees it.
func TestStopWithoutDelayLosesRequests(t *testing.T) {
	t.Parallel()
	programs := programs(t)
	scene := variant(t, `
- start: [web, api-1, api-2]
- await: {service: api, passing: 2, within: 60s}
- await: {service: web, passing: 1, within: 60s}
- traffic: {task: web, port: 8080, rate: 200}
- await: {requests: 100, within: 20s}
- stop: [api-1]
- await: {requests: 100, within: 20s}
- endTraffic: true
- stop: [web, api-2]
`, func(name, text string) string {
		switch name {
		case "api.json":
			return without(t, strings.Replace(text, `"5s"`, `"0s"`, 1), `\\"healthSyncContainers\\":\[[^\]]*\],`)
		case "scenario.yaml":
			return strings.Replace(text, "\nsubnet:", "\nstopOrder: at-once\nsubnet:", 1)
		}
		return text
	})
	code, report := runReport(t, programs, scene)
	if code != 2 || report.Failed == 0 || len(report.Failures) != 1 || !strings.Contains(report.Failures[0], "requests failed") {
		t.Errorf("exit %d, report %+v; want lost requests", code, report)
	}
}
