package scenario

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// currentStep is the current step.
type currentStep struct {
	// Number is the step's, from 1, and Count the number of steps. Number is 0 before
	// and after the steps.
	Number, Count int
	// Text describes the step, SoFar its progress, such as "1 of 2"; it may be empty.
	Text, SoFar string
	Started     time.Time
	// Within is its time limit; 0 for none.
	Within time.Duration
}

// still describes in one line the progress of a step that has not ended.
func (s currentStep) still(now time.Time) string {
	what, waits := strings.CutPrefix(s.Text, "await ")
	still := "still busy: "
	if waits {
		still = "still waiting: "
	}
	if s.SoFar != "" {
		what += " (" + s.SoFar + ")"
	}
	text := fmt.Sprintf("%s%s, %d s", still, what, int(now.Sub(s.Started).Seconds()))
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
	if !e.onlyJSON() {
		r.mu.Lock()
		r.shown = time.Now()
		r.mu.Unlock()
	}
	r.record.Note(e)
	r.out(e)
}

// silence is how long nothing may be shown while a step lasts: a log should show
// that the run is alive, and what it waits for.
const silence = 10 * time.Second

// breakSilences reports how far the step is when both it and a silence are long, until
// ctx ends.
func (r *runner) breakSilences(ctx context.Context) {
	for retry.Sleep(ctx, silence/100) == nil {
		now := time.Now()
		r.mu.Lock()
		step, last := r.now, r.shown
		r.mu.Unlock()
		if now.Sub(last) < silence {
			continue
		}
		if r.plan.alone != nil {
			step = r.waiting(r.plan)
		}
		if step.Text != "" && now.Sub(step.Started) >= silence {
			r.emit(Event{
				Time: now, Kind: KindWaiting, Step: step.Number, Steps: step.Count, TookSeconds: Seconds(now.Sub(step.Started)),
				WithinSeconds: Seconds(step.Within), SoFar: step.SoFar, Text: step.still(now),
			})
		}
	}
}

// beginExtraStep records work that is not one of the steps.
func (r *runner) beginExtraStep(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = currentStep{Text: text, Started: time.Now()}
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
	now := currentStep{Number: n, Count: e.Steps, Text: e.Text, Started: e.Time}
	if s.Await != nil {
		now.Within = s.Await.Within
	}
	r.mu.Lock()
	r.now = now
	r.mu.Unlock()
	r.emit(e)
	return func(err error) {
		e.Kind, e.Time = KindStepEnd, time.Now()
		e.TookSeconds = Seconds(e.Time.Sub(now.Started))
		if err != nil {
			e.Error = err.Error()
		}
		r.emit(e)
	}
}

// answered counts the requests of the present traffic.
func (r *runner) answered() int {
	if r.last == nil {
		return 0
	}
	return r.last.Phase("", file.Limits{}).Answered
}
