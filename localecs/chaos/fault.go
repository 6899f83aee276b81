package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Fault is one thing that goes wrong: exactly one of the kinds is set.
type Fault struct {
	// At is when it begins, counted from the beginning of the schedule.
	At time.Duration `yaml:"at,omitempty"`
	// For is how long it lasts; without, it lasts to the end of the run. What happens
	// in a moment (kill, oom, spot) has none.
	For time.Duration `yaml:"for,omitempty" zero:"want a duration such as 10s, or omit it to last until the end of the run"`

	Endpoint *Endpoint `yaml:"endpoint,omitempty"`
	Kill     *Kill     `yaml:"kill,omitempty"`
	// OOM ends a container as the kernel does when its memory is used up.
	OOM *Process `yaml:"oom,omitempty"`
	// Freeze stops processes without ending them (SIGSTOP), Slow lets them run a
	// fifth of the time.
	Freeze *Process `yaml:"freeze,omitempty"`
	Slow   *Process `yaml:"slow,omitempty"`
	// Spot is a Fargate Spot interruption.
	Spot *SpotInterruption `yaml:"spot,omitempty"`
	// Server is what the Consul server is: Down, Frozen or Slowed.
	Server string `yaml:"server,omitempty"`
	// Partition keeps packets from coming through, without an answer.
	Partition *Partition `yaml:"partition,omitempty"`
	// Link makes a task's network slow.
	Link *Link `yaml:"link,omitempty"`
}

// What the Consul server may be.
const (
	// Down is killed; at the fault's end it is started again with its data.
	Down = "down"
	// Frozen has the connections of a server, and no answers.
	Frozen = "frozen"
	// Slowed runs a fifth of the time.
	Slowed = "slow"
)

// The endpoints.
const (
	Metadata    = "metadata"    // ECS_CONTAINER_METADATA_URI_V4
	Credentials = "credentials" // AWS_CONTAINER_CREDENTIALS_RELATIVE_URI
	Protection  = "protection"  // ECS_AGENT_URI
	STS         = "sts"
	IAM         = "iam"
	ECS         = "ecs"
)

// endpoints returns their names, those of a task first.
func endpoints() []string { return []string{Metadata, Credentials, Protection, STS, IAM, ECS} }

// Endpoint makes one of AWS's endpoints misbehave: one of Slow to NoTags is set.
type Endpoint struct {
	// Name is that of the endpoint.
	Name string `yaml:"name"`
	// Task is whose metadata, credentials or protection; empty is that of all tasks.
	Task string `yaml:"task,omitempty"`
	// Share is the fraction of requests that are affected, drawn by the schedule's seed: more
	// than 0, at most 1; 0 stands for all.
	Share float64 `yaml:"share,omitempty"`

	// Slow delays answers.
	Slow time.Duration `yaml:"slow,omitempty"`
	// Hang gives none, until the caller goes or the fault ends.
	Hang bool `yaml:"hang,omitempty"`
	// Status answers with an HTTP error, in the endpoint's form: 429 as AWS
	// throttles there, 500 and 503 as it fails there.
	Status int `yaml:"status,omitempty"`
	// Cut closes the connection in the middle of the answer.
	Cut bool `yaml:"cut,omitempty"`
	// Wrong answers 200 with something else: Empty, Truncated, Page or Error.
	Wrong string `yaml:"wrong,omitempty"`
	// Skew is by how much the endpoint's clock is ahead of the tasks' (negative:
	// behind). STS, IAM and ECS refuse signatures that are more than
	// fifteen minutes off.
	Skew time.Duration `yaml:"skew,omitempty" negative:"behind"`
	// NoTags leaves out the tags: iam has those of roles, ecs those of tasks.
	NoTags bool `yaml:"noTags,omitempty"`
}

// What a wrong answer is.
const (
	Empty     = "empty"     // {} or an empty element
	Truncated = "truncated" // the first half
	Page      = "page"      // a proxy's HTML page
	Error     = "error"     // an error document with status 200
)

// Kill sends Signal into Container of Task, as kill(1) would: to the processes
// of the program Process, or to the container's first one. Without a container
// everything in the task is killed, as by the failure of its machine.
type Kill struct {
	Task      string `yaml:"task"`
	Container string `yaml:"container,omitempty"`
	// Process is the last element of a program's path. Below an init or a
	// supervisor the program is not the container's first process.
	Process string `yaml:"process,omitempty"`
	// Signal is a name such as KILL, the default, or a number.
	Signal string `yaml:"signal,omitempty"`
}

// Process is a container of a task, or the processes of one program in it.
type Process struct {
	Task      string `yaml:"task"`
	Container string `yaml:"container"`
	// Process is the last element of a program's path; empty is all processes of
	// the container.
	Process string `yaml:"process,omitempty"`
}

