package scheduler

import (
	"fmt"
	"strconv"
	"time"

	"github.com/meshtask/consul-ecs/taskdef"
)

// Change is something an observer of the cluster can see: a status that
// changed.
type Change struct {
	At   time.Time
	Task string
	// Container is empty for the task itself.
	Container string
	// What is "status", "health" or "desired"; Value is the new one. Or it is
	// "signal", with Stop or Kill; or "restart", with how often so far.
	What, Value string
	// Detail is an exit code or a reason.
	Detail string
}

// Signals that ECS sends to a container: its stop signal, and KILL when its stop
// timeout is over.
const (
	SignalStop = "TERM"
	SignalKill = "KILL"
)

// Changes lists what differs between two views of a task, containers first.
func Changes(task string, old, now View, at time.Time) []Change {
	var events []Change
	for i, c := range now.Containers {
		var before ContainerView
		if i < len(old.Containers) {
			before = old.Containers[i]
		}
		events = append(events, acts(task, before, c)...)
		if c.KnownStatus != before.KnownStatus {
			events = append(events, Change{At: statusTime(c, at), Task: task, Container: c.Name, What: "status",
				Value: c.KnownStatus, Detail: exitDetail(c)})
		}
		if h := c.Health; h != nil && h.Status != "" && (before.Health == nil || before.Health.Status != h.Status) {
			events = append(events, Change{At: h.Since, Task: task, Container: c.Name, What: "health", Value: h.Status,
				Detail: h.Output})
		}
	}
	if now.DesiredStatus != old.DesiredStatus && now.DesiredStatus == StatusStopped {
		events = append(events, Change{At: at, Task: task, What: "desired", Value: now.DesiredStatus,
			Detail: now.StoppedReason})
	}
	if now.KnownStatus != old.KnownStatus {
		e := Change{At: at, Task: task, What: "status", Value: now.KnownStatus}
		if now.KnownStatus == StatusStopped {
			e.Detail = now.StopCode + ": " + now.StoppedReason
		}
		events = append(events, e)
	}
	return events
}

// acts returns what ECS has done to a container without a new status.
func acts(task string, before, c ContainerView) []Change {
	var events []Change
	if n := taskdef.Or(c.RestartCount, 0); n > taskdef.Or(before.RestartCount, 0) {
		events = append(events, Change{At: c.FinishedAt, Task: task, Container: c.Name, What: "restart",
			Value: strconv.Itoa(n)})
	}
	if before.SignalledAt.IsZero() && !c.SignalledAt.IsZero() {
		events = append(events, Change{At: c.SignalledAt, Task: task, Container: c.Name, What: "signal",
			Value: SignalStop})
	}
	if before.KilledAt.IsZero() && !c.KilledAt.IsZero() {
		events = append(events, Change{At: c.KilledAt, Task: task, Container: c.Name, What: "signal", Value: SignalKill,
			Detail: "stop timeout elapsed"})
	}
	return events
}

// statusTime returns the container's own time for its status where it has one.
func statusTime(c ContainerView, at time.Time) time.Time {
	switch {
	case c.KnownStatus == StatusRunning && !c.StartedAt.IsZero():
		return c.StartedAt
	case c.KnownStatus == StatusStopped && !c.FinishedAt.IsZero():
		return c.FinishedAt
	}
	return at
}

// exitDetail returns a stopped container's exit code, or why it never ran.
func exitDetail(c ContainerView) string {
	switch {
	case c.KnownStatus != StatusStopped:
		return ""
	case c.Reason != "":
		return c.Reason
	case c.ExitCode != nil:
		return fmt.Sprintf("exit code %d", *c.ExitCode)
	}
	return ""
}
