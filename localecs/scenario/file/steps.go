package file

import (
	"fmt"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/chaos"
)

// Step is one thing to do: exactly one field besides At is set.
type Step struct {
	// At is the earliest time of the step, counted from when the first step that has
	// one is reached; nil is at once.
	At *time.Duration `yaml:"at,omitempty"`
	// Start runs tasks, all at once, and creates services.
	Start []string `yaml:"start,omitempty"`
	Stop  *Stop    `yaml:"stop,omitempty"`
	// Scale and Deploy change services, and do not wait until they have.
	Scale  *Scale      `yaml:"scale,omitempty"`
	Deploy *Deploy     `yaml:"deploy,omitempty"`
	Kill   *chaos.Kill `yaml:"kill,omitempty"`
	Await  *Await      `yaml:"await,omitempty"`
	MTLS   *MTLS       `yaml:"mtls,omitempty"`
	Get    *Get        `yaml:"get,omitempty"`
	Post   *Get        `yaml:"post,omitempty"`
	// Faults begin at their times after the step, while the next ones go on.
	Faults []chaos.Fault `yaml:"faults,omitempty"`
	// Traffic begins a phase, EndTraffic judges it.
	Traffic    *Traffic    `yaml:"traffic,omitempty"`
	EndTraffic *EndTraffic `yaml:"endTraffic,omitempty"`
	// Pause does nothing for so long, 10 minutes at most. It is for demonstrations and
	// measurements; Await waits for conditions.
	Pause time.Duration `yaml:"pause,omitempty"`
}

// Scale sets the desired count of a service.
type Scale struct {
	Service string `yaml:"service"`
	Count   int    `yaml:"count"`
}

// Deploy begins a deployment of a service: of Definition's next revision, or, when
// it is empty, of what it runs already.
type Deploy struct {
	Service    string `yaml:"service"`
	Definition string `yaml:"definition,omitempty"`
}

// Stop asks tasks to stop and deletes services, all at once, and waits until
// nothing of them is left in Consul: a list, or a mapping.
type Stop struct {
	Tasks []string `yaml:"tasks"`
	// Background continues with the next step at once; another stop or await of the
	// tasks may wait for their end.
	Background bool `yaml:"background,omitempty"`
	// AgentFails is the reason why the tasks' agents do not leave, and states that
	// the server takes them for failed. Empty means that they leave.
	AgentFails string `yaml:"agentFails,omitempty"`
}

// UnmarshalYAML takes the list, or the mapping.
func (s *Stop) UnmarshalYAML(unmarshal func(any) error) error {
	if unmarshal(&s.Tasks) == nil {
		return nil
	}
	type mapping Stop // without this method
	*s = Stop{}
	return unmarshal((*mapping)(s))
}

// Await waits for one condition: Passing instances of Service in Consul, the
// ECS service Service to be Steady, Logins, Requests answered since the step began, or, of Task, one of: Status of the
// check of
// Container; Restarts of Container; Tokens; InTraffic; Stopped. Or FaultsOver:
// every fault has started by then, and all that have an end are over.
type Await struct {
	Service string `yaml:"service,omitempty"`
	Passing int    `yaml:"passing,omitempty"`
	// Steady is when the one deployment of the service has all its tasks, those
	// before it have stopped, and nothing of them is left in Consul.
	Steady bool `yaml:"steady,omitempty"`

	Task      string `yaml:"task,omitempty"`
	Container string `yaml:"container,omitempty"`
	Status    string `yaml:"status,omitempty"`
	// Restarts is how often ECS has started the container again, or more.
	Restarts int `yaml:"restarts,omitempty"`
	// Tokens is how many login tokens the task has, of all that
	// Checks.NoTokensOf names.
	Tokens *int `yaml:"tokens,omitempty"`
	// InTraffic reports whether Consul sends traffic to the task.
	InTraffic *bool `yaml:"inTraffic,omitempty"`
	// Stopped waits for a task that ends by itself, and until nothing of it is
	// left in Consul. StopCode is ECS's for it; empty means any.
	Stopped  bool   `yaml:"stopped,omitempty"`
	StopCode string `yaml:"stopCode,omitempty"`
	// AgentFails is as in Stop.
	AgentFails string `yaml:"agentFails,omitempty"`

	// Logins are auth methods by which tasks can log in.
	Logins []string `yaml:"logins,omitempty"`

	Requests   int           `yaml:"requests,omitempty"`
	FaultsOver bool          `yaml:"faultsOver,omitempty"`
	Within     time.Duration `yaml:"within"`
}

// MTLS checks that a task's public listener presents the identity of Service
// and refuses a caller without a certificate.
type MTLS struct {
	Task    string `yaml:"task"`
	Port    int    `yaml:"port"`
	Service string `yaml:"service"`
}

// Get sends a request from inside a task, as the application would, and looks at
// the answer: every text of Has must be in it, none of Lacks.
type Get struct {
	Task  string   `yaml:"task"`
	URL   string   `yaml:"url"`
	Has   []string `yaml:"has,omitempty"`
	Lacks []string `yaml:"lacks,omitempty"`
}

// Traffic sends Rate requests a second to Port of Task until EndTraffic. No
// request is ever retried.
type Traffic struct {
	Task string `yaml:"task"`
	Port int    `yaml:"port"`
	Rate int    `yaml:"rate"`
}

