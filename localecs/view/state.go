package view

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/chaos"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
)

// State is the state of a run at one moment.
type State struct {
	Scenario string
	// Begun is the start of the run.
	Begun time.Time
	Step  Step
	// Tasks are in the order of their start.
	Tasks []Task
	// Faults are the current ones.
	Faults []chaos.Fault
	// Traffic is nil before the first request.
	Traffic *Traffic
}

// Step is the current step.
type Step struct {
	// Number is the step's, from 1, and Count the number of steps. Number is 0 before
	// and after the steps.
	Number, Count int
	// Text describes the step, SoFar its progress, such as "1 of 2"; it may be empty.
	Text, SoFar string
	Begun       time.Time
	// Within is its time limit; 0 for none.
	Within time.Duration
}

// Task is one task that was started.
type Task struct {
	Name, Address string
	View          scheduler.View
	Checks        Checks
}

// Checks counts the health checks of a task in Consul by their status.
type Checks struct{ Passing, Warning, Critical int }

// Traffic is the result of the requests so far.
type Traffic struct {
	URL string
	// Rate is in requests a second; 0 when the traffic has ended.
	Rate             int
	Answered, Failed int
	Slowest          time.Duration
}

// Took returns the time that the step has taken: "3.1 s of 90 s".
func (s Step) Took(now time.Time) string {
	took := seconds(now.Sub(s.Begun))
	if s.Within > 0 {
		took += " of " + limit(s.Within)
	}
	return took
}

// Still describes in one line the progress of a step that has not ended.
func (s Step) Still(now time.Time) string {
	what, waits := strings.CutPrefix(s.Text, "await ")
	still := "still busy: "
	if waits {
		still = "still waiting: "
	}
	return still + what + s.soFar() + ", " + s.Took(now)
}

func (s Step) soFar() string {
	if s.SoFar == "" {
		return ""
	}
	return " (" + s.SoFar + ")"
}

// seconds formats a duration, below 10 s with tenths.
func seconds(d time.Duration) string {
	d = max(d, 0)
	if d < 10*time.Second {
		return fmt.Sprintf("%.1f s", d.Truncate(100*time.Millisecond).Seconds())
	}
	return fmt.Sprintf("%d s", int(d.Seconds()))
}

func limit(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
}

// milliseconds formats a duration, below 1 s in milliseconds.
func milliseconds(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	}
	return seconds(d)
}

// The states of a container, in the order of its life.
var (
	waiting  = span{"waiting", quiet}
	starting = span{"starting", busy}
	running  = span{"running", plain}
	healthy  = span{"healthy", good}
	stopping = span{"stopping", busy}
	finished = span{"exited(0)", quiet}
	unborn   = span{"never ran", bad}
)

// word is a container's state in one word.
func word(c scheduler.ContainerView) span {
	switch {
	case c.KnownStatus == scheduler.StatusStopped && (c.StartedAt.IsZero() || c.ExitCode == nil):
		return unborn
	case c.KnownStatus == scheduler.StatusStopped && *c.ExitCode == 0:
		return finished
	case c.KnownStatus == scheduler.StatusStopped:
		return span{fmt.Sprintf("exited(%d)", *c.ExitCode), bad}
	case c.KnownStatus != scheduler.StatusRunning:
		return waiting
	case c.DesiredStatus == scheduler.StatusStopped:
		return stopping
	case c.Health == nil:
		return running
	case c.Health.Status == scheduler.HealthHealthy:
		return healthy
	case c.Health.Status == scheduler.HealthUnhealthy:
		return span{"unhealthy", bad}
	}
	return starting
}

// status is the task's status of the ECS API, or STOPPING when its desired status is
// STOPPED.
func (t Task) status() span {
	now := t.View.LastStatus()
	switch {
	case now == scheduler.StatusStopped:
		return span{now, quiet}
	case t.View.DesiredStatus == scheduler.StatusStopped:
		return span{"STOPPING", busy}
	case now == scheduler.StatusRunning:
		return span{now, plain}
	}
	return span{now, busy}
}

// age is how long the task has run, or ran.
func (t Task) age(now time.Time) string {
	if !t.View.StoppedAt.IsZero() {
		now = t.View.StoppedAt
	}
	if t.View.PullStartedAt.IsZero() {
		return seconds(0)
	}
	return seconds(now.Sub(t.View.PullStartedAt))
}

func (t Task) stopped() bool { return t.View.KnownStatus == scheduler.StatusStopped }

// row lists the counts that are not zero.
func (c Checks) row() row {
	var r row
	for _, status := range []struct {
		n int
		span
	}{{c.Passing, span{"passing", good}}, {c.Warning, span{"warning", busy}}, {c.Critical, span{"critical", bad}}} {
		if status.n > 0 {
			r = r.and(span{fmt.Sprintf("%d ", status.n), plain}, status.span)
		}
	}
	if len(r) == 0 {
		return nil
	}
	return append(row{{"Consul ", plain}}, r...)
}
