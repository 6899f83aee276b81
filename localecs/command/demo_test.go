package command

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/internal/testkit/dockerengine"
	"github.com/meshtask/consul-ecs/localecs/docker"
	"github.com/meshtask/consul-ecs/localecs/host"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

func TestMain(m *testing.M) {
	host.Dispatch(append(docker.Roles(), runtime.Role())...)
	if host.Inside() { // what call started for a user who is not root
		os.Exit(Main(os.Args[1:]))
	}
	switch filepath.Base(os.Args[0]) {
	case "kid":
		os.Exit(kid(os.Args[1:]))
	case "helper":
		os.Exit(helper())
	case "consul":
		os.Exit(fakeConsul(os.Args[1:]))
	case "consul-dataplane":
		os.Exit(dataplaneStandIn(os.Args[1:]))
	case "names":
		os.Exit(names())
	}
	roles := lesserHosts()
	roles[testkit.UserRole], roles["localecs"], roles["machine"], roles["get"] = testkit.PlayUser, Main, runMachine, get
	maps.Copy(roles, dockerengine.Roles())
	testkit.RunRole(roles)
	os.Exit(testkit.Main(m))
}

// result is one call of localecs.
type result struct {
	code           int
	stdout, stderr string
}

func call(t testing.TB, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := cli.Main(app(), args, func(string) string { return "" }, strings.NewReader(""), &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

// programs returns -var flags for what hello-mesh runs.
func programs(t testing.TB) []string {
	t.Helper()
	return programsWith(t, "consul")
}

// programsWith returns the programs with the named Consul.
func programsWith(t testing.TB, name string) []string {
	t.Helper()
	if os.Getuid() != 0 {
		testkit.Missing(t, "network namespaces need root")
	}
	consul, envoy := testkit.RequireBinary(t, name), testkit.RequireBinary(t, "envoy")
	return []string{"-var", "bin=" + testkit.Programs(t), "-var", "consul=" + consul, "-var", "envoy=" + envoy}
}

// event is a line of -json output.
type event struct {
	Time time.Time `json:"time"`
	Task string    `json:"task"`
	Kind string    `json:"kind"`
	// Container is empty for what is about the task as a whole.
	Container string `json:"container"`
	Step      int    `json:"step"`
	Text      string `json:"text"`
}

// The demo, end to end: the README's first command.
func TestEndToEndHelloMesh(t *testing.T) {
	t.Parallel()
	code, report, events := runReport(t, programs(t), example("hello-mesh"))
	if code != 0 || report.Kind != "report" || report.Failed != 0 || report.Answered < 200 || len(report.Failures) != 0 {
		t.Errorf("exit %d, report %+v, want no failure and 200 requests", code, report)
	}
	kinds := map[string]int{}
	for _, e := range events {
		kinds[e.Kind]++
		if e.Time.IsZero() || e.Kind == "" || e.Text == "" {
			t.Errorf("an event without time, kind or text: %+v", e)
		}
	}
	wantEvents(t, events, []event{
		{Kind: "kill", Task: "api-3", Text: "SIGKILL to everything in it"},
		{Kind: "get", Task: "controller", Text: `GET http://127.0.0.1:9102/metrics, has deletions_total{kind="token",reason="stopped"} 2, deletions_total{kind="service",reason="stopped"} 2`},
		{Kind: "cleared", Task: "controller", Text: "nothing left of the task"},
	})
	if len(report.Left) != 1 || report.Left[0].Task != "api-3" || !strings.HasSuffix(report.Left[0].What, ", which is failed") {
		t.Errorf("left: %+v, want the failed agent of api-3", report.Left)
	}
	for _, task := range []string{"web", "api-1", "api-2"} {
		if left := (event{Kind: "cleared", Task: task, Text: "nothing left of the task, its agent has left"}); !happened(events, left) {
			t.Errorf("the agent of %s has not left", task)
		}
	}
	for kind, want := range map[string]int{"scenario": 1, "consul": 1, "task": 5, "step_begin": 25, "step_end": 25, "desired": 5, "cleared": 4} {
		if kinds[kind] != want {
			t.Errorf("%d events of kind %s, want %d", kinds[kind], kind, want)
		}
	}
	t.Run("CriticalLongBeforeTheApplicationEnds", func(t *testing.T) {
		critical := moment(t, events, "", "consul ecs synced (api): critical", "asked to stop")
		ended := moment(t, events, "api", "STOPPED", "asked to stop")
		if lead := ended.Sub(critical); lead < time.Second { // what is reported late on a busy machine is not without lead
			t.Errorf("critical %s before the application ended, want about 5s", lead)
		}
	})
	t.Run("EnvoyOutlivesTheApplication", func(t *testing.T) {
		app := moment(t, events, "api", "STOPPED", "asked to stop")
		proxy := moment(t, events, "sidecar-proxy", "STOPPED", "asked to stop")
		// By itself, a moment later, and not by the KILL that would come after 30 s.
		if late := proxy.Sub(app); late < 0 || late > 15*time.Second {
			t.Errorf("Envoy ended %s after the application, want a moment after it", late)
		}
	})
}

// showEvents prints the events of a failed run.
func showEvents(t *testing.T, events []event) {
	if !t.Failed() {
		return
	}
	for _, e := range events {
		t.Logf("%s %s %s %s %s", e.Time.Format("15:04:05.000"), e.Kind, e.Task, e.Container, e.Text)
	}
}

// showLogs prints the containers' logs of a failed run.
func showLogs(t *testing.T, dir string) {
	if !t.Failed() {
		return
	}
	logs, _ := filepath.Glob(filepath.Join(dir, "*", "logs", "*", "*.log"))
	server, _ := filepath.Glob(filepath.Join(dir, "*", "logs", "*.log"))
	logs = append(logs, server...)
	for _, path := range logs {
		text, _ := os.ReadFile(path)
		t.Logf("%s\n%s", strings.TrimPrefix(path, dir), text)
	}
}

// moment returns the time of the first event of api-1's container that contains text, after the first one that contains
// since.
func moment(t *testing.T, events []event, container, text, since string) time.Time {
	t.Helper()
	seen := false
	for _, e := range events {
		if e.Task != "api-1" {
			continue
		}
		seen = seen || strings.Contains(e.Text, since)
		if seen && e.Container == container && strings.Contains(e.Text, text) {
			return e.Time
		}
	}
	t.Fatalf("no event %q of %s after %q", text, container, since)
	return time.Time{}
}