// EndTraffic ends the traffic after the requests under way, with limits for those
// that failed: true, which leaves that to Checks, or a mapping.
type EndTraffic struct {
	// Name is the phase's in the report.
	Name string `yaml:"name,omitempty"`
	// Failed is how many must have failed, MaxFailed how many may, MinFailed how
	// many must at least.
	Failed    *int `yaml:"failed,omitempty"`
	MaxFailed *int `yaml:"maxFailed,omitempty"`
	MinFailed *int `yaml:"minFailed,omitempty"`

	// no is what "false" sets.
	no bool `yaml:"-"`
}

// UnmarshalYAML takes true, or the mapping.
func (e *EndTraffic) UnmarshalYAML(unmarshal func(any) error) error {
	var yes bool
	if unmarshal(&yes) == nil {
		e.no = !yes
		return nil
	}
	type mapping EndTraffic // without this method
	return unmarshal((*mapping)(e))
}

// Limits returns what the phase is judged by.
func (e *EndTraffic) Limits() Limits {
	if e.Failed != nil {
		return Exactly(*e.Failed)
	}
	return Limits{Min: e.MinFailed, Max: e.MaxFailed}
}

// String describes the step in a few words, without its limit.
func (s Step) String() string {
	switch {
	case s.Start != nil:
		return "start " + strings.Join(s.Start, ", ")
	case s.Stop != nil:
		return "stop " + strings.Join(s.Stop.Tasks, ", ")
	case s.Scale != nil:
		return fmt.Sprintf("scale %s to %d", s.Scale.Service, s.Scale.Count)
	case s.Deploy != nil:
		return strings.TrimSuffix("deploy "+s.Deploy.Service+" with "+s.Deploy.Definition, " with ")
	case s.Kill != nil:
		return s.Kill.String()
	case s.Await != nil:
		return "await " + s.Await.String()
	case s.MTLS != nil:
		return fmt.Sprintf("look whether port %d of %s is %s in mTLS", s.MTLS.Port, s.MTLS.Task, s.MTLS.Service)
	case s.Get != nil:
		return fmt.Sprintf("get %s in %s", s.Get.URL, s.Get.Task)
	case s.Post != nil:
		return fmt.Sprintf("post %s in %s", s.Post.URL, s.Post.Task)
	case s.Faults != nil:
		return fmt.Sprintf("begin a schedule of %d faults", len(s.Faults))
	case s.Traffic != nil:
		return fmt.Sprintf("send %d requests a second to port %d of %s", s.Traffic.Rate, s.Traffic.Port, s.Traffic.Task)
	case s.EndTraffic != nil:
		return strings.TrimSuffix("end the traffic: "+s.EndTraffic.Name, ": ")
	case s.Pause > 0:
		return "pause " + s.Pause.String()
	}
	return "do nothing"
}

// String describes what is awaited, without its limit.
func (a Await) String() string {
	switch {
	case a.Steady:
		return "service " + a.Service + " to be steady"
	case a.Service != "":
		return fmt.Sprintf("%d passing instances of %s", a.Passing, a.Service)
	case len(a.Logins) > 0:
		return "logins by " + strings.Join(a.Logins, " and ")
	case a.Stopped:
		return "task " + a.Task + " to stop by itself"
	case a.InTraffic != nil && *a.InTraffic:
		return "task " + a.Task + " to be in traffic"
	case a.InTraffic != nil:
		return "task " + a.Task + " to be out of traffic"
	case a.Tokens != nil:
		return fmt.Sprintf("%d tokens of task %s", *a.Tokens, a.Task)
	case a.Restarts > 0:
		return fmt.Sprintf("%d restarts of container %s in %s", a.Restarts, a.Container, a.Task)
	case a.Task != "":
		return fmt.Sprintf("check of container %s in %s to be %s", a.Container, a.Task, a.Status)
	case a.FaultsOver:
		return "the end of all faults"
	default:
		return fmt.Sprintf("%d answered requests", a.Requests)
	}
}

// Size describes the size of the scenario.
func (s *Scenario) Size() string {
	text := fmt.Sprintf("%d tasks", len(s.Tasks))
	if n := len(s.Services); n > 0 {
		text += fmt.Sprintf(" and %d services", n)
	}
	return text
}

// Limits bound how many requests of a phase may fail. The zero value has no limits.
type Limits struct {
	// Min and Max are included; nil means that there is none.
	Min *int `json:"min_failed,omitempty"`
	Max *int `json:"max_failed,omitempty"`
}

// Exactly returns the Limits that n requests fail.
func Exactly(n int) Limits { return Limits{Min: &n, Max: &n} }

// IsSet reports whether there are any limits.
func (l Limits) IsSet() bool { return l.Min != nil || l.Max != nil }

// String returns how many may fail, for a table.
func (l Limits) String() string {
	switch {
	case l.Min != nil && l.Max != nil && *l.Min == *l.Max:
		return fmt.Sprint(*l.Max)
	case l.Min != nil && l.Max != nil:
		return fmt.Sprintf("%d to %d", *l.Min, *l.Max)
	case l.Max != nil:
		return fmt.Sprintf("at most %d", *l.Max)
	case l.Min != nil:
		return fmt.Sprintf("at least %d", *l.Min)
	}
	return "-"
}
