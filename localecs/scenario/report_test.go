package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// phase returns a judged phase whose slowest request took 12 ms.
func phase(name string, answered, failed int, l file.Limits) Phase {
	return (Phase{Name: name, Answered: answered, Failed: failed, Slowest: 12 * time.Millisecond, First: "EOF",
		Limits: l}).withVerdict()
}

func full() *Report {
	return &Report{
		Name: "rolling-update", StopOrder: "reverse", Tasks: 8,
		Answered: 2249, Failed: 31, Slowest: 12 * time.Millisecond,
		Phases: []Phase{
			phase("orderly", 2198, 0, file.Exactly(0)), phase("Envoy killed", 50, 31, file.Exactly(0)),
			phase("phase 3", 1, 0, file.Limits{}),
		},
		Left: []ReportedLeftover{
			{Task: "api-4", What: "token 9f61 of iam-ecs-service-token",
				Reason: "its health-sync was killed; the ACL controller removes it"},
		},
		Faults: 31, Seed: 7,
		LogDir: "/logs", Elapsed: 121660 * time.Millisecond,
		Failures: []string{"Envoy killed: 31 of 81 requests failed; 0 may. First: EOF", "two\nlines"},
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	const want = `
Traffic: no request is ever retried
  phase         answered  failed     allowed  slowest  verdict
  orderly           2198       0           0     12ms  passed
  Envoy killed        50      31           0     12ms  FAILED
  phase 3              1       0           -     12ms

Requests: 2249 answered, 31 failed, slowest 12ms
Faults: 31, requests drawn by seed 7
Left by api-4: token 9f61 of iam-ecs-service-token, as its health-sync was killed; the ACL controller removes it
Logs: /logs
rolling-update: FAILED: Envoy killed: 31 of 81 requests failed; 0 may. First: EOF
rolling-update: FAILED: two
  lines
`
	if diff := cmp.Diff(want, full().text()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// One phase without limits has nothing to add to the totals.
func TestTextOfAPlainScenario(t *testing.T) {
	t.Parallel()
	r := &Report{
		Name: "x", Answered: 5, Slowest: time.Millisecond, Phases: []Phase{phase("phase 1", 5, 0, file.Limits{})},
		LogDir: "/logs", Elapsed: 1520 * time.Millisecond,
	}
	const want = "\nRequests: 5 answered, 0 failed, slowest 1ms\nLogs: /logs\nx: all checks passed in 1.5s\n"
	if diff := cmp.Diff(want, r.text()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWriteForMachines(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := full().Write(&b, true); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Name      string
		StopOrder string `json:"stop_order"`
		Tasks     int
		Phases    []struct {
			Name, Verdict    string
			Answered, Failed int
			Limits           struct {
				Max *int `json:"max_failed"`
			}
		}
		Left     []map[string]string
		Failures []string
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || strings.Count(b.String(), "\n") != 1 {
		t.Fatalf("%v: %s", err, &b)
	}
	killed := got.Phases[1]
	testkit.Equal(t, "Name", got.Name, "rolling-update")
	testkit.Equal(t, "StopOrder", got.StopOrder, "reverse")
	testkit.Equal(t, "Tasks", got.Tasks, 8)
	testkit.Equal(t, "len(got.Phases)", len(got.Phases), 3)
	testkit.Equal(t, "len(got.Failures)", len(got.Failures), 2)
	testkit.Equal(t, "Name", killed.Name, "Envoy killed")
	testkit.Equal(t, "Verdict", killed.Verdict, "FAILED")
	testkit.Equal(t, "Answered", killed.Answered, 50)
	testkit.Equal(t, "Failed", killed.Failed, 31)
	testkit.Equal(t, "Limits.Max", *killed.Limits.Max, 0)
	testkit.Equal(t, `Left[0]["task"]`, got.Left[0]["task"], "api-4")
}

func outcomes() []Outcome {
	good := full()
	good.Failures = nil
	return []Outcome{
		{Name: "rolling-update", StopOrder: "reverse", Report: good},
		{Name: "rolling-update", StopOrder: "at-once", Report: full()},
		{Name: "without-delay", StopOrder: "reverse", Err: errors.New("make network:\n  no root")},
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := WriteSummary(&b, false, outcomes()); err != nil {
		t.Fatal(err)
	}
	const want = `
Summary
  scenario        stop order  tasks  answered  failed  verdict  seconds
  rolling-update  reverse         8      2249      31  passed     121.7
  rolling-update  at-once         8      2249      31  FAILED     121.7
  without-delay   reverse         0         0       0  not run      0.0

rolling-update, at-once: FAILED: Envoy killed: 31 of 81 requests failed; 0 may. First: EOF
without-delay, reverse: not run: make network: no root
1 of 3 passed
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b.Reset()
	if err := WriteSummary(&b, true, outcomes()); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.Contains(got,
		`"kind":"summary","scenarios":[{"name":"rolling-update","stop_order":"reverse","tasks":8,"answered":2249,`+
			`"failed":31,"verdict":"passed","seconds":121.7},`) {
		t.Errorf("got %s", got)
	}
}

func TestCodeIsTheWorst(t *testing.T) {
	t.Parallel()
	all := outcomes()
	usage := Outcome{Err: exit.Usagef("no such file")}
	for _, c := range []struct {
		outcomes []Outcome
		want     int
	}{
		{nil, 0},
		{all[:1], 0},
		{[]Outcome{all[0], usage}, 1},
		{[]Outcome{all[1], all[0], usage}, 2},
		{all, 3},
	} {
		if got := Code(c.outcomes); got != c.want {
			t.Errorf("%d outcomes: %d, want %d", len(c.outcomes), got, c.want)
		}
	}
}

func TestShortened(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü", maxWhy+1)
	for text, want := range map[string]string{"a\n b": "a b", long: strings.Repeat("ü", maxWhy) + "…"} {
		if got := shortened(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
