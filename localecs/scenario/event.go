package scenario

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
)

// Kind says what an event is about, and with that which of its fields are set.
type Kind string

// The kinds of events. Programs go by these names: one may be added, none may
// change.
const (
	// Scenario begins.
	KindScenario Kind = "scenario"
	// Consul says that the Consul server is ready.
	KindConsul Kind = "consul"
	// StepBegin and StepEnd enclose a step; Error is set when it failed.
	KindStepBegin Kind = "step_begin"
	KindStepEnd   Kind = "step_end"
	// Waiting says, when nothing else has been said for long, that a step goes
	// on and how far it is.
	KindWaiting Kind = "waiting"
	// Task was started and has its ID and address.
	KindTask Kind = "task"
	// Status is the new one of a container, or of a task when Container is
	// empty. Health is a container's, Desired the task's that is asked to stop.
	KindStatus  Kind = "status"
	KindHealth  Kind = "health"
	KindDesired Kind = "desired"
	// Output is a line that a container has written.
	KindOutput Kind = "output"
	// Signal is what ECS has sent to a container, TERM or KILL; Restart says that a
	// restart policy has started it again, Status how often so far.
	KindSignal  Kind = "signal"
	KindRestart Kind = "restart"
	// Service says what is wanted of an ECS service from now on, and how it is.
	KindService Kind = "service"
	// Check is the new status of a health check in Consul, or "gone".
	KindCheck Kind = "check"
	// InTraffic says that Consul sends traffic to a task from now on, or does not:
	// Status is "in" or "out".
	KindInTraffic Kind = "in_traffic"
	// Token is a Consul login token of a task, by Method: Status is "login" or
	// "logout".
	KindToken Kind = "token"
	// Cleared says that Consul holds nothing more of a stopped task.
	KindCleared Kind = "cleared"
	// Remains says what Consul still holds of a stopped task, when that takes long.
	KindRemains Kind = "remains"
	// Left says what of a stopped task stays in Consul, as its step has said.
	KindLeft Kind = "left"
	// MTLS, Get and Post are what such a step found, Kill is what it did.
	KindMTLS Kind = "mtls"
	KindGet  Kind = "get"
	KindPost Kind = "post"
	KindKill Kind = "kill"
	// Fault has begun, FaultOver has ended; Detail says which, and Error why it
	// could not.
	KindFault     Kind = "fault"
	KindFaultOver Kind = "fault_over"
	// TrafficBegin and TrafficEnd enclose the traffic; RequestFailed is one of
	// its requests.
	KindTrafficBegin  Kind = "traffic_begin"
	KindTrafficEnd    Kind = "traffic_end"
	KindRequestFailed Kind = "request_failed"
	// Dropped says how many events are missing here, since the reader was too slow.
	Dropped Kind = "dropped"
	// Timeline says where the picture of a run is that has ended without a report.
	KindTimeline Kind = "timeline"
	// Report is the kind of a scenario's last object, Summary that of the last of
	// several scenarios. Both are no events.
	KindReport  Kind = "report"
	KindSummary Kind = "summary"
	// Chaos is the kind of what is said of a seed; it is no event, either.
	KindChaos Kind = "chaos"
)

// Event is one thing that happened. Its JSON form is documented in
// docs/localecs/reference.md. A field that does not belong to the kind is left out.
type Event struct {
	Time time.Time `json:"time"`
	// Seconds since the scenario began.
	Seconds  float64 `json:"seconds"`
	Scenario string  `json:"scenario"`
	Kind     Kind    `json:"kind"`

	// Step is the number of the step that is carried out, the first is 1, and
	// Steps how many there are.
	Step  int `json:"step,omitempty"`
	Steps int `json:"steps,omitempty"`

	Task      string `json:"task,omitempty"`
	Container string `json:"container,omitempty"`
	TaskID    string `json:"task_id,omitempty"`
	Address   string `json:"address,omitempty"`
	// Service and Check are a health check's in Consul.
	Service string `json:"service,omitempty"`
	Check   string `json:"check,omitempty"`
	// Method is the auth method of a token, Accessor its public ID.
	Method   string `json:"method,omitempty"`
	Accessor string `json:"accessor,omitempty"`
	// Status is the new one, Detail an exit code or a reason.
	Status string `json:"status,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Phase is that of the traffic which has ended.
	Phase string `json:"phase,omitempty"`
	// TookSeconds is how long a step took, so far or in all, WithinSeconds its
	// limit, SoFar how far it is, such as "1 of 2", and Error why it failed, or
	// why a fault did.
	TookSeconds   float64 `json:"took_seconds,omitempty"`
	WithinSeconds float64 `json:"within_seconds,omitempty"`
	SoFar         string  `json:"so_far,omitempty"`
	Error         string  `json:"error,omitempty"`

	// Text is for people; of Output it is the line.
	Text string `json:"text"`
	// Prefix is what people read before a line of Output.
	Prefix string `json:"-"`
}

// Seconds is a duration as events tell it: in seconds, to the microsecond.
func Seconds(d time.Duration) float64 {
	return math.Round(d.Seconds()*1e6) / 1e6
}

// line is the event for people; empty when it is for machines only.
func (e Event) line() []byte {
	if e.forMachines() {
		return nil
	}
	if e.Kind == KindOutput {
		return fmt.Appendf(nil, "%s%s\n", e.Prefix, e.Text)
	}
	who, part := e.columns()
	return fmt.Appendf(nil, "%7.2fs  %-10s %-22s %s\n", e.Seconds, who, part, oneLine(e.Text))
}

// forMachines reports whether people see it elsewhere: steps by what they do, the rest
// in the picture of the run.
func (e Event) forMachines() bool {
	switch e.Kind {
	case KindStepBegin, KindStepEnd, KindInTraffic, KindToken:
		return true
	case KindSignal:
		return e.Status != scheduler.SignalKill
	}
	return false
}

// columns are who an event is about and which part of it.
func (e Event) columns() (who, part string) {
	switch e.Kind {
	case KindWaiting:
		if e.Step > 0 {
			return "step", fmt.Sprintf("%d of %d", e.Step, e.Steps)
		}
	case KindConsul:
		return "consul", "server"
	case KindCheck, KindCleared, KindRemains, KindLeft:
		return e.Task, "consul"
	case KindMTLS:
		return e.Task, "mtls"
	case KindFault, KindFaultOver:
		return "fault", e.Task
	case KindTrafficBegin, KindTrafficEnd, KindRequestFailed:
		return "traffic", ""
	}
	return e.Task, e.Container
}

// object is the event for machines.
func (e Event) object() []byte {
	data, _ := json.Marshal(e) // every field can be encoded
	return append(data, '\n')
}

// maxText is where a line for people is cut, in characters: a probe may say a
// thousand.
const maxText = 160

// oneLine is text without line breaks and without what a terminal would obey,
// cut where it gets long.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > maxText {
		return string(runes[:maxText]) + "…"
	}
	return string(runes)
}
