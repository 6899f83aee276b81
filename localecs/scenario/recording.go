package scenario

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/localecs/view"
)

// Recording records one run for its timeline. Its methods may be called by several
// goroutines.
type Recording struct {
	mu       sync.Mutex
	run      view.RecordedRun
	requests buckets
}

// NewRecording returns an empty recording.
func NewRecording() *Recording { return &Recording{requests: newBuckets()} }

// Start sets the name of the run; all times count from start.
func (r *Recording) Start(scenario, stopOrder string, start time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.run.Scenario, r.run.StopOrder, r.run.Started = scenario, stopOrder, start
}

// begin adds a task, which may have had events before.
func (r *Recording) begin(t Task) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.task(t.Name)
	known.ID, known.Address = t.ID(), t.IP()
	known.Containers = nil
	for _, c := range t.Definition.ContainerDefinitions {
		known.Containers = append(known.Containers,
			view.RecordedContainer{Name: c.Name, Essential: c.IsEssential(), HealthCheck: c.HealthCheck.Enabled()})
	}
}

// task returns the task of that name, a new one if there is none. The pointer is valid
// until the next task is added.
func (r *Recording) task(name string) *view.RecordedTask {
	if i := slices.IndexFunc(r.run.Tasks, func(t view.RecordedTask) bool { return t.Name == name }); i >= 0 {
		return &r.run.Tasks[i]
	}
	r.run.Tasks = append(r.run.Tasks, view.RecordedTask{Name: name})
	return &r.run.Tasks[len(r.run.Tasks)-1]
}

// Add adds an event.
func (r *Recording) Add(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.since(e.Time)
	switch e.Kind {
	case KindScenario, KindWaiting, KindTimeline, KindOutput:
	case KindStepBegin:
		r.run.Steps = append(r.run.Steps, view.RecordedStep{Text: e.Text, From: at, To: at})
	case KindStepEnd:
		end(r.run.Steps, func(s view.RecordedStep) bool { return s.Text == e.Text }, at, e.Error)
	case KindFault:
		r.run.Faults = append(r.run.Faults,
			view.RecordedStep{Text: e.Detail, Task: e.Task, From: at, To: at, Error: e.Error})
	case KindFaultOver:
		end(r.run.Faults, func(s view.RecordedStep) bool { return s.Text == e.Detail && s.To == s.From }, at, e.Error)
	case KindTrafficBegin:
		r.run.Phases = append(r.run.Phases, view.RecordedStep{Text: e.Address, Task: e.Task, From: at, To: at})
	case KindTrafficEnd:
		if n := len(r.run.Phases); n > 0 {
			r.run.Phases[n-1].Text, r.run.Phases[n-1].To = e.Phase, at
		}
	default:
		r.event(e, at)
	}
}

// end ends the last step that matches.
func end(steps []view.RecordedStep, is func(view.RecordedStep) bool, at float64, err string) {
	for i := len(steps) - 1; i >= 0; i-- {
		if is(steps[i]) {
			steps[i].To = at
			if err != "" {
				steps[i].Error = err
			}
			return
		}
	}
}

func (r *Recording) event(e Event, at float64) {
	recorded := view.RecordedEvent{
		At: at, Kind: e.Kind, Container: e.Container, Service: e.Service, Check: e.Check,
		Method: e.Method, Accessor: e.Accessor, Status: e.Status, Detail: e.Detail,
	}
	if recorded.Status == "" && recorded.Detail == "" {
		recorded.Detail = e.Text
	}
	if e.Task == "" {
		r.run.Events = append(r.run.Events, recorded)
		return
	}
	t := r.task(e.Task)
	t.Events = append(t.Events, recorded)
}

func (r *Recording) request(q trafficRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.since(q.End)
	r.requests.add(at, q)
	for n := range r.run.Tasks {
		if t := &r.run.Tasks[n]; q.Err == nil && names(q.Answer, t) {
			t.LastServed = &at
		}
	}
}

func (r *Recording) since(at time.Time) float64 {
	if at.IsZero() {
		at = time.Now()
	}
	return max(0, Seconds(at.Sub(r.run.Started)))
}

// End returns the run, which has ended now with a report or an error.
func (r *Recording) End(now time.Time, report *Report, err error) *view.RecordedRun {
	run := r.snapshot(now)
	switch {
	case err != nil:
		run.Outcome, run.Failures = view.Interrupted, []string{err.Error()}
		return &run
	case len(report.Failures) > 0:
		run.Outcome = view.Failed
	default:
		run.Outcome = view.Passed
	}
	run.Seed, run.Failures = report.Seed, nonNil(report.Failures)
	return &run
}

// snapshot returns a copy of the run until now. A phase and a step that still last end now.
func (r *Recording) snapshot(now time.Time) view.RecordedRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	run := r.run
	run.Seconds = r.since(now)
	run.Tasks, run.Steps, run.Faults = nonNil(r.run.Tasks), nonNil(r.run.Steps), nonNil(r.run.Faults)
	run.Phases, run.Events = nonNil(r.run.Phases), nonNil(r.run.Events)
	for _, open := range [][]view.RecordedStep{run.Steps, run.Phases} {
		if n := len(open); n > 0 && open[n-1].To == open[n-1].From {
			open[n-1].To = run.Seconds
		}
	}
	run.Requests = r.requests.counted()
	for i := range run.Tasks {
		t := &run.Tasks[i]
		t.Containers, t.Events = nonNil(t.Containers), nonNil(t.Events)
		// The time of a container's event may be before that of an earlier one.
		slices.SortStableFunc(t.Events, func(a, b view.RecordedEvent) int { return cmp.Compare(a.At, b.At) })
	}
	return run
}

// nonNil returns a copy that is a list in JSON, even if it is empty.
func nonNil[T any](s []T) []T { return append([]T{}, s...) }
