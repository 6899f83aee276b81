package scenario

import (
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/localecs/view"
)

// Progress shows a run to the user.
type Progress interface {
	// Event is called by several goroutines and must not block.
	Event(Event)
	// Follow may call look for the state of the run at any time, until end returns.
	Follow(look func() view.State) (end func())
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
	r.now = view.Step{Text: text, Begun: time.Now()}
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
	now := view.Step{Number: n, Count: e.Steps, Text: e.Text, Begun: e.Time}
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
func (r *runner) state() view.State {
	r.mu.Lock()
	watch, faults := r.watch, r.faults
	s := view.State{Scenario: r.file.Name, Begun: r.started, Step: r.now}
	r.mu.Unlock()
	var checks Checks
	if watch != nil {
		checks, _ = watch.Now()
	}
	for _, t := range r.tasks.Started() {
		s.Tasks = append(s.Tasks, view.Task{Name: t.Name, Address: t.IP(), View: t.View(), Checks: checksOf(checks, t.ID())})
	}
	if stream := r.shown.Load(); stream != nil {
		answered, failed, slowest := stream.Totals()
		s.Traffic = &view.Traffic{URL: stream.URL(), Rate: stream.Rate(), Answered: answered, Failed: failed, Slowest: slowest}
	}
	s.Faults, _ = faults.Now()
	if r.plan.alone != nil {
		s.Step = r.waiting(r.plan)
	}
	return s
}

// checksOf counts the checks of a task.
func checksOf(checks Checks, taskID string) view.Checks {
	n := checks.Count(taskID)
	return view.Checks{Passing: n[api.HealthPassing], Warning: n[api.HealthWarning], Critical: n[api.HealthCritical]}
}

// answered counts the requests of the present traffic.
func (r *runner) answered() int {
	stream := r.shown.Load()
	if stream == nil {
		return 0
	}
	n, _, _ := stream.Totals()
	return n
}
