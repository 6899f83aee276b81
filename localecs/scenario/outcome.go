package scenario

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/view"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Outcome is how the tasks of a plan have ended.
type PlainOutcome struct {
	Name  string `json:"name"`
	Tasks []End  `json:"ended"`
	// Failures is empty when every essential container has ended well.
	Failures []string      `json:"failures"`
	Elapsed  time.Duration `json:"elapsed_ns"`
	// LogDir has a directory for each task: a log for each container, and
	// metadata.json.
	LogDir string `json:"log_dir"`
	// Picture is the page that shows the run, History what it was drawn from.
	Picture string            `json:"picture,omitempty"`
	History *view.RecordedRun `json:"-"`
}

// End is how a task has ended.
type End struct {
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
	// ExitCode is nil for a container that never ran; Reason may say why.
	ExitCode *int   `json:"exit_code"`
	Reason   string `json:"reason,omitempty"`
	// Health is the last one; empty without a health check or a result.
	Health string `json:"health,omitempty"`
	// Seconds since the run began; nil when it did not happen.
	StartedSeconds *float64 `json:"started_seconds,omitempty"`
	EndedSeconds   *float64 `json:"ended_seconds,omitempty"`
}

// outcome is how all tasks have ended.
func (r *plainRun) outcome(logDir string) *PlainOutcome {
	o := &PlainOutcome{Name: r.plan.Name(), Failures: []string{}, Elapsed: time.Since(r.begun), LogDir: logDir}
	for _, t := range r.started {
		v := t.View()
		end := End{Task: t.name, TaskID: t.ID(), StopCode: v.StopCode, StoppedReason: v.StoppedReason}
		for _, c := range v.Containers {
			if on := awaited(t.def.Container(c.Name)); c.StartedAt.IsZero() && c.Reason == "" && on != "" {
				c.Reason = "it waited for " + on
			}
			end.Containers = append(end.Containers, r.containerEnd(c))
			if why := failure(c, v.StoppingAt, t.stopTimeout(c.Name), r.plan.stopCode(c.Image)); why != "" {
				o.Failures = append(o.Failures, r.plan.called(t.plainTask, c.Name)+" "+why)
			}
		}
		o.Tasks = append(o.Tasks, end)
	}
	return o
}

func (r *plainRun) containerEnd(c scheduler.ContainerView) ContainerEnd {
	end := ContainerEnd{Name: c.Name, Essential: c.Essential, ExitCode: c.ExitCode, Reason: c.Reason}
	if c.Health != nil {
		end.Health = c.Health.Status
	}
	since := func(t time.Time) *float64 {
		if t.IsZero() {
			return nil
		}
		s := Seconds(t.Sub(r.begun))
		return &s
	}
	end.StartedSeconds, end.EndedSeconds = since(c.StartedAt), since(c.FinishedAt)
	return end
}

// killed is the code of a container that SIGKILL has ended.
const killed = 128 + 9

// failure is what was wrong with a container's end; empty when nothing was. Only
// essential ones are judged. One that ECS has stopped may end by its stop signal,
// whose exit code is bySignal.
func failure(c scheduler.ContainerView, stopping time.Time, stopTimeout, bySignal int) string {
	asked := !stopping.IsZero() && !c.FinishedAt.Before(stopping)
	switch {
	case !c.Essential:
		return ""
	case c.StartedAt.IsZero() || c.ExitCode == nil:
		return strings.TrimSuffix("never ran: "+Brief(c.Reason), ": ")
	case *c.ExitCode == 0 || asked && *c.ExitCode == bySignal:
		return ""
	case asked && *c.ExitCode == killed:
		return fmt.Sprintf("had to be killed: it was still there %d s (stopTimeout) after its stop signal; "+
			"a program that is a container's first process hears of SIGTERM only if it handles it, or with initProcessEnabled", stopTimeout)
	case c.Reason != "":
		return fmt.Sprintf("exited with %d: %s", *c.ExitCode, c.Reason)
	}
	return fmt.Sprintf("exited with %d", *c.ExitCode)
}

func (t plainTask) stopTimeout(container string) int {
	if c := t.def.Container(container); c.StopTimeout != nil {
		return *c.StopTimeout
	}
	return taskdef.DefaultStopTimeout
}

// stopCode is the exit code of a container that its stop signal has ended.
func (p *PlainPlan) stopCode(image string) int {
	signal, err := p.images[image].Signal()
	if err != nil {
		return 0
	}
	return 128 + int(signal)
}

// Write writes the outcome: a table for people, or the kind report for machines.
func (o *PlainOutcome) Write(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(struct {
			Time time.Time `json:"time"`
			Kind view.Kind `json:"kind"`
			*PlainOutcome
		}{time.Now(), KindReport, o})
	}
	_, err := io.WriteString(w, o.text())
	return err
}

func (o *PlainOutcome) text() string {
	width := len("container")
	for _, t := range o.Tasks {
		for _, c := range t.Containers {
			width = max(width, len(c.Name))
		}
	}
	var b strings.Builder
	for _, t := range o.Tasks {
		fmt.Fprintf(&b, "\n%s: %s: %s\n  %-*s  essential  started  ended    exit  health\n", t.Task, t.StopCode, Brief(t.StoppedReason), width, "container")
		for _, c := range t.Containers {
			essential := ""
			if c.Essential {
				essential = "yes"
			}
			row := fmt.Sprintf("  %-*s  %-9s  %-7s  %-7s  %-4s  %s", width, c.Name, essential, moment(c.StartedSeconds), moment(c.EndedSeconds), code(c.ExitCode), c.Health)
			b.WriteString(strings.TrimRight(row, " ") + "\n")
		}
	}
	fmt.Fprintf(&b, "\nLogs and metadata: %s\n", o.LogDir)
	if o.Picture != "" {
		fmt.Fprintf(&b, "Timeline: %s\n", o.Picture)
	}
	for _, f := range o.Failures {
		fmt.Fprintf(&b, "%s: FAILED: %s\n", o.Name, f)
	}
	if len(o.Failures) == 0 {
		fmt.Fprintf(&b, "%s: all essential containers ended well in %s\n", o.Name, o.Elapsed.Round(100*time.Millisecond))
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
