package lane

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/picture/history"
)

// State is what lasts.
type State string

// The states of what a lane is about.
const (
	Waiting   State = "waiting"   // its image is there, and it may not start yet
	Up        State = "up"        // runs, and has no health check
	Unknown   State = "unknown"   // runs, its health is not known yet; a task that starts
	Healthy   State = "healthy"   // also a check that passes, a task in traffic
	Warning   State = "warning"   // a check that warns
	Unhealthy State = "unhealthy" // also a check that is critical
	Out       State = "out"       // a task that runs and gets no traffic
	Held      State = "held"      // a token
)

// Segment is a time in a state.
type Segment struct {
	From, To float64
	State    State
	// Stopping says that it has been asked to stop.
	Stopping bool
	Title    string
}

// Glyph is what a mark looks like.
type Glyph string

// The marks.
const (
	Term    Glyph = "term"    // the stop signal of a container
	Kill    Glyph = "kill"    // SIGKILL, by ECS, a step or a fault
	Again   Glyph = "again"   // a restart policy has started it
	Exit    Glyph = "exit"    // ended with 0
	BadExit Glyph = "badexit" // ended otherwise, or never ran
	Sick    Glyph = "sick"    // an application turned UNHEALTHY
)

// Mark is a moment.
type Mark struct {
	At    float64
	Glyph Glyph
	Title string
}

// Sort is what a lane is about.
type Sort string

// The sorts of lanes, in the order in which they are shown.
const (
	Container Sort = "container"
	Check     Sort = "check"
	Traffic   Sort = "traffic"
	Token     Sort = "token"
)

// Lane is one line of a picture.
type Lane struct {
	Sort     Sort
	Name     string
	Segments []Segment
	Marks    []Mark
	// Ended is when a container stopped and Exit what it says then, of a check its
	// service and of a token its accessor; Began is when it ran first. They are below
	// zero when that has not come.
	Began, Ended float64
	Exit         string
}

// Points are when something happens in it.
func (l Lane) Points() []float64 {
	var all []float64
	for _, s := range l.Segments {
		all = append(all, s.From, s.To)
	}
	for _, m := range l.Marks {
		all = append(all, m.At)
	}
	return all
}

// In says whether it has anything in a phase. A container that never ran is news as
// well.
func (l Lane) In(p Phase) bool {
	if l.Sort == Container && l.Began < 0 && l.Ended < 0 || l.Sort == Traffic {
		return true
	}
	for _, s := range l.Segments {
		if s.From <= p.To && s.To >= p.From {
			return true
		}
	}
	return slices.ContainsFunc(l.Marks, func(m Mark) bool { return m.At >= p.From && m.At <= p.To })
}

// Never is a moment that has not come.
const Never = -1.0

// Of are the lanes of a task. What has no end lasts until the end of the run.
func Of(t history.Task, end float64) []Lane {
	var lanes []Lane
	for _, c := range containers(t) {
		lanes = append(lanes, container(t, c, end))
	}
	lanes = append(lanes, checks(t, end)...)
	if l, any := traffic(t, end); any {
		lanes = append(lanes, l)
	}
	return append(lanes, tokens(t, end)...)
}

// containers are those of the definition, and any other that has events.
func containers(t history.Task) []history.Container {
	all := slices.Clone(t.Containers)
	for _, e := range t.Events {
		if e.Container != "" && !slices.ContainsFunc(all, func(c history.Container) bool { return c.Name == e.Container }) {
			all = append(all, history.Container{Name: e.Container})
		}
	}
	return all
}

// open is a lane with a segment that has no end yet.
type open struct {
	Lane
	now *Segment
}

// enter ends the present segment and begins one.
func (o *open) enter(at float64, s State, stopping bool, title string) {
	o.leave(at)
	o.now = &Segment{From: at, State: s, Stopping: stopping, Title: title}
}

// leave ends the present segment.
func (o *open) leave(at float64) {
	if o.now == nil {
		return
	}
	o.now.To = max(at, o.now.From)
	o.now.Title = fmt.Sprintf("%s: %s, %s to %s s (%s)", o.Name, o.now.Title, seconds(o.now.From), seconds(o.now.To), took(o.now.From, o.now.To))
	o.Segments = append(o.Segments, *o.now)
	o.now = nil
}

func (o *open) mark(at float64, g Glyph, title string) {
	o.Marks = append(o.Marks, Mark{At: at, Glyph: g, Title: fmt.Sprintf("%s: %s at %s s", o.Name, title, seconds(at))})
}

func container(t history.Task, c history.Container, end float64) Lane {
	o := open{Lane: Lane{Sort: Container, Name: c.Name, Began: Never, Ended: Never}}
	state, word := Up, "runs"
	if c.HealthCheck || slices.ContainsFunc(t.Events, func(e history.Event) bool { return e.Kind == history.Health && e.Container == c.Name }) {
		state, word = Unknown, "runs, health UNKNOWN"
	}
	stopping := false
	for _, e := range t.Events {
		if e.Container != c.Name {
			continue
		}
		switch {
		case e.Kind == history.Status && e.Status == "PULLED":
			o.enter(e.At, Waiting, false, "waits to start")
		case e.Kind == history.Status && e.Status == "RUNNING":
			o.Began = e.At
			o.enter(e.At, state, stopping, word)
		case e.Kind == history.Status && e.Status == "STOPPED":
			o.leave(e.At)
			o.Ended, o.Exit = e.At, e.Detail
			o.mark(e.At, exitGlyph(e.Detail), "STOPPED "+e.Detail)
		case e.Kind == history.Health && o.Began >= 0:
			o.enter(e.At, health(e.Status), stopping, strings.TrimSpace(e.Status+" "+e.Detail))
		case e.Kind == history.Restart:
			o.enter(e.At, state, stopping, word)
			o.mark(e.At, Again, "started again, "+e.Status+" so far")
		case e.Kind == history.Signal && e.Status != "KILL":
			stopping = true
			o.mark(e.At, Term, e.Status)
			if o.now != nil {
				was := *o.now
				o.enter(e.At, was.State, true, was.Title+", asked to stop")
			}
		case e.Kind == history.Signal, e.Kind == history.Kill:
			o.mark(e.At, killGlyph(e), strings.TrimSpace(e.Kind+" "+e.Status+" "+e.Detail))
		}
	}
	o.leave(end)
	return o.Lane
}

// killGlyph is that of a signal which ECS or a step has sent.
func killGlyph(e history.Event) Glyph {
	if e.Kind == history.Signal || strings.Contains(e.Detail, "KILL") || e.Detail == "" {
		return Kill
	}
	return Term
}

func exitGlyph(detail string) Glyph {
	if detail == "exit code 0" || detail == "" {
		return Exit
	}
	return BadExit
}

func health(status string) State {
	switch status {
	case "HEALTHY", "passing":
		return Healthy
	case "UNHEALTHY", "critical":
		return Unhealthy
	case "warning":
		return Warning
	}
	return Unknown
}

func seconds(at float64) string { return fmt.Sprintf("%.3f", at) }

func took(from, to float64) string { return fmt.Sprintf("%.3f s", to-from) }