// SpotInterruption takes the capacity of a task away: it is asked to stop, as ECS does two
// minutes before the capacity is gone.
type SpotInterruption struct {
	Task string `yaml:"task"`
}

// Partition drops what Task and From send each other in the VPC. Task metadata
// and credentials do not come from there.
type Partition struct {
	Task string `yaml:"task"`
	// From is another task, Server, or All.
	From string `yaml:"from"`
}

// What a task may be partitioned from, besides another task.
const (
	Server = "server"
	All    = "all"
)

// Link limits what a task sends and gets in the VPC.
type Link struct {
	Task string `yaml:"task"`
	// KBits are kilobits (1000) a second in each direction.
	KBits int `yaml:"kbits"`
}

// Tasks returns the targets of the fault; none when it has all tasks.
func (f Fault) Tasks() []string {
	var names []string
	switch p := f.Process(); {
	case p != nil:
		names = []string{p.Task}
	case f.Endpoint != nil:
		names = []string{f.Endpoint.Task}
	case f.Spot != nil:
		names = []string{f.Spot.Task}
	case f.Partition != nil && (f.Partition.From == Server || f.Partition.From == All):
		names = []string{f.Partition.Task}
	case f.Partition != nil:
		names = []string{f.Partition.Task, f.Partition.From}
	case f.Link != nil:
		names = []string{f.Link.Task}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// kind returns the name of the kind that is set, as in a scenario file; empty for none.
func (f Fault) kind() string {
	for _, k := range f.kinds() {
		if k.set {
			return k.name
		}
	}
	return ""
}

type kind struct {
	name string
	set  bool
}

// kinds lists all kinds, and which are set.
func (f Fault) kinds() [9]kind {
	return [...]kind{
		{"endpoint", f.Endpoint != nil}, {"kill", f.Kill != nil}, {"oom", f.OOM != nil}, {"freeze", f.Freeze != nil},
		{"slow", f.Slow != nil},
		{"spot", f.Spot != nil}, {"server", f.Server != ""}, {"partition", f.Partition != nil}, {"link", f.Link != nil},
	}
}

// Process returns the target of a fault of processes, and nil for another fault.
func (f Fault) Process() *Process {
	if k := f.Kill; k != nil {
		return &Process{Task: k.Task, Container: k.Container, Process: k.Process}
	}
	return cmp.Or(f.OOM, f.Freeze, f.Slow)
}

// momentary reports whether the fault has no duration.
func (f Fault) momentary() bool { return f.Kill != nil || f.OOM != nil || f.Spot != nil }

// String describes the fault in a line, without its times.
func (f Fault) String() string {
	switch {
	case f.Endpoint != nil:
		return f.Endpoint.String()
	case f.Kill != nil:
		return "kill -" + cmp.Or(f.Kill.Signal, "9") + " " + f.Process().String()
	case f.OOM != nil:
		return "out of memory: " + f.OOM.String()
	case f.Freeze != nil:
		return "freeze " + f.Freeze.String()
	case f.Slow != nil:
		return "slow " + f.Slow.String()
	case f.Spot != nil:
		return "spot interruption of " + f.Spot.Task
	case f.Server != "":
		return "Consul server " + f.Server
	case f.Partition != nil:
		return fmt.Sprintf("partition %s from %s", f.Partition.Task, f.Partition.From)
	case f.Link != nil:
		return fmt.Sprintf("link of %s at %d kbit/s", f.Link.Task, f.Link.KBits)
	}
	return "nothing"
}

// String describes the kill in a few words.
func (k Kill) String() string {
	if k.Container == "" {
		return "kill everything in " + k.Task
	}
	return "kill " + k.Container + " in " + k.Task
}

func (p Process) String() string {
	return strings.Trim(p.Task+"/"+p.Container+" "+p.Process, "/ ")
}

// String describes the fault in a line.
func (e Endpoint) String() string {
	text := e.Name
	if e.Task != "" {
		text += " of " + e.Task
	}
	switch {
	case e.Slow != 0:
		text += " answers after " + e.Slow.String()
	case e.Hang:
		text += " hangs"
	case e.Status != 0:
		text += fmt.Sprintf(" answers %d", e.Status)
	case e.Cut:
		text += " cuts connections"
	case e.Wrong != "":
		text += " gives a wrong answer: " + e.Wrong
	case e.Skew != 0:
		text += " has its clock " + e.Skew.String() + " off"
	case e.NoTags:
		text += " has no tags"
	}
	if e.Share != 0 {
		text += fmt.Sprintf(" (%.0f %% of requests)", 100*e.Share)
	}
	return text
}
