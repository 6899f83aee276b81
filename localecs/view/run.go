package view

import (
	"strings"
	"time"
)

// RecordedRun is one run of a scenario. All times in it are seconds since Started, to the
// microsecond. docs/localecs/reference.md has the table of its JSON form.
type RecordedRun struct {
	Scenario  string `json:"scenario"`
	StopOrder string `json:"stop_order,omitempty"`
	// Seed selected the requests to which faults apply, and the schedule of a chaos run; 0
	// without faults.
	Seed    uint64    `json:"seed,omitempty"`
	Started time.Time `json:"started"`
	// Seconds is how long it took until it was checked.
	Seconds float64 `json:"seconds"`
	// Outcome is one of the constants, Failures the failed checks.
	Outcome  string   `json:"outcome"`
	Failures []string `json:"failures"`
	// Tasks are in the order of their start, Steps and Faults too.
	Tasks  []RecordedTask `json:"tasks"`
	Steps  []RecordedStep `json:"steps"`
	Faults []RecordedStep `json:"faults"`
	// Phases are the parts of the traffic, Requests its results.
	Phases   []RecordedStep   `json:"phases"`
	Requests RecordedRequests `json:"requests"`
	// Events belong to no task: the server is ready, a request was lost.
	Events []RecordedEvent `json:"events"`
}

// Outcomes of a run.
const (
	Passed      = "passed"
	Failed      = "FAILED"
	Interrupted = "interrupted"
)

// RecordedTask is one task of a run.
type RecordedTask struct {
	Name    string `json:"name"`
	ID      string `json:"id,omitempty"`
	Address string `json:"address,omitempty"`
	// Containers are in the order of the definition.
	Containers []RecordedContainer `json:"containers"`
	// Events are in the order of their times.
	Events []RecordedEvent `json:"events"`
	// LastServed is the time of the last answer that names this task, nil without any.
	LastServed *float64 `json:"last_served,omitempty"`
}

// RecordedContainer is a container of a task's definition.
type RecordedContainer struct {
	Name        string `json:"name"`
	Essential   bool   `json:"essential,omitempty"`
	HealthCheck bool   `json:"health_check,omitempty"`
}

// RecordedEvent is an event at a time of the run. Its kind decides which of the other
// fields are set.
type RecordedEvent struct {
	At        float64 `json:"at"`
	Kind      Kind    `json:"kind"`
	Container string  `json:"container,omitempty"`
	Service   string  `json:"service,omitempty"`
	Check     string  `json:"check,omitempty"`
	Method    string  `json:"method,omitempty"`
	Accessor  string  `json:"accessor,omitempty"`
	Status    string  `json:"status,omitempty"`
	Detail    string  `json:"detail,omitempty"`
}

// Kind is the subject of an event. It decides which of the event's fields are set.
type Kind string

// The kinds of events that a diagram shows. They are part of the format: one may be
// added, none may change.
const (
	// KindStatus is a new status of a container, or of a task when Container is empty.
	// KindHealth is a container's health, KindDesired the request to stop a task.
	KindStatus  Kind = "status"
	KindHealth  Kind = "health"
	KindDesired Kind = "desired"
	// KindSignal is a signal of ECS to a container: TERM, which stands for its stop
	// signal, or KILL. KindRestart is a start by its restart policy, with Status the
	// number of them so far.
	KindSignal  Kind = "signal"
	KindRestart Kind = "restart"
	// KindCheck is a new status of a health check in Consul, or "gone".
	KindCheck Kind = "check"
	// KindInTraffic reports by Status "in" or "out" whether Consul sends traffic to a
	// task from now on.
	KindInTraffic Kind = "in_traffic"
	// KindToken is a Consul login token of a task, by Method: Status is "login" or
	// "logout".
	KindToken Kind = "token"
	// KindKill is a signal of a step to a container.
	KindKill Kind = "kill"
	// KindCleared reports that Consul holds nothing more of a stopped task.
	KindCleared Kind = "cleared"
)

// RecordedStep lasts for some time: a step, a fault, a phase of the traffic.
type RecordedStep struct {
	Text string  `json:"text"`
	From float64 `json:"from"`
	// To is From if it took no time.
	To float64 `json:"to"`
	// Task is the task concerned, if any; Error why it failed.
	Task  string `json:"task,omitempty"`
	Error string `json:"error,omitempty"`
}

// About returns the text, after the task if it does not name it.
func (s RecordedStep) About() string {
	if s.Task == "" || strings.Contains(s.Text, s.Task) {
		return s.Text
	}
	return s.Task + " " + s.Text
}

// RecordedRequests are counted in buckets of so many seconds; the first one begins with
// the run.
type RecordedRequests struct {
	BucketSeconds float64 `json:"bucket_seconds"`
	Answered      []int   `json:"answered"`
	Lost          []int   `json:"lost"`
	// SlowestMS is the longest request of each bucket, in milliseconds.
	SlowestMS []int `json:"slowest_ms"`
}

// sum returns how many requests were answered, and how many lost.
func (r RecordedRequests) sum() (answered, lost int) {
	for i := range r.Answered {
		answered, lost = answered+r.Answered[i], lost+r.Lost[i]
	}
	return answered, lost
}
