package scenario

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// recorder keeps events.
type recorder struct{ events []Event }

func (r *recorder) Event(e Event) { r.events = append(r.events, e) }

func TestStepsAreReportedAndShown(t *testing.T) {
	t.Parallel()
	reported := &recorder{}
	step := file.Step{Await: &file.Await{Service: "api", Passing: 2, Within: 90 * time.Second}}
	r := &progress{scenario: "hello", steps: 2, out: reported.Event, record: NewRecording(), started: time.Now()}
	r.beginExtraStep("start the Consul server")
	got := r.now
	testkit.Equal(t, "before the steps: Text", got.Text, "start the Consul server")
	testkit.Equal(t, "before the steps: Number", got.Number, 0)
	testkit.Equal(t, "before the steps: SoFar", got.SoFar, "")
	end := r.beginStep(2, step)
	r.showSoFar("0 of 2")
	got = r.now
	want := currentStep{
		Number: 2, Count: 2, Text: "await 2 passing instances of api", SoFar: "0 of 2",
		Started: reported.events[0].Time, Within: 90 * time.Second,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("in the step (-want +got):\n%s", diff)
	}
	end(errors.New("step 2: timed out"))
	for i := range reported.events {
		e := &reported.events[i]
		if e.Seconds < 0 || e.Seconds > 60 {
			t.Errorf("event %d is at %v, %f s", i, e.Time, e.Seconds)
		}
		if time.Since(e.Time) > time.Minute {
			t.Errorf("event %d is at %v, %f s", i, e.Time, e.Seconds)
		}
		e.Time, e.Seconds, e.TookSeconds = time.Time{}, 0, 0
	}
	if diff := cmp.Diff([]Event{
		{Kind: KindStepBegin, Scenario: "hello", Step: 2, Steps: 2, Text: "await 2 passing instances of api"},
		{Kind: KindStepEnd, Scenario: "hello", Step: 2, Steps: 2, Text: "await 2 passing instances of api",
			Error: "step 2: timed out"},
	}, reported.events); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
}

func TestRequestsSoFarAreThoseOfTheStep(t *testing.T) {
	t.Parallel()
	r := &stepRunner{traffic: &trafficPhases{}}
	if holds, got, _ := r.holds(t.Context(), file.Await{Requests: 40}, 0); holds || got != "0 of 40" {
		t.Errorf("got %v, %q", holds, got)
	}
}
