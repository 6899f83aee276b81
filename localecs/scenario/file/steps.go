package file

import (
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
	Scale  *Scale  `yaml:"scale,omitempty"`
	Deploy *Deploy `yaml:"deploy,omitempty"`
	Kill   *Kill   `yaml:"kill,omitempty"`
	Await  *Await  `yaml:"await,omitempty"`
	MTLS   *MTLS   `yaml:"mtls,omitempty"`
	Get    *Get    `yaml:"get,omitempty"`
	Post   *Post   `yaml:"post,omitempty"`
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
	// Background goes on with the next step at once; another stop or await of the
	// tasks may wait for their end.
	Background bool `yaml:"background,omitempty"`
	// LeavesTokens has the auth methods whose tokens stay, each with the reason,
	// and states that they do: it is a mistake when there are none. Everything
	// else has to go.
	LeavesTokens map[string]string `yaml:"leavesTokens,omitempty"`
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

// Leaves is what stays in Consul of a task that has ended, as its step says, each
// with the reason.
type Leaves struct {
	// Tokens are by auth method.
	Tokens map[string]string
	// Agent is that of an agent which is failed.
	Agent string
}

// Leaves is what stays of the tasks.
func (s Stop) Leaves() Leaves { return Leaves{s.LeavesTokens, s.AgentFails} }

// Leaves is what stays of a task that has stopped.
func (a Await) Leaves() Leaves { return Leaves{a.LeavesTokens, a.AgentFails} }

// Kill sends Signal into Container of Task, as kill(1) would: to the processes
// of the program Process, or to the container's first one. Without a container it
// is kill -9 of everything in the task.
type Kill struct {
	Task      string `yaml:"task"`
	Container string `yaml:"container,omitempty"`
	// Process is the last element of a program's path. Below an init or a
	// supervisor the program is not the container's first process.
	Process string `yaml:"process,omitempty"`
	// Signal is a name such as KILL, the default, or a number.
	Signal string `yaml:"signal,omitempty"`
}

// Await waits for one condition: Passing instances of Service in Consul, the
// ECS service Service to be Steady, Logins, Requests answered since the step began, or, of Task, one of: Status of the check of
// Container; Restarts of Container; Tokens; InTraffic; Stopped. Or FaultsOver:
// every fault has begun by then, and all that have an end of their own are over.
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
	// InTraffic is whether Consul sends traffic to the task.
	InTraffic *bool `yaml:"inTraffic,omitempty"`
	// Stopped waits for a task that ends by itself, and until nothing of it is
	// left in Consul. StopCode is ECS's for it; empty means any.
	Stopped  bool   `yaml:"stopped,omitempty"`
	StopCode string `yaml:"stopCode,omitempty"`
	// LeavesTokens and AgentFails are as in Stop.
	LeavesTokens map[string]string `yaml:"leavesTokens,omitempty"`
	AgentFails   string            `yaml:"agentFails,omitempty"`

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

// Get asks from inside a task, as the application would, and looks at the
// answer: every text of Has must be in it, none of Lacks.
type Get struct {
	Task  string   `yaml:"task"`
	URL   string   `yaml:"url"`
	Has   []string `yaml:"has,omitempty"`
	Lacks []string `yaml:"lacks,omitempty"`
}

// Post sends a request from inside a task, as the application would.
type Post struct {
	Task string `yaml:"task"`
	URL  string `yaml:"url"`
}

// Traffic sends Rate requests a second to Port of Task until EndTraffic. No
// request is ever retried.
type Traffic struct {
	Task string `yaml:"task"`
	Port int    `yaml:"port"`
	Rate int    `yaml:"rate"`
}

// EndTraffic ends the traffic after the requests under way, and says how many
// of them may have failed: true, which leaves that to Checks, or a mapping.
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

// Limits are what the phase is judged by.
func (e *EndTraffic) Limits() Limits {
	if e.Failed != nil {
		return Exactly(*e.Failed)
	}
	return Limits{Min: e.MinFailed, Max: e.MaxFailed}
}
