package scenario

import (
	"fmt"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/localecs/view"
)

// Progress shows a run to whoever follows it.
type Progress interface {
	// Event is called by several goroutines and must not block.
	Event(Event)
	// Follow may ask look how the run is at any time, until end returns.
	Follow(look func() view.State) (end func())
}

// tell adds what every event has: when, and in which scenario.
func (r *runner) tell(e Event) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	e.Seconds = Seconds(e.Time.Sub(r.begun))
	e.Scenario = r.file.Name
	r.record.Note(e)
	r.out.Event(e)
}

// doing is what the runner is doing, with what is needed to say how far it is.
type doing struct {
	view.Step
	step file.Step
	// answered is how many requests were when it began.
	answered int
}

// beginOther notes something that is done before the steps.
func (r *runner) beginOther(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = doing{Step: view.Step{Text: text, Begun: time.Now()}}
}

// beginStep tells that step n begins, and end that it has ended.
func (r *runner) beginStep(n int, s file.Step) (end func(error)) {
	e := Event{Time: time.Now(), Kind: KindStepBegin, Step: n, Steps: len(r.file.Steps), Text: s.String()}
	now := doing{Step: view.Step{Number: n, Count: e.Steps, Text: e.Text, Begun: e.Time}, step: s, answered: r.answered()}
	if s.Await != nil {
		now.Within = s.Await.Within
	}
	r.mu.Lock()
	r.now = now
	r.mu.Unlock()
	r.tell(e)
	return func(err error) {
		begun := e.Time
		e.Time, e.Kind = time.Now(), KindStepEnd
		e.TookSeconds = Seconds(e.Time.Sub(begun))
		if err != nil {
			e.Error = err.Error()
		}
		r.tell(e)
	}
}

// state is how the run is now.
func (r *runner) state() view.State {
	r.mu.Lock()
	now, watch, faults := r.now, r.watch, r.faults
	s := view.State{Scenario: r.file.Name, Begun: r.begun, Step: now.Step}
	r.mu.Unlock()
	var checks Checks
	if watch != nil {
		checks, _ = watch.Now()
	}
	for _, t := range r.tasks.Begun() {
		s.Tasks = append(s.Tasks, view.Task{Name: t.Name, Address: t.IP(), View: t.View(), Checks: checksOf(checks, t.ID())})
	}
	if stream := r.shown.Load(); stream != nil {
		answered, failed, slowest := stream.Totals()
		s.Traffic = &view.Traffic{URL: stream.URL(), Rate: stream.Rate(), Answered: answered, Failed: failed, Slowest: slowest}
	}
	s.Faults, _ = faults.Now()
	s.Step.SoFar = r.soFar(now, checks)
	return s
}

// checksOf counts the checks of a task.
func checksOf(checks Checks, taskID string) view.Checks {
	n := checks.Count(taskID)
	return view.Checks{Passing: n[api.HealthPassing], Warning: n[api.HealthWarning], Critical: n[api.HealthCritical]}
}

// soFar says how far a step is, empty when there is nothing to tell.
func (r *runner) soFar(d doing, checks Checks) string {
	switch a := d.step.Await; {
	case a != nil && a.Steady:
		return r.serviceSoFar(a.Service)
	case a != nil && len(a.Logins) > 0:
		return "" // the server would have to be asked
	case a != nil && a.Service != "":
		return fmt.Sprintf("%d of %d", r.passing(checks, a.Service), a.Passing)
	case a != nil && a.Task != "":
		return r.tasks.Task(a.Task).SoFar(*a, checks)
	case a != nil && a.FaultsOver:
		return fmt.Sprintf("%d to come or to end", r.faults.Open())
	case a != nil:
		return fmt.Sprintf("%d of %d", r.answered()-d.answered, a.Requests)
	case d.step.Stop != nil && len(d.step.Stop.Tasks) > 1:
		stopped := 0
		for _, name := range d.step.Stop.Tasks {
			if task := r.task(name); task != nil && task.View().KnownStatus == scheduler.StatusStopped {
				stopped++
			}
		}
		return fmt.Sprintf("%d of %d", stopped, len(d.step.Stop.Tasks))
	}
	return ""
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
