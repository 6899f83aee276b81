package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// oldDefinition returns a copy of a task in the shape of hashicorp/consul-ecs 0.6.
func oldDefinition(t *testing.T, change ...string) string {
	t.Helper()
	dir, replacer := t.TempDir(), strings.NewReplacer(change...)
	for _, name := range []string{"scenario.yaml", "api.json"} {
		text, err := os.ReadFile(filepath.Join(testkit.Root(), "localecs", "command", "testdata", "agent-0.6", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(replacer.Replace(string(text))), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A task definition of hashicorp/consul-ecs 0.6 runs as it is. Its images' programs are
// stood in for: consul-ecs by this project's, Consul and Envoy by newer ones.
func TestEndToEndTaskDefinitionOfConsulECS06(t *testing.T) {
	t.Parallel()
	code, report, _ := runReport(t, programs(t), oldDefinition(t))
	if code != 0 || report.Failures == nil || len(report.Failures) != 0 || len(report.Left) != 0 {
		t.Errorf("exit %d, failures %#v, want an empty list, left %v", code, report.Failures, report.Left)
	}
}

// An await that takes too long shows what holds the task up.
func TestEndToEndTimeoutNamesTheBlockingContainer(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"3s", "15s", "1m0s"} { // by which the container has exited
		dir := oldDefinition(t, "within: 120s", "within: "+limit, "cp /bin/consul /bin/consul-inject/consul", "echo no agent today; exit 3")
		code, report, _ := runReport(t, programs(t), dir)
		want := "step 2: await 1 passing instances of api within " + limit + ": context deadline exceeded; task api: consul-client exited with 3; last line of consul-client: no agent today"
		if code == 2 && slices.Equal(report.Failures, []string{want}) {
			return
		}
		t.Logf("exit %d, failures %q, want %q", code, report.Failures, want)
	}
	t.Error("no run has named the container")
}
