package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// checkTokens runs a scenario like examples/token-broker and compares it with the
// requests that it must answer and the tokens that the application must get.
func checkTokens(t *testing.T, flags []string, dir string, requests, tokens int) {
	t.Helper()
	code, report, events := runReport(t, append(flags, programs(t)...), dir)
	if code != 0 || report.Failed != 0 || report.Answered < requests || len(report.Failures) != 0 || len(report.Left) != 0 {
		t.Errorf("exit %d, report %+v, want no failure, nothing left and %d requests", code, report, requests)
	}
	wantEvents(t, events, []event{
		{Kind: "status", Task: "owner", Container: "owner", Text: "STOPPED (exit code 0)"},
		{Kind: "cleared", Task: "app", Text: "nothing left of the task"},
	})
	logins := 0
	for _, e := range events {
		if e.Kind == "token" && e.Task == "app" && strings.Contains(e.Text, "login") {
			logins++
		}
	}
	if logins < tokens {
		t.Errorf("the application had %d tokens, want %d", logins, tokens)
	}
}

// An application without credentials gets a Consul token and uses it. To a thief, who has
// the handle of another task, that is worth nothing; a second request is refused; and the
// token ends with the task.
func TestEndToEndTokenBroker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(example("token-broker"))); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "scenario.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	short := replaceOnce(t, string(text), `\{requests: 2000, within: 300s\}`, "{requests: 60, within: 300s}")
	short = replaceOnce(t, short, `token 3`, "token 1")
	short = replaceOnce(t, short, `minRequests: 2000`, "minRequests: 60")
	if err := os.WriteFile(file, []byte(short), 0o644); err != nil {
		t.Fatal(err)
	}
	checkTokens(t, nil, dir, 60, 1)
}

// The token lives for one minute and is replaced twice, without a failed request.
func TestEndToEndTokenBrokerReplacesTokens(t *testing.T) {
	testkit.Long(t)
	for _, order := range []string{"reverse", "at-once"} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			checkTokens(t, []string{"-stop-order", order}, example("token-broker"), 2000, 3)
		})
	}
}
