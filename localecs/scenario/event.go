package scenario

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/view"
)

// The kinds of events that a timeline does not draw; view has the others. Programs rely
// on these names: one may be added, none may change.
const (
	// KindScenario begins a run.
	KindScenario view.Kind = "scenario"
	// KindConsul reports that the Consul server is ready.
	KindConsul view.Kind = "consul"
	// KindStepBegin and KindStepEnd enclose a step; Error is set when it failed.
	KindStepBegin view.Kind = "step_begin"
	KindStepEnd   view.Kind = "step_end"
	// KindWaiting reports the progress of a step after a long silence.
	KindWaiting view.Kind = "waiting"
	// KindTask is a task that was started, with its ID and address.
	KindTask view.Kind = "task"
	// KindOutput is a line that a container has written.
	KindOutput view.Kind = "output"
	// KindService is the desired and the current state of an ECS service.
	KindService view.Kind = "service"
	// KindPublished is a port of this machine, Address, that leads to a task or service.
	KindPublished view.Kind = "published"
	// KindOutside is a name, at Address, that leads out of the run.
	KindOutside view.Kind = "outside"
	// KindRemains lists what Consul still holds of a stopped task after a while.
	KindRemains view.Kind = "remains"
	// KindLeft names what of a stopped task stays in Consul, as its step expects.
	KindLeft view.Kind = "left"
	// KindMTLS, KindGet and KindPost are the results of such a step.
	KindMTLS view.Kind = "mtls"
	KindGet  view.Kind = "get"
	KindPost view.Kind = "post"
	// KindFault and KindFaultOver enclose a fault; Detail names it, and Error is set
	// when it could not be made or ended.
	KindFault     view.Kind = "fault"
	KindFaultOver view.Kind = "fault_over"
	// KindTrafficBegin and KindTrafficEnd enclose the traffic; KindRequestFailed is one
	// of its requests.
	KindTrafficBegin  view.Kind = "traffic_begin"
	KindTrafficEnd    view.Kind = "traffic_end"
	KindRequestFailed view.Kind = "request_failed"
	// KindDropped counts the events that are missing because the reader was too slow.
	KindDropped view.Kind = "dropped"
	// KindTimeline has the path of the page of a run that ended without a report.
	KindTimeline view.Kind = "timeline"
	// KindReport is the kind of a scenario's last object, KindSummary that of the last
	// of several scenarios, and KindChaos that of a seed's result. They are no events.
	KindReport  view.Kind = "report"
	KindSummary view.Kind = "summary"
	KindChaos   view.Kind = "chaos"
)

// Event is one thing that happened. Its JSON form is documented in
// docs/localecs/reference.md. Fields that do not belong to the kind are omitted.
type Event struct {
	Time time.Time `json:"time"`
	// Seconds since the scenario began.
	Seconds  float64   `json:"seconds"`
	Scenario string    `json:"scenario"`
	Kind     view.Kind `json:"kind"`

	// Step is the number of the current step, from 1, and Steps how many there are.
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
	// Status is the new status, Detail an exit code or a reason.
	Status string `json:"status,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Phase is the name of the phase of the traffic that has ended.
	Phase string `json:"phase,omitempty"`
	// TookSeconds is how long a step took, so far or in all, WithinSeconds its
	// limit, SoFar how far it is, such as "1 of 2", and Error why it failed, or
	// why a fault did.
	TookSeconds   float64 `json:"took_seconds,omitempty"`
	WithinSeconds float64 `json:"within_seconds,omitempty"`
	SoFar         string  `json:"so_far,omitempty"`
	Error         string  `json:"error,omitempty"`

	// Text describes the event in words; of KindOutput it is the line.
	Text string `json:"text"`
	// Prefix is shown before a line of KindOutput.
	Prefix string `json:"-"`
}

// Seconds returns a duration in seconds, to the microsecond, as in events.
func Seconds(d time.Duration) float64 {
	return math.Round(d.Seconds()*1e6) / 1e6
}

// line returns the event as a line of text; empty for an event of JSON output only.
func (e Event) line() []byte {
	if e.onlyJSON() {
		return nil
	}
	if e.Kind == KindOutput {
		return fmt.Appendf(nil, "%s%s\n", e.Prefix, e.Text)
	}
	subject, part := e.columns()
	return fmt.Appendf(nil, "%7.2fs  %-10s %-22s %s\n", e.Seconds, subject, part, oneLine(e.Text))
}

// onlyJSON reports whether lines omit the event: steps show by what they do, the rest
// is in the timeline.
func (e Event) onlyJSON() bool {
	switch e.Kind {
	case KindStepBegin, KindStepEnd, view.KindInTraffic, view.KindToken:
		return true
	case view.KindSignal:
		return e.Status != scheduler.SignalKill
	}
	return false
}

// columns returns the subject of an event and the part of it.
func (e Event) columns() (subject, part string) {
	switch e.Kind {
	case KindWaiting:
		if e.Step > 0 {
			return "step", fmt.Sprintf("%d of %d", e.Step, e.Steps)
		}
	case KindConsul:
		return "consul", "server"
	case view.KindCheck, view.KindCleared, KindRemains, KindLeft:
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

// object returns the event as a line of JSON.
func (e Event) object() []byte {
	data, _ := json.Marshal(e) // every field can be encoded
	return append(data, '\n')
}

// maxText is where a line is cut, in characters: the output of a probe may have a
// thousand.
const maxText = 160

// oneLine returns text without line breaks and control characters, cut to maxText.
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
