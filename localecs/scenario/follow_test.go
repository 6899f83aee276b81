package scenario

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/localecs/view"
)

// recorder keeps what it is told.
type recorder struct{ events []Event }

func (r *recorder) Event(e Event) { r.events = append(r.events, e) }

func (r *recorder) Follow(func() view.State) (end func()) { return func() {} }

func TestStepsAreToldAndShown(t *testing.T) {
	t.Parallel()
	told := &recorder{}
	step := file.Step{Await: &file.Await{Service: "api", Passing: 2, Within: 90 * time.Second}}
	r := &runner{
		file: &file.Scenario{Name: "hello", Steps: []file.Step{{Start: []string{"api"}}, step}},
		out:  told, record: NewRecording(), begun: time.Now(), tasks: NewRoster(),
	}
	r.beginOther("start the Consul server")
	if got := r.state().Step; got.Text != "start the Consul server" || got.Number != 0 || got.SoFar != "" {
		t.Errorf("before the steps: %+v", got)
	}
	end := r.beginStep(2, step)
	got := r.state()
	want := view.State{Scenario: "hello", Begun: r.begun, Step: view.Step{
		Number: 2, Count: 2, Text: "await 2 passing instances of api", SoFar: "0 of 2", Begun: told.events[0].Time, Within: 90 * time.Second,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("in the step (-want +got):\n%s", diff)
	}
	end(errors.New("step 2: nobody came"))
	for i := range told.events {
		e := &told.events[i]
		if e.Seconds < 0 || e.Seconds > 60 || time.Since(e.Time) > time.Minute {
			t.Errorf("event %d is at %v, %f s", i, e.Time, e.Seconds)
		}
		e.Time, e.Seconds, e.TookSeconds = time.Time{}, 0, 0
	}
	if diff := cmp.Diff([]Event{
		{Kind: KindStepBegin, Scenario: "hello", Step: 2, Steps: 2, Text: "await 2 passing instances of api"},
		{Kind: KindStepEnd, Scenario: "hello", Step: 2, Steps: 2, Text: "await 2 passing instances of api", Error: "step 2: nobody came"},
	}, told.events); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestRequestsSoFarAreThoseOfTheStep(t *testing.T) {
	t.Parallel()
	r := &runner{file: &file.Scenario{}, out: &recorder{}, record: NewRecording()}
	d := doing{step: file.Step{Await: &file.Await{Requests: 40}}}
	if got := r.soFar(d, nil); got != "0 of 40" {
		t.Errorf("got %q", got)
	}
	if got := r.soFar(doing{step: file.Step{EndTraffic: &file.EndTraffic{}}}, nil); got != "" {
		t.Errorf("a step that has nothing to tell: %q", got)
	}
}
