package view

import (
	"fmt"
	"slices"
	"strings"
)

// State is what lasts.
type LaneState string

// The states of what a lane is about.
const (
	LaneWaiting   LaneState = "waiting"   // its image is there, and it may not start yet
	LaneUp        LaneState = "up"        // runs, and has no health check
	LaneUnknown   LaneState = "unknown"   // runs, its health is not known yet; a task that starts
	LaneHealthy   LaneState = "healthy"   // also a check that passes, a task in traffic
	LaneWarning   LaneState = "warning"   // a check that warns
	LaneUnhealthy LaneState = "unhealthy" // also a check that is critical
	LaneOut       LaneState = "out"       // a task that runs and gets no traffic
	LaneHeld      LaneState = "held"      // a token
)

// Segment is a time in a state.
type Segment struct {
	From, To float64
	State    LaneState
	// Stopping says that it has been asked to stop.
	Stopping bool
	Title    string
}

// Glyph is what a mark looks like.
type Glyph string

// The marks.
const (
	GlyphTerm    Glyph = "term"    // the stop signal of a container
	GlyphKill    Glyph = "kill"    // SIGKILL, by ECS, a step or a fault
	GlyphAgain   Glyph = "again"   // a restart policy has started it
	GlyphExit    Glyph = "exit"    // ended with 0
	GlyphBadExit Glyph = "badexit" // ended otherwise, or never ran
	GlyphSick    Glyph = "sick"    // an application turned UNHEALTHY
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
	SortContainer Sort = "container"
	SortCheck     Sort = "check"
	SortTraffic   Sort = "traffic"
	SortToken     Sort = "token"
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

// In reports whether it has anything in a phase. A container that never ran is news as
// well.
func (l Lane) In(p Phase) bool {
	if l.Sort == SortContainer && l.Began < 0 && l.Ended < 0 || l.Sort == SortTraffic {
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
func LanesOf(t RecordedTask, end float64) []Lane {
	var lanes []Lane
	for _, c := range laneContainers(t) {
		lanes = append(lanes, container(t, c, end))
	}
	lanes = append(lanes, checks(t, end)...)
	if l, any := traffic(t, end); any {
		lanes = append(lanes, l)
	}
	return append(lanes, tokens(t, end)...)
}

// containers are those of the definition, and any other that has events.
func laneContainers(t RecordedTask) []RecordedContainer {
	all := slices.Clone(t.Containers)
	for _, e := range t.Events {
		if e.Container != "" && !slices.ContainsFunc(all, func(c RecordedContainer) bool { return c.Name == e.Container }) {
			all = append(all, RecordedContainer{Name: e.Container})
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
func (o *open) enter(at float64, s LaneState, stopping bool, title string) {
	o.leave(at)
	o.now = &Segment{From: at, State: s, Stopping: stopping, Title: title}
}

// leave ends the present segment.
func (o *open) leave(at float64) {
	if o.now == nil {
		return
	}
	o.now.To = max(at, o.now.From)
	o.now.Title = fmt.Sprintf("%s: %s, %s to %s s (%s)", o.Name, o.now.Title, laneSeconds(o.now.From), laneSeconds(o.now.To), took(o.now.From, o.now.To))
	o.Segments = append(o.Segments, *o.now)
	o.now = nil
}

func (o *open) mark(at float64, g Glyph, title string) {
	o.Marks = append(o.Marks, Mark{At: at, Glyph: g, Title: fmt.Sprintf("%s: %s at %s s", o.Name, title, laneSeconds(at))})
}

func container(t RecordedTask, c RecordedContainer, end float64) Lane {
	o := open{Lane: Lane{Sort: SortContainer, Name: c.Name, Began: Never, Ended: Never}}
	state, word := LaneUp, "runs"
	if c.HealthCheck || slices.ContainsFunc(t.Events, func(e RecordedEvent) bool { return e.Kind == RecordedHealth && e.Container == c.Name }) {
		state, word = LaneUnknown, "runs, health UNKNOWN"
	}
	stopping := false
	for _, e := range t.Events {
		if e.Container != c.Name {
			continue
		}
		switch {
		case e.Kind == RecordedStatus && e.Status == "PULLED":
			o.enter(e.At, LaneWaiting, false, "waits to start")
		case e.Kind == RecordedStatus && e.Status == "RUNNING":
			o.Began = e.At
			o.enter(e.At, state, stopping, word)
		case e.Kind == RecordedStatus && e.Status == "STOPPED":
			o.leave(e.At)
			o.Ended, o.Exit = e.At, e.Detail
			o.mark(e.At, exitGlyph(e.Detail), "STOPPED "+e.Detail)
		case e.Kind == RecordedHealth && o.Began >= 0:
			o.enter(e.At, health(e.Status), stopping, strings.TrimSpace(e.Status+" "+e.Detail))
		case e.Kind == RecordedRestart:
			o.enter(e.At, state, stopping, word)
			o.mark(e.At, GlyphAgain, "started again, "+e.Status+" so far")
		case e.Kind == RecordedSignal && e.Status != "KILL":
			stopping = true
			o.mark(e.At, GlyphTerm, e.Status)
			if o.now != nil {
				was := *o.now
				o.enter(e.At, was.State, true, was.Title+", asked to stop")
			}
		case e.Kind == RecordedSignal, e.Kind == RecordedKill:
			o.mark(e.At, killGlyph(e), strings.TrimSpace(e.Kind+" "+e.Status+" "+e.Detail))
		}
	}
	o.leave(end)
	return o.Lane
}

// killGlyph is that of a signal which ECS or a step has sent.
func killGlyph(e RecordedEvent) Glyph {
	if e.Kind == RecordedSignal || strings.Contains(e.Detail, "KILL") || e.Detail == "" {
		return GlyphKill
	}
	return GlyphTerm
}

func exitGlyph(detail string) Glyph {
	if detail == "exit code 0" || detail == "" {
		return GlyphExit
	}
	return GlyphBadExit
}

func health(status string) LaneState {
	switch status {
	case "HEALTHY", "passing":
		return LaneHealthy
	case "UNHEALTHY", "critical":
		return LaneUnhealthy
	case "warning":
		return LaneWarning
	}
	return LaneUnknown
}

func laneSeconds(at float64) string { return fmt.Sprintf("%.3f", at) }

func took(from, to float64) string { return fmt.Sprintf("%.3f s", to-from) }
