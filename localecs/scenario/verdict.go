package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// Requests judges all phases together, and the losses of those that have no
// own limits.
func Requests(phases []Phase, c file.Checks) (failures []string) {
	answered, free := 0, Phase{}
	for _, p := range phases {
		answered += p.Answered
		if !p.Limits.IsSet() {
			free.Answered, free.Failed = free.Answered+p.Answered, free.Failed+p.Failed
			free.First = cmp.Or(free.First, p.First)
		}
	}
	if free.Failed > c.FailedRequests {
		failures = append(failures,
			fmt.Sprintf("%d of %d requests failed; %d may. First: %s", free.Failed, free.Answered+free.Failed,
				c.FailedRequests, free.First))
	}
	if answered < c.MinRequests {
		failures = append(failures,
			fmt.Sprintf("only %d requests were answered; at least %d must be", answered, c.MinRequests))
	}
	return failures
}

// Disorder lists containers that never ran, that had to be killed or, with clean,
// that have failed. Those that a step or fault has killed are not listed.
func Disorder(v scheduler.View, killed []string, clean bool) []string {
	var problems []string
	for _, c := range v.Containers {
		spared := slices.Contains(killed, c.Name)
		switch {
		case c.KnownStatus != scheduler.StatusStopped:
			problems = append(problems, "container "+c.Name+" is still "+c.KnownStatus)
		case c.ExitCode == nil && c.Reason == "" && spared: // its task was killed before it started
		case c.ExitCode == nil:
			problems = append(problems, "container "+c.Name+" never ran: "+c.Reason)
		case *c.ExitCode == runtime.CodeKilled && !spared:
			problems = append(problems, "container "+c.Name+" had to be killed")
		case *c.ExitCode != 0 && clean && !spared:
			problems = append(problems, fmt.Sprintf("container %s exited with %d", c.Name, *c.ExitCode))
		}
	}
	return problems
}

// FirstFailed returns the container that was the first to exit with a code other than
// 0; nil if none did. One that never started may have a code, too: ECS gives it 143.
func FirstFailed(v scheduler.View) *scheduler.ContainerView {
	var first *scheduler.ContainerView
	for i, c := range v.Containers {
		if !c.StartedAt.IsZero() && c.ExitCode != nil && *c.ExitCode != 0 &&
			(first == nil || c.FinishedAt.Before(first.FinishedAt)) {
			first = &v.Containers[i]
		}
	}
	return first
}

// Blocker returns the container that blocks a task's start, and how; empty if none
// does. It is the first that has failed, else one that another waits for, else one
// that is not healthy or still stopping.
func Blocker(v scheduler.View) (container, how string) {
	if c := FirstFailed(v); c != nil {
		return c.Name, fmt.Sprintf("%s exited with %d", c.Name, *c.ExitCode)
	}
	for _, c := range v.Containers {
		for _, d := range c.WaitsFor {
			if on, _ := v.Container(d.ContainerName); c.Waiting() != "" && !on.StartedAt.IsZero() {
				return on.Name, c.Name + " " + c.Waiting()
			}
		}
	}
	for _, c := range v.Containers {
		if how := c.Waiting(); how != "" && c.KnownStatus == scheduler.StatusRunning {
			return c.Name, c.Name + " " + how
		}
	}
	return "", ""
}

// brief returns a reason without the engine's wording, also after its stop code.
func brief(reason string) string {
	code, rest, ok := strings.Cut(reason, ": ")
	if code == scheduler.StopTaskFailedToStart && ok {
		return code + ": " + runtime.Brief(rest)
	}
	return runtime.Brief(reason)
}
