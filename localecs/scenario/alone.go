package scenario

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/taskdef"
)

// prefixes returns what precedes the lines of each task's containers, of one width.
func (p *Plan) prefixes(colour bool) map[string]string {
	called, width := map[string]string{}, 0
	var order []string
	for _, task := range p.alone {
		for _, c := range p.defs.Tasks[task].ContainerDefinitions {
			key := task + "/" + c.Name
			called[key] = p.called(task, c.Name)
			order = append(order, key)
			width = max(width, len(called[key]))
		}
	}
	for i, key := range order {
		prefix := fmt.Sprintf("%-*s | ", width, called[key])
		if colour { // cyan, yellow, green, magenta, blue: red is for errors
			prefix = fmt.Sprintf("\x1b[%dm%s\x1b[0m", [...]int{36, 33, 32, 35, 34}[i%5], prefix)
		}
		called[key] = prefix
	}
	return called
}

// output shows a container's line. A task that a container has started is not among the prefixes.
func (p *progress) output(task, container string, line []byte) {
	prefix, known := p.prefix[task+"/"+container]
	if !known {
		prefix = task + "/" + container + " | "
	}
	p.emit(Event{Kind: KindOutput, Task: task, Container: container, Text: strings.TrimRight(string(line), "\r\n"),
		Prefix: prefix})
}

// runAlone starts the tasks of a plan without a Consul server and waits until all
// have ended. It stops them as StopTask does when stop is closed, or End is called.
func (r *runner) runAlone(ctx, steps context.Context, tasks []string, stop <-chan struct{}) error {
	if err := r.ecs.start(tasks); err != nil {
		return err
	}
	for i := 0; i < len(r.tasks.Started()); i++ {
		t := r.tasks.Started()[i]
		if t.Service != "" {
			continue // its service would replace it
		}
		select {
		case <-t.Done():
		case <-stop:
			return r.ecs.region.Drain(ctx, "")
		case <-steps.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return r.ecs.region.Drain(ctx, stopAll)
		}
	}
	return nil
}

// waiting returns the step that a run without a Consul server shows: what its containers wait for.
func (r *runner) waiting() currentStep {
	var open []string
	for _, t := range r.tasks.Started() {
		for _, c := range t.View().Containers {
			if why := c.Waiting(); why != "" {
				open = append(open, r.plan.called(t.Name, c.Name)+" "+why)
			}
		}
	}
	if len(open) == 0 {
		return currentStep{}
	}
	return currentStep{Text: "await " + strings.Join(open, ", "), Started: r.progress.started}
}

// TaskEnd is how a task has ended.
type TaskEnd struct {
	Task          string         `json:"task"`
	TaskID        string         `json:"task_id"`
	StopCode      string         `json:"stop_code"`
	StoppedReason string         `json:"stopped_reason"`
	Containers    []ContainerEnd `json:"containers"`
}

// ContainerEnd is how a container has ended.
type ContainerEnd struct {
	Name      string `json:"name"`
	Essential bool   `json:"essential"`
	// ExitCode is nil for a container that never ran, perhaps for Reason.
	ExitCode *int   `json:"exit_code"`
	Reason   string `json:"reason,omitempty"`
	// Health is the last one; empty without a health check or a result.
	Health string `json:"health,omitempty"`
	// Seconds since the run began; nil when it did not happen.
	StartedSeconds *float64 `json:"started_seconds,omitempty"`
	EndedSeconds   *float64 `json:"ended_seconds,omitempty"`
}

// ends returns how the tasks of a run without a Consul server have ended, and what
// was wrong with it.
func (r *runner) ends() (ends []TaskEnd, failures []string) {
	for _, t := range r.tasks.Started() {
		v := t.View()
		end := TaskEnd{Task: t.Name, TaskID: t.ID(), StopCode: v.StopCode, StoppedReason: v.StoppedReason}
		for _, c := range v.Containers {
			if c.Reason == "" && len(c.WaitsFor) > 0 {
				c.Reason = "it waited for " + c.Awaited()
			}
			end.Containers = append(end.Containers, r.containerEnd(c))
			if why := failure(c, v.StoppingAt,
				taskdef.Or(t.Definition.Container(c.Name).StopTimeout, taskdef.DefaultStopTimeout),
				r.plan.stopCode(c.Image)); why != "" {
				failures = append(failures, r.plan.called(t.Name, c.Name)+" "+why)
			}
		}
		ends = append(ends, end)
	}
	return ends, failures
}

func (r *runner) containerEnd(c scheduler.ContainerView) ContainerEnd {
	end := ContainerEnd{Name: c.Name, Essential: c.Essential, ExitCode: c.ExitCode, Reason: c.Reason}
	if c.Health != nil {
		end.Health = c.Health.Status
	}
	since := func(t time.Time) *float64 {
		if t.IsZero() {
			return nil
		}
		s := Seconds(t.Sub(r.progress.started))
		return &s
	}
	end.StartedSeconds, end.EndedSeconds = since(c.StartedAt), since(c.FinishedAt)
	return end
}

// failure returns what was wrong with a container's end; empty when nothing was. Only
// essential ones are judged. One that ECS has stopped may end by its stop signal,
// whose exit code is bySignal.
func failure(c scheduler.ContainerView, stopping time.Time, stopTimeout, bySignal int) string {
	stopped := !stopping.IsZero() && !c.FinishedAt.Before(stopping)
	switch {
	case !c.Essential:
		return ""
	case c.StartedAt.IsZero() || c.ExitCode == nil:
		return strings.TrimSuffix("never ran: "+brief(c.Reason), ": ")
	case *c.ExitCode == 0 || stopped && *c.ExitCode == bySignal:
		return ""
	case stopped && *c.ExitCode == runtime.CodeKilled:
		return fmt.Sprintf("had to be killed: it still ran %d s (stopTimeout) after its stop signal; "+
			"a program that is a container's first process gets SIGTERM only if it handles it, or with "+
			"initProcessEnabled", stopTimeout)
	case c.Reason != "":
		return fmt.Sprintf("exited with %d: %s", *c.ExitCode, c.Reason)
	}
	return fmt.Sprintf("exited with %d", *c.ExitCode)
}

// stopCode returns the exit code of a container that its stop signal has ended.
func (p *Plan) stopCode(image string) int {
	signal, err := p.images[image].Signal()
	if err != nil {
		return 0
	}
	return 128 + int(signal)
}

// endTable shows how the containers of tasks have ended.
func endTable(tasks []TaskEnd) string {
	width := len("container")
	for _, t := range tasks {
		for _, c := range t.Containers {
			width = max(width, len(c.Name))
		}
	}
	var b strings.Builder
	for _, t := range tasks {
		fmt.Fprintf(&b, "\n%s: %s: %s\n  %-*s  essential  started  ended    exit  health\n", t.Task, t.StopCode,
			brief(t.StoppedReason), width, "container")
		for _, c := range t.Containers {
			essential := ""
			if c.Essential {
				essential = "yes"
			}
			row := fmt.Sprintf("  %-*s  %-9s  %-7s  %-7s  %-4s  %s", width, c.Name, essential, moment(c.StartedSeconds),
				moment(c.EndedSeconds), code(c.ExitCode), c.Health)
			b.WriteString(strings.TrimRight(row, " ") + "\n")
		}
	}
	return b.String()
}

func moment(seconds *float64) string {
	if seconds == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f s", *seconds)
}

func code(exit *int) string {
	if exit == nil {
		return "-"
	}
	return fmt.Sprint(*exit)
}
