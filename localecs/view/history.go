package view

import (
	"slices"
	"strings"
	"time"
)

// Run is one run of a scenario. All times in it are seconds since Begun, to the
// microsecond. docs/localecs/reference.md has the table of its JSON form.
type RecordedRun struct {
	Scenario  string `json:"scenario"`
	StopOrder string `json:"stop_order,omitempty"`
	// Seed has drawn the requests that faults strike, and the schedule of a chaos run;
	// 0 when there are no faults.
	Seed  uint64    `json:"seed,omitempty"`
	Begun time.Time `json:"begun"`
	// Seconds is how long it took until it was judged.
	Seconds float64 `json:"seconds"`
	// Outcome is one of the constants, Failures what was wrong.
	Outcome  string   `json:"outcome"`
	Failures []string `json:"failures"`
	// Tasks are in the order of their start, Steps and Faults too.
	Tasks  []RecordedTask `json:"tasks"`
	Steps  []RecordedStep `json:"steps"`
	Faults []RecordedStep `json:"faults"`
	// Phases are the parts of the traffic, Requests what became of it.
	Phases   []RecordedStep   `json:"phases"`
	Requests RecordedRequests `json:"requests"`
	// Events are about no task: the server is ready, a request was lost.
	Events []RecordedEvent `json:"events"`
}

// Outcomes of a run.
const (
	Passed      = "passed"
	Failed      = "FAILED"
	Interrupted = "interrupted"
)

// Task is what happened to one.
type RecordedTask struct {
	Name    string `json:"name"`
	ID      string `json:"id,omitempty"`
	Address string `json:"address,omitempty"`
	// Containers are in the order of the definition, Application is the name of the
	// one that the others are there for.
	Containers  []RecordedContainer `json:"containers"`
	Application string              `json:"application,omitempty"`
	// Events are in the order of their times.
	Events []RecordedEvent `json:"events"`
	// Served counts the answers that name this task, in Requests' buckets. LastServed
	// is when the last one came, nil when none did.
	Served     []int    `json:"served,omitempty"`
	LastServed *float64 `json:"last_served,omitempty"`
}

// Container is a container of a task.
type RecordedContainer struct {
	Name string `json:"name"`
	// Essential and HealthCheck say what the definition says of it.
	Essential   bool `json:"essential,omitempty"`
	HealthCheck bool `json:"health_check,omitempty"`
}

// Event is something that was seen. Kind is that of a scenario's events, and says
// which of the other fields are set.
type RecordedEvent struct {
	At        float64 `json:"at"`
	Kind      string  `json:"kind"`
	Container string  `json:"container,omitempty"`
	Service   string  `json:"service,omitempty"`
	Check     string  `json:"check,omitempty"`
	Method    string  `json:"method,omitempty"`
	Accessor  string  `json:"accessor,omitempty"`
	Status    string  `json:"status,omitempty"`
	Detail    string  `json:"detail,omitempty"`
}

// Kinds of a task's events.
const (
	RecordedStatus    = "status"
	RecordedHealth    = "health"
	RecordedDesired   = "desired"
	RecordedSignal    = "signal"
	RecordedRestart   = "restart"
	RecordedCheck     = "check"
	RecordedInTraffic = "in_traffic"
	RecordedToken     = "token"
	RecordedKill      = "kill"
	RecordedCleared   = "cleared"
)

// String says in one line what happened.
func (e RecordedEvent) String() string {
	parts := []string{e.Kind}
	for _, part := range []string{e.Container, e.Check, e.Service, e.Method, e.Accessor, e.Status, e.Detail} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " ")
}

// Step lasts from a moment to another one: a step, a fault, a phase of the traffic.
type RecordedStep struct {
	Text string  `json:"text"`
	From float64 `json:"from"`
	// To is From when it was over in a moment.
	To float64 `json:"to"`
	// Task is who it is about, if anybody; Error why it failed.
	Task  string `json:"task,omitempty"`
	Error string `json:"error,omitempty"`
}

// About is the text, with the task before it where it does not name it.
func (s RecordedStep) About() string {
	if s.Task == "" || strings.Contains(s.Text, s.Task) {
		return s.Text
	}
	return s.Task + " " + s.Text
}

// Requests are counted in buckets of so many seconds; the first begins with the run.
type RecordedRequests struct {
	BucketSeconds float64 `json:"bucket_seconds"`
	Answered      []int   `json:"answered"`
	Lost          []int   `json:"lost"`
	// SlowestMS is the longest request of each bucket, in milliseconds.
	SlowestMS []int `json:"slowest_ms"`
}

// Totals are how many requests were answered and lost in all.
func (r RecordedRequests) Totals() (answered, lost int) {
	for i := range r.Answered {
		answered, lost = answered+r.Answered[i], lost+r.Lost[i]
	}
	return answered, lost
}

// Peak is the most that ended in a bucket.
func (r RecordedRequests) Peak() int {
	most := 0
	for i := range r.Answered {
		most = max(most, r.Answered[i]+r.Lost[i])
	}
	return most
}

// Task finds one by its name; nil when there is none.
func (r *RecordedRun) Task(name string) *RecordedTask {
	i := slices.IndexFunc(r.Tasks, func(t RecordedTask) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return &r.Tasks[i]
}

// Names are the names of the tasks.
func (r *RecordedRun) Names() []string {
	var names []string
	for _, t := range r.Tasks {
		names = append(names, t.Name)
	}
	return names
}
