// Package change says what an observer of a cluster sees: which statuses have
// changed.
//
// Owns: the events of a task's views. Never does: watch anything.
// Start reading at: Between.
package change

import (
	"fmt"
	"time"

	"github.com/meshtask/consul-ecs/localecs/scheduler"
)

// Event is something an observer of the cluster can see: a status that
// changed.
type Event struct {
	At   time.Time
	Task string
	// Container is empty for the task itself.
	Container string
	// What is "status", "health" or "desired"; Value is the new one.
	What, Value string
	// Detail is an exit code or a reason.
	Detail string
}

// Between lists what differs between two views of a task, containers first.
func Between(task string, old, now scheduler.View, at time.Time) []Event {
	var events []Event
	for i, c := range now.Containers {
		var before scheduler.ContainerView
		if i < len(old.Containers) {
			before = old.Containers[i]
		}
		if c.KnownStatus != before.KnownStatus {
			events = append(events, Event{At: statusTime(c, at), Task: task, Container: c.Name, What: "status", Value: c.KnownStatus, Detail: exitDetail(c)})
		}
		if h := c.Health; h != nil && h.Status != "" && (before.Health == nil || before.Health.Status != h.Status) {
			events = append(events, Event{At: h.Since, Task: task, Container: c.Name, What: "health", Value: h.Status, Detail: h.Output})
		}
	}
	if now.DesiredStatus != old.DesiredStatus && now.DesiredStatus == scheduler.StatusStopped {
		events = append(events, Event{At: at, Task: task, What: "desired", Value: now.DesiredStatus, Detail: now.StoppedReason})
	}
	if now.KnownStatus != old.KnownStatus {
		e := Event{At: at, Task: task, What: "status", Value: now.KnownStatus}
		if now.KnownStatus == scheduler.StatusStopped {
			e.Detail = now.StopCode + ": " + now.StoppedReason
		}
		events = append(events, e)
	}
	return events
}

// statusTime is the container's own time for its status where it has one.
func statusTime(c scheduler.ContainerView, at time.Time) time.Time {
	switch {
	case c.KnownStatus == scheduler.StatusRunning && !c.StartedAt.IsZero():
		return c.StartedAt
	case c.KnownStatus == scheduler.StatusStopped && !c.FinishedAt.IsZero():
		return c.FinishedAt
	}
	return at
}

// exitDetail is a stopped container's exit code, or why it never ran.
func exitDetail(c scheduler.ContainerView) string {
	switch {
	case c.KnownStatus != scheduler.StatusStopped:
		return ""
	case c.Reason != "":
		return c.Reason
	case c.ExitCode != nil:
		return fmt.Sprintf("exit code %d", *c.ExitCode)
	}
	return ""
}
