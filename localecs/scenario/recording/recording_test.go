package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/meshtask/consul-ecs/localecs/picture/history"
	"github.com/meshtask/consul-ecs/localecs/scenario/progress"
	"github.com/meshtask/consul-ecs/localecs/scenario/traffic"
)

// at is a moment so many seconds into a run.
func at(seconds float64) time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func begun() *Recording {
	r := New()
	r.Start("hello", "reverse", at(0))
	return r
}

func TestEventsBecomeAHistory(t *testing.T) {
	t.Parallel()
	r := begun()
	for _, e := range []progress.Event{
		{Time: at(0), Kind: progress.Scenario, Text: "not a part of it"},
		{Time: at(0.5), Kind: progress.Consul, Text: "leader elected"},
		{Time: at(1), Kind: progress.StepBegin, Step: 1, Text: "start api-1"},
		{Time: at(1.2), Kind: progress.Task, Task: "api-1", Text: "task 1234 at 10.0.0.4"},
		{Time: at(1.1), Kind: progress.Status, Task: "api-1", Container: "api", Status: "RUNNING"}, // its own time is earlier
		{Time: at(1.5), Kind: progress.StepEnd, Step: 1, Text: "start api-1"},
		{Time: at(2), Kind: progress.Fault, Task: "api-1", Detail: "freeze api"},
		{Time: at(2), Kind: progress.Fault, Task: "api-1", Detail: "kill api", Error: "it is gone"},
		{Time: at(3), Kind: progress.Token, Task: "api-1", Method: "m", Accessor: "t1", Status: "login"},
		{Time: at(4), Kind: progress.FaultOver, Task: "api-1", Detail: "freeze api"},
		{Time: at(5), Kind: progress.TrafficBegin, Task: "api-1", Address: "http://10.0.0.4/"},
		{Time: at(6), Kind: progress.Check, Task: "api-1", Service: "api", Check: "synced", Status: "passing"},
		{Time: at(7), Kind: progress.TrafficEnd, Phase: "orderly"},
		{Time: at(8), Kind: progress.StepBegin, Step: 2, Text: "await nothing"},
	} {
		r.Note(e)
	}
	want := &history.Run{
		Scenario: "hello", StopOrder: "reverse", Begun: at(0), Seconds: 9, Outcome: history.Passed,
		Tasks: []history.Task{{Name: "api-1", Events: []history.Event{
			{At: 1.1, Kind: "status", Container: "api", Status: "RUNNING"},
			{At: 1.2, Kind: "task", Detail: "task 1234 at 10.0.0.4"},
			{At: 3, Kind: "token", Method: "m", Accessor: "t1", Status: "login"},
			{At: 6, Kind: "check", Service: "api", Check: "synced", Status: "passing"},
		}}},
		Steps:    []history.Step{{Text: "start api-1", From: 1, To: 1.5}, {Text: "await nothing", From: 8, To: 9}},
		Faults:   []history.Step{{Text: "freeze api", Task: "api-1", From: 2, To: 4}, {Text: "kill api", Task: "api-1", From: 2, To: 2, Error: "it is gone"}},
		Phases:   []history.Step{{Text: "orderly", Task: "api-1", From: 5, To: 7}},
		Requests: history.Requests{BucketSeconds: 0.1},
		Events:   []history.Event{{At: 0.5, Kind: "consul", Detail: "leader elected"}},
	}
	if d := cmp.Diff(want, r.Judged(at(9), nil), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := r.Judged(at(9), []string{"lost"}); got.Outcome != history.Failed || got.Failures[0] != "lost" {
		t.Errorf("%s, %v", got.Outcome, got.Failures)
	}
	if got := r.Broken(at(9), errors.New("killed")); got.Outcome != history.Interrupted || got.Failures[0] != "killed" {
		t.Errorf("%s, %v", got.Outcome, got.Failures)
	}
}

// What reads the timeline goes through its lists without asking whether they are.
func TestListsAreNeverNull(t *testing.T) {
	t.Parallel()
	r := begun()
	r.Note(progress.Event{Time: at(1), Kind: progress.Task, Task: "api-1", Text: "task 1234 at 10.0.0.4"})
	text, err := json.Marshal(r.Judged(at(9), nil))
	if err != nil || bytes.Contains(text, []byte("null")) {
		t.Errorf("%v, %s", err, text)
	}
}

func TestRequestsAreCountedByTimeAndTask(t *testing.T) {
	t.Parallel()
	r := begun()
	r.run.Tasks = []history.Task{{Name: "api-1", ID: "1234", Address: "10.0.0.1"}, {Name: "api-2", ID: "5678", Address: "10.0.0.12"}}
	ask := func(end float64, answer string, err error) {
		r.Request(traffic.Request{Start: at(end - 0.05), End: at(end), Answer: answer, Err: err})
	}
	ask(0.01, "hello from ip-10-0-0-12.ec2.internal", nil)
	ask(0.05, "by 10.0.0.1", nil)
	ask(0.25, "task 5678", nil)
	ask(0.26, "", errors.New("EOF"))
	run := r.Run(at(1))
	want := history.Requests{BucketSeconds: 0.1, Answered: []int{2, 0, 1}, Lost: []int{0, 0, 1}, SlowestMS: []int{50, 0, 50}}
	if d := cmp.Diff(want, run.Requests); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff([]int{1}, run.Tasks[0].Served) + cmp.Diff([]int{1, 0, 1}, run.Tasks[1].Served); d != "" {
		t.Errorf("served (-want +got):\n%s", d)
	}
	if last := run.Tasks[1].LastServed; last == nil || *last != 0.25 {
		t.Errorf("last served %v", last)
	}
	if answered, lost := run.Requests.Totals(); answered != 3 || lost != 1 || run.Requests.Peak() != 2 {
		t.Errorf("%d answered, %d lost, peak %d", answered, lost, run.Requests.Peak())
	}
}

func TestLongRunsHaveWiderBuckets(t *testing.T) {
	t.Parallel()
	r := begun()
	r.run.Tasks = []history.Task{{Name: "a", ID: "1234"}}
	for i := range 600 {
		r.Request(traffic.Request{Start: at(float64(i)), End: at(float64(i) + 0.01), Answer: "1234"})
	}
	run := r.Run(at(600))
	answered, _ := run.Requests.Totals()
	served := 0
	for _, n := range run.Tasks[0].Served {
		served += n
	}
	if len(run.Requests.Answered) > maxBuckets || run.Requests.BucketSeconds != 0.8 || answered != 600 || served != 600 || run.Requests.Answered[0] != 1 {
		t.Errorf("%d buckets of %g s with %d answers, %d of the task", len(run.Requests.Answered), run.Requests.BucketSeconds, answered, served)
	}
}
