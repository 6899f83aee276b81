package scenario

import (
	"context"
	"fmt"
	"strings"
	"sync"
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

// progress reports the events of a run, and keeps its current step and its failures.
type progress struct {
	scenario string
	steps    int // of the scenario
	record   *Recording
	out      func(Event)
	prefix   map[string]string // of lines of output, by task and container
	started  time.Time

	mu       sync.Mutex // guards what follows
	now      currentStep
	shown    time.Time // when the last event was
	failures []string
}

// emit records and shows an event, with its time and scenario.
func (p *progress) emit(e Event) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	e.Seconds = Seconds(e.Time.Sub(p.started))
	e.Scenario = p.scenario
	if !e.onlyJSON() {
		p.mu.Lock()
		p.shown = time.Now()
		p.mu.Unlock()
	}
	p.record.Add(e)
	p.out(e)
}

// silence is how long nothing may be shown while a step lasts: a log should show
// that the run is alive, and what it waits for.
const silence = 10 * time.Second

// breakSilences reports how far the step is when both it and a silence are long, until
// ctx ends. In a run without steps waiting returns what stands for one; it is nil in others.
func (p *progress) breakSilences(ctx context.Context, waiting func() currentStep) {
	for retry.Sleep(ctx, silence/100) == nil {
		now := time.Now()
		p.mu.Lock()
		step, last := p.now, p.shown
		p.mu.Unlock()
		if now.Sub(last) < silence {
			continue
		}
		if waiting != nil {
			step = waiting()
		}
		if step.Text != "" && now.Sub(step.Started) >= silence {
			p.emit(Event{
				Time: now, Kind: KindWaiting, Step: step.Number, Steps: step.Count,
				TookSeconds:   Seconds(now.Sub(step.Started)),
				WithinSeconds: Seconds(step.Within), SoFar: step.SoFar, Text: step.still(now),
			})
		}
	}
}

// beginExtraStep records work that is not one of the steps.
func (p *progress) beginExtraStep(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = currentStep{Text: text, Started: time.Now()}
}

// showSoFar records how far the present step is.
func (p *progress) showSoFar(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.SoFar = text
}

// beginStep reports the begin of step n, and end its end.
func (p *progress) beginStep(n int, s file.Step) (end func(error)) {
	e := Event{Time: time.Now(), Kind: KindStepBegin, Step: n, Steps: p.steps, Text: s.String()}
	now := currentStep{Number: n, Count: e.Steps, Text: e.Text, Started: e.Time}
	if s.Await != nil {
		now.Within = s.Await.Within
	}
	p.mu.Lock()
	p.now = now
	p.mu.Unlock()
	p.emit(e)
	return func(err error) {
		e.Kind, e.Time = KindStepEnd, time.Now()
		e.TookSeconds = Seconds(e.Time.Sub(now.Started))
		if err != nil {
			e.Error = err.Error()
		}
		p.emit(e)
	}
}

func (p *progress) fail(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures = append(p.failures, fmt.Sprintf(format, args...))
}
