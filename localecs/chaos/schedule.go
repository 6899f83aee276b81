package chaos

import (
	"fmt"
	"math"
	"time"
)

// forever is the end of what has none.
const forever = time.Duration(math.MaxInt64)

// Schedule is what happens in a run, in the order of time.
type Schedule struct {
	// For is how long it lasts; every fault has ended by then.
	For    time.Duration
	Events []Event
	// Seed draws which requests a fault of some of them hits.
	Seed uint64
}

// Event is a fault, or an event of normal operation: exactly one of Fault, Stop and
// Unhealthy is set.
type Event struct {
	// At is when it begins, from the beginning of the schedule, and For how long
	// it lasts; 0 for what happens in a moment.
	At, For time.Duration
	Fault   *Fault
	// Stop is a task that is asked to stop, as in a deployment.
	Stop string
	// Unhealthy is a task whose application reports that it is.
	Unhealthy string
	// By, if any, is a task like Instead that is started at the same time, in the
	// place of one that ends.
	By, Instead string
}

// End returns when it is over; a moment ends at its beginning.
func (e Event) End() time.Duration { return e.At + e.For }

// String describes the event in a line.
func (e Event) String() string {
	text := fmt.Sprintf("%6.2fs ", e.At.Seconds())
	switch {
	case e.Fault != nil:
		text += e.Fault.String()
	case e.Stop != "":
		text += "stop " + e.Stop
	default:
		text += e.Unhealthy + " is unhealthy"
	}
	if e.For > 0 {
		text += " for " + e.For.String()
	}
	if e.By != "" {
		text += ", start " + e.By
	}
	return text
}

// Kind returns the kind of the fault or of the other event.
func (e Event) Kind() string {
	switch {
	case e.Stop != "":
		return "stop"
	case e.Unhealthy != "":
		return "unhealthy"
	}
	return e.Fault.kind()
}

// kills reports whether it ends a process or more.
func (e Event) kills() bool { return e.Kind() == "kill" || e.Kind() == "oom" }

// process returns the target of a fault of processes; nil for another event.
func (e Event) process() *Process {
	if e.Fault == nil {
		return nil
	}
	return e.Fault.Process()
}

// tasks returns the targets; none when it has all tasks or none.
func (e Event) tasks() []string {
	switch {
	case e.Stop != "":
		return []string{e.Stop}
	case e.Unhealthy != "":
		return []string{e.Unhealthy}
	}
	return e.Fault.Tasks()
}

// target returns the task that it hits, and what of it: a role, agentContainer, from what it is
// partitioned; of others the endpoint, or the state of the server.
func (e Event) target(w Topology, s Schedule) (task Task, on string) {
	if e.Fault != nil {
		on = e.Fault.Server
	}
	if e.Fault != nil && e.Fault.Endpoint != nil {
		on = e.Fault.Endpoint.Name
	}
	names := e.tasks()
	if len(names) == 0 {
		return Task{}, on
	}
	task, _ = w.of(names[0], s)
	if p := e.process(); p != nil {
		c := task.named(p.Container)
		on = string(c.Role)
		if c.Role == Agent && (e.Fault.OOM != nil || e.Fault.Kill != nil && p.Process != c.Program) {
			on = agentContainer
		}
	}
	if e.Fault != nil && e.Fault.Partition != nil {
		on = anotherTask
		if from := e.Fault.Partition.From; from == Server || from == All {
			on = from
		}
	}
	return task, on
}

// anotherTask is the other side of a partition, as a target.
const anotherTask = "another task"

// agentContainer is the agent with client-entrypoint, as a target.
const agentContainer = "agent's container"

// isAgent reports whether a target is the agent, with client-entrypoint or without.
func isAgent(on string) bool { return on == string(Agent) || on == agentContainer }

// Faults returns the faults alone, with their times.
func (s Schedule) Faults() []Fault {
	var faults []Fault
	for _, e := range s.Events {
		if e.Fault != nil {
			f := *e.Fault
			f.At, f.For = e.At, e.For
			faults = append(faults, f)
		}
	}
	return faults
}
