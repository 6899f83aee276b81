package scenario

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/view"
)

// eventAt returns a moment n seconds into a run.
func eventAt(n int) time.Time { return time.Unix(1_800_000_000+int64(n), 0).UTC() }

// eventRun returns an event of each kind, as a scenario prints them.
func eventRun() []Event {
	events := []Event{
		{Kind: KindScenario, Text: "scenario hello: 1 tasks, Consul server at 10.42.0.254"},
		{Kind: KindConsul, Address: "10.42.0.254", Text: "leader elected, ACLs on, default deny"},
		{Kind: KindStepBegin, Step: 1, Steps: 2, Text: "start api-1"},
		{Kind: KindTask, Task: "api-1", TaskID: "0123456789abcdef", Address: "10.42.0.4",
			Text: "task 0123456789abcdef at 10.42.0.4"},
		{Kind: KindStepEnd, Step: 1, Steps: 2, TookSeconds: 0.25, Text: "start api-1"},
		{Kind: view.KindStatus, Task: "api-1", Container: "api", Status: "RUNNING", Text: "RUNNING"},
		{Kind: view.KindHealth, Task: "api-1", Container: "api", Status: "UNHEALTHY", Detail: "no\nluck",
			Text: "UNHEALTHY (no\nluck)"},
		{Kind: view.KindCheck, Task: "api-1", Service: "api", Check: "consul ecs synced", Status: "critical",
			Text: "consul ecs synced (api): critical"},
		{Kind: view.KindInTraffic, Task: "api-1", Status: "in", Text: "in traffic"},
		{Kind: view.KindToken, Task: "api-1", Status: "login", Method: "m", Accessor: "t1", Text: "login by m"},
		{Kind: view.KindRestart, Task: "api-1", Container: "api", Status: "1", Text: "started again, 1 so far"},
		{Kind: view.KindSignal, Task: "api-1", Container: "api", Status: "TERM", Text: "TERM"},
		{Kind: view.KindSignal, Task: "api-1", Container: "api", Status: "KILL", Detail: "stop timeout elapsed",
			Text: "KILL (stop timeout elapsed)"},
		{Kind: KindMTLS, Task: "api-1", Text: "presents spiffe://x/svc/api; refuses a caller without a certificate"},
		{Kind: KindPost, Task: "api-1", Text: "POST http://127.0.0.1:9090/health/ok"},
		{Kind: KindGet, Task: "api-1", Text: "GET http://127.0.0.1:9090/, has hello"},
		{Kind: KindTrafficBegin, Task: "api-1", Address: "http://10.42.0.4:8080/", Text: "first answer after 8ms"},
		{Kind: KindRequestFailed, Detail: "EOF", Text: "FAILED: EOF"},
		{Kind: KindTrafficEnd, Phase: "orderly", Text: "orderly ended: 41 answered, 1 failed"},
		{Kind: view.KindKill, Task: "api-1", Container: "sidecar-proxy", Detail: "SIGKILL", Text: "SIGKILL to envoy"},
		{Kind: view.KindDesired, Task: "api-1", Status: "STOPPED", Detail: "Task stopped by user",
			Text: "asked to stop (Task stopped by user)"},
		{Kind: view.KindStatus, Task: "api-1", Status: "STOPPED", Detail: "UserInitiated: Task stopped by user",
			Text: "STOPPED (UserInitiated: Task stopped by user)"},
		{Kind: view.KindCleared, Task: "api-1", Text: "nothing left of the task"},
		{Kind: KindLeft, Task: "api-1", Detail: "no process logs out",
			Text: "left: token 1 of m, as no process logs out"},
		{Kind: KindStepEnd, Step: 2, Steps: 2, TookSeconds: 3, Error: "step 2: stop api-1: still in Consul",
			Text: "stop api-1"},
		{Kind: KindOutput, Task: "api-1", Container: "api", Text: "listening on \x1b[1m8080\x1b[0m", Prefix: "api | "},
	}
	for i := range events {
		events[i].Time, events[i].Seconds, events[i].Scenario = eventAt(i), float64(i), "hello"
	}
	return events
}

// Programs read these names: a difference is a break of the interface.
func TestObjectsKeepTheirShape(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	out := Objects(&b, &b)
	for _, e := range eventRun() {
		out(e)
	}
	testkit.Golden(t, "events.jsonl", b.Bytes())
}

func TestLinesOnATerminal(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	out := Lines(&b, &b)
	for _, e := range eventRun() {
		out(e)
	}
	testkit.Golden(t, "events.txt", b.Bytes())
}

func TestLineRemovesControlCharacters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a\r\n\tb":                           "a b",
		"red \x1b[31mcarpet\x07\u009b2J":     "red [31mcarpet2J",
		strings.Repeat("ü", 170):             strings.Repeat("ü", 160) + "…",
		"probe said \x00\x08 nothing at all": "probe said nothing at all",
	} {
		if got := oneLine(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestSecondsAreExactToTheMicrosecond(t *testing.T) {
	t.Parallel()
	if got := Seconds(2479846101 * time.Nanosecond); got != 2.479846 {
		t.Errorf("got %v", got)
	}
}
