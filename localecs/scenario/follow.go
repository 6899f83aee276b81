package scenario

import (
	"fmt"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// Progress shows a run to the user.
type Progress interface {
	// Event is called by several goroutines and must not block.
	Event(Event)
	// Follow may call look for the state of the run at any time, until end returns.
	Follow(look func() State) (end func())
}

// State is what a run does at a moment.
type State struct {
	Scenario string
	// Begun is the start of the run.
	Begun time.Time
	Step  Step
}

// Step is the current step.
type Step struct {
	// Number is the step's, from 1, and Count the number of steps. Number is 0 before
	// and after the steps.
	Number, Count int
	// Text describes the step, SoFar its progress, such as "1 of 2"; it may be empty.
	Text, SoFar string
	Begun       time.Time
	// Within is its time limit; 0 for none.
	Within time.Duration
}

// still describes in one line the progress of a step that has not ended.
func (s Step) still(now time.Time) string {
	what, waits := strings.CutPrefix(s.Text, "await ")
	still := "still busy: "
	if waits {
		still = "still waiting: "
	}
	if s.SoFar != "" {
		what += " (" + s.SoFar + ")"
	}
	text := fmt.Sprintf("%s%s, %d s", still, what, int(now.Sub(s.Begun).Seconds()))
	if s.Within > 0 {
		text += fmt.Sprintf(" of %g s", s.Within.Seconds())
	}
	return text
}

// emit records and shows an event, with its time and scenario.
func (r *runner) emit(e Event) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	e.Seconds = Seconds(e.Time.Sub(r.started))
	e.Scenario = r.file.Name
	r.record.Note(e)
	r.out.Event(e)
}

// beginOther records work that is not one of the steps.
func (r *runner) beginOther(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = Step{Text: text, Begun: time.Now()}
}

// showSoFar records how far the present step is.
func (r *runner) showSoFar(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.SoFar = text
}

// beginStep reports the begin of step n, and end its end.
func (r *runner) beginStep(n int, s file.Step) (end func(error)) {
	e := Event{Time: time.Now(), Kind: KindStepBegin, Step: n, Steps: len(r.file.Steps), Text: s.String()}
	now := Step{Number: n, Count: e.Steps, Text: e.Text, Begun: e.Time}
	if s.Await != nil {
		now.Within = s.Await.Within
	}
	r.mu.Lock()
	r.now = now
	r.mu.Unlock()
	r.emit(e)
	return func(err error) {
		e.Kind, e.Time = KindStepEnd, time.Now()
		e.TookSeconds = Seconds(e.Time.Sub(now.Begun))
		if err != nil {
			e.Error = err.Error()
		}
		r.emit(e)
	}
}

// state returns the present state of the run.
func (r *runner) state() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := State{Scenario: r.file.Name, Begun: r.started, Step: r.now}
	if r.plan.alone != nil {
		s.Step = r.waiting(r.plan)
	}
	return s
}

// answered counts the requests of the present traffic.
func (r *runner) answered() int {
	if r.last == nil {
		return 0
	}
	return r.last.Phase("", file.Limits{}).Answered
}
