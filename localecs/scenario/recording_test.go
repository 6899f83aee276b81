package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/view"
)

// recordedAt returns a moment so many seconds into a run.
func recordedAt(seconds float64) time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func startedRecording() *Recording {
	r := NewRecording()
	r.Start("hello", "reverse", recordedAt(0))
	return r
}

func TestEventsBecomeAHistory(t *testing.T) {
	t.Parallel()
	r := startedRecording()
	for _, e := range []Event{
		{Time: recordedAt(0), Kind: KindScenario, Text: "not a part of it"},
		{Time: recordedAt(0.5), Kind: KindConsul, Text: "leader elected"},
		{Time: recordedAt(1), Kind: KindStepBegin, Step: 1, Text: "start api-1"},
		{Time: recordedAt(1.2), Kind: KindTask, Task: "api-1", Text: "task 1234 at 10.0.0.4"},
		// its own time is earlier
		{Time: recordedAt(1.1), Kind: view.KindStatus, Task: "api-1", Container: "api", Status: "RUNNING"},
		{Time: recordedAt(1.5), Kind: KindStepEnd, Step: 1, Text: "start api-1"},
		{Time: recordedAt(2), Kind: KindFault, Task: "api-1", Detail: "freeze api"},
		{Time: recordedAt(2), Kind: KindFault, Task: "api-1", Detail: "kill api", Error: "it is gone"},
		{Time: recordedAt(3), Kind: view.KindToken, Task: "api-1", Method: "m", Accessor: "t1", Status: "login"},
		{Time: recordedAt(4), Kind: KindFaultOver, Task: "api-1", Detail: "freeze api"},
		{Time: recordedAt(5), Kind: KindTrafficBegin, Task: "api-1", Address: "http://10.0.0.4/"},
		{Time: recordedAt(6), Kind: view.KindCheck, Task: "api-1", Service: "api", Check: "synced", Status: "passing"},
		{Time: recordedAt(7), Kind: KindTrafficEnd, Phase: "orderly"},
		{Time: recordedAt(8), Kind: KindStepBegin, Step: 2, Text: "await nothing"},
	} {
		r.Add(e)
	}
	want := &view.RecordedRun{
		Scenario: "hello", StopOrder: "reverse", Started: recordedAt(0), Seconds: 9, Outcome: view.Passed,
		Tasks: []view.RecordedTask{{Name: "api-1", Events: []view.RecordedEvent{
			{At: 1.1, Kind: "status", Container: "api", Status: "RUNNING"},
			{At: 1.2, Kind: "task", Detail: "task 1234 at 10.0.0.4"},
			{At: 3, Kind: "token", Method: "m", Accessor: "t1", Status: "login"},
			{At: 6, Kind: "check", Service: "api", Check: "synced", Status: "passing"},
		}}},
		Steps: []view.RecordedStep{{Text: "start api-1", From: 1, To: 1.5}, {Text: "await nothing", From: 8, To: 9}},
		Faults: []view.RecordedStep{
			{Text: "freeze api", Task: "api-1", From: 2, To: 4},
			{Text: "kill api", Task: "api-1", From: 2, To: 2, Error: "it is gone"},
		},
		Phases:   []view.RecordedStep{{Text: "orderly", Task: "api-1", From: 5, To: 7}},
		Requests: view.RecordedRequests{BucketSeconds: 0.1},
		Events:   []view.RecordedEvent{{At: 0.5, Kind: "consul", Detail: "leader elected"}},
	}
	if d := cmp.Diff(want, r.End(recordedAt(9), &Report{}, nil), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := r.End(recordedAt(9), &Report{Failures: []string{"lost"}}, nil); got.Outcome != view.Failed ||
		got.Failures[0] != "lost" {
		t.Errorf("%s, %v", got.Outcome, got.Failures)
	}
	if got := r.End(recordedAt(9), nil, errors.New("killed")); got.Outcome != view.Interrupted ||
		got.Failures[0] != "killed" {
		t.Errorf("%s, %v", got.Outcome, got.Failures)
	}
}

// What reads the timeline goes through its lists without asking whether they are.
func TestListsAreNeverNull(t *testing.T) {
	t.Parallel()
	r := startedRecording()
	r.Add(Event{Time: recordedAt(1), Kind: KindTask, Task: "api-1", Text: "task 1234 at 10.0.0.4"})
	text, err := json.Marshal(r.End(recordedAt(9), &Report{}, nil))
	if err != nil || bytes.Contains(text, []byte("null")) {
		t.Errorf("%v, %s", err, text)
	}
}

func TestRequestsAreCountedByTime(t *testing.T) {
	t.Parallel()
	r := startedRecording()
	r.run.Tasks = []view.RecordedTask{
		{Name: "api-1", ID: "1234", Address: "10.0.0.1"}, {Name: "api-2", ID: "5678", Address: "10.0.0.12"},
	}
	ask := func(end float64, answer string, err error) {
		r.request(trafficRequest{Start: recordedAt(end - 0.05), End: recordedAt(end), Answer: answer, Err: err})
	}
	ask(0.01, "hello from ip-10-0-0-12.ec2.internal", nil)
	ask(0.05, "by 10.0.0.1", nil)
	ask(0.25, "task 5678", nil)
	ask(0.26, "", errors.New("EOF"))
	run := r.snapshot(recordedAt(1))
	want := view.RecordedRequests{
		BucketSeconds: 0.1, Answered: []int{2, 0, 1}, Lost: []int{0, 0, 1}, SlowestMS: []int{50, 0, 50},
	}
	if d := cmp.Diff(want, run.Requests); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if last := run.Tasks[1].LastServed; last == nil || *last != 0.25 {
		t.Errorf("last served %v", last)
	}
}

func TestLongRunsHaveWiderBuckets(t *testing.T) {
	t.Parallel()
	r := startedRecording()
	for i := range 600 {
		r.request(trafficRequest{Start: recordedAt(float64(i)), End: recordedAt(float64(i) + 0.01)})
	}
	run := r.snapshot(recordedAt(600))
	answered := 0
	for _, n := range run.Requests.Answered {
		answered += n
	}
	if len(run.Requests.Answered) > maxBuckets {
		t.Fatalf("%d buckets of %g s with %d answers", len(run.Requests.Answered), run.Requests.BucketSeconds, answered)
	}
	testkit.Equal(t, "Requests.BucketSeconds", run.Requests.BucketSeconds, 0.8)
	testkit.Equal(t, "answered", answered, 600)
	testkit.Equal(t, "Requests.Answered[0]", run.Requests.Answered[0], 1)
}
