package progress

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// at is a moment n seconds into a run.
func at(n int) time.Time { return time.Unix(1_800_000_000+int64(n), 0).UTC() }

// run has an event of each kind, as a scenario tells them.
func run() []Event {
	events := []Event{
		{Kind: Scenario, Text: "scenario hello: 1 tasks, Consul server at 10.42.0.254"},
		{Kind: Consul, Address: "10.42.0.254", Text: "leader elected, ACLs on, default deny"},
		{Kind: StepBegin, Step: 1, Steps: 2, Text: "start api-1"},
		{Kind: Task, Task: "api-1", TaskID: "0123456789abcdef", Address: "10.42.0.4", Text: "task 0123456789abcdef at 10.42.0.4"},
		{Kind: StepEnd, Step: 1, Steps: 2, TookSeconds: 0.25, Text: "start api-1"},
		{Kind: Status, Task: "api-1", Container: "api", Status: "RUNNING", Text: "RUNNING"},
		{Kind: Health, Task: "api-1", Container: "api", Status: "UNHEALTHY", Detail: "no\nluck", Text: "UNHEALTHY (no\nluck)"},
		{Kind: Check, Task: "api-1", Service: "api", Check: "consul ecs synced", Status: "critical", Text: "consul ecs synced (api): critical"},
		{Kind: InTraffic, Task: "api-1", Status: "in", Text: "in traffic"},
		{Kind: Token, Task: "api-1", Status: "login", Method: "m", Accessor: "t1", Text: "login by m"},
		{Kind: Restart, Task: "api-1", Container: "api", Status: "1", Text: "started again, 1 so far"},
		{Kind: Signal, Task: "api-1", Container: "api", Status: "TERM", Text: "TERM"},
		{Kind: Signal, Task: "api-1", Container: "api", Status: "KILL", Detail: "its stop timeout is over", Text: "KILL (its stop timeout is over)"},
		{Kind: MTLS, Task: "api-1", Text: "presents spiffe://x/svc/api; refuses a caller without a certificate"},
		{Kind: Post, Task: "api-1", Text: "POST http://127.0.0.1:9090/health/ok"},
		{Kind: Get, Task: "api-1", Text: "GET http://127.0.0.1:9090/, has hello"},
		{Kind: TrafficBegin, Task: "api-1", Address: "http://10.42.0.4:8080/", Text: "first answer after 8ms"},
		{Kind: RequestFailed, Detail: "EOF", Text: "FAILED: EOF"},
		{Kind: TrafficEnd, Phase: "orderly", Text: "orderly ended: 41 answered, 1 failed"},
		{Kind: Kill, Task: "api-1", Container: "sidecar-proxy", Detail: "SIGKILL", Text: "SIGKILL to envoy"},
		{Kind: Desired, Task: "api-1", Status: "STOPPED", Detail: "Task stopped by user", Text: "asked to stop (Task stopped by user)"},
		{Kind: Status, Task: "api-1", Status: "STOPPED", Detail: "UserInitiated: Task stopped by user", Text: "STOPPED (UserInitiated: Task stopped by user)"},
		{Kind: Cleared, Task: "api-1", Text: "nothing left of the task"},
		{Kind: Left, Task: "api-1", Detail: "nobody logs out", Text: "left: token 1 of m, as nobody logs out"},
		{Kind: StepEnd, Step: 2, Steps: 2, TookSeconds: 3, Error: "step 2: stop api-1: still in Consul", Text: "stop api-1"},
		{Kind: Output, Task: "api-1", Container: "api", Text: "listening on \x1b[1m8080\x1b[0m", Prefix: "api | "},
	}
	for i := range events {
		events[i].Time, events[i].Seconds, events[i].Scenario = at(i), float64(i), "hello"
	}
	return events
}

// Programs read these names: a difference is a break of the interface.
func TestObjectsKeepTheirShape(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	out := Objects(&b)
	for _, e := range run() {
		out.Event(e)
	}
	testkit.Golden(t, "events.jsonl", b.Bytes())
}

func TestLinesForPeople(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	out := Lines(&b)
	for _, e := range run() {
		out.Event(e)
	}
	testkit.Golden(t, "events.txt", b.Bytes())
}

func TestOneLineObeysNobody(t *testing.T) {
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
