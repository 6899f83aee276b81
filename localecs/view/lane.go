package view

import (
	"fmt"
	"slices"
	"strings"
)

// LaneState is what a segment of a lane shows, and its class in page.html.
type LaneState string

// The states of a lane.
const (
	LaneWaiting   LaneState = "waiting"   // its image is there, and it may not start yet
	LaneUp        LaneState = "up"        // runs, and has no health check
	LaneUnknown   LaneState = "unknown"   // runs, its health is not known yet; a task that starts
	LaneHealthy   LaneState = "healthy"   // also a check that passes, a task in traffic
	LaneWarning   LaneState = "warning"   // a check that warns
	LaneUnhealthy LaneState = "unhealthy" // also a check that is critical
	LaneOut       LaneState = "out"       // a task that runs and gets no traffic
	LaneHeld      LaneState = "held"      // a token

	laneStep     LaneState = "step"
	laneFault    LaneState = "fault"
	lanePhase    LaneState = "phase"
	laneAnswered LaneState = "answered"
	laneLost     LaneState = "lost"
)

// Segment is a time in a state.
type Segment struct {
	From, To float64
	State    LaneState
	// Stopping reports whether it has been asked to stop, Failed whether a step has an error.
	Stopping, Failed bool
	// Title has all about it. Label is shown as far as there is room, until a time.
	Title, Label string
	Until        float64
}

// Glyph is the shape of a mark, and its class in page.html.
type Glyph string

// The marks.
const (
	GlyphTerm    Glyph = "term"    // the stop signal of a container
	GlyphKill    Glyph = "kill"    // SIGKILL, by ECS, a step or a fault
	GlyphAgain   Glyph = "again"   // started again by a restart policy
	GlyphExit    Glyph = "exit"    // a container ended with 0, the task is STOPPED
	GlyphBadExit Glyph = "badexit" // ended otherwise, or never ran
	GlyphSick    Glyph = "sick"    // a container turned UNHEALTHY
)

// Mark is a moment.
type Mark struct {
	At    float64
	Glyph Glyph
	Title string
}

// LaneKind is the subject of a lane.
type LaneKind string

// The kinds of lanes. Those of a task's parts are in the order in which they are shown.
const (
	LaneContainer LaneKind = "container"
	LaneCheck     LaneKind = "check"
	LaneTraffic   LaneKind = "traffic"
	LaneToken     LaneKind = "token"
	LaneTask      LaneKind = "task"
	LaneBand      LaneKind = "band" // steps, faults or requests
)

// Lane is one line of a diagram.
type Lane struct {
	Kind       LaneKind
	Name       string
	Annotation string
	Segments   []Segment
	Marks      []Mark
	// Began is when it first ran and Ended when it stopped, never before that. Exit is
	// how a container ended, the service of a check and the accessor of a token.
	Began, Ended float64
	Exit         string
}

// never is the time of what did not happen.
const never = -1.0

// LanesOf returns the lanes of a task. What did not end lasts until end.
func LanesOf(t RecordedTask, end float64) []Lane {
	var all []*open
	for _, c := range t.containers() {
		all = append(all, containerLane(t, c))
	}
	all = append(all, checkLanes(t)...)
	if l := trafficLane(t); l != nil {
		all = append(all, l)
	}
	var lanes []Lane
	checks := map[string]int{}
	for _, o := range append(all, tokenLanes(t)...) {
		o.leave(end)
		lanes = append(lanes, o.Lane)
		if o.Kind == LaneCheck {
			checks[o.Name]++
		}
	}
	for i, l := range lanes {
		if l.Kind == LaneCheck && checks[l.Name] > 1 {
			lanes[i].Name += " (" + l.Exit + ")"
		}
	}
	return lanes
}

// containers returns those of the definition, and any other that has events.
func (t RecordedTask) containers() []RecordedContainer {
	all := slices.Clone(t.Containers)
	for _, e := range t.Events {
		if e.Container != "" && !slices.ContainsFunc(all, func(c RecordedContainer) bool {
			return c.Name == e.Container
		}) {
			all = append(all, RecordedContainer{Name: e.Container})
		}
	}
	return all
}

// open is a lane whose current segment has no end yet.
type open struct {
	Lane
	now *Segment
}

func newLane(kind LaneKind, name string) *open {
	return &open{Lane: Lane{Kind: kind, Name: name, Began: never, Ended: never}}
}

// enter ends the current segment and starts another one.
func (o *open) enter(at float64, s LaneState, stopping bool, title string) {
	o.leave(at)
	o.now = &Segment{From: at, State: s, Stopping: stopping, Title: title}
}

// leave ends the current segment.
func (o *open) leave(at float64) {
	if o.now == nil {
		return
	}
	s := *o.now
	s.To = max(at, s.From)
	s.Title = fmt.Sprintf("%s: %s, %.3f to %.3f s (%.3f s)", o.Name, s.Title, s.From, s.To, s.To-s.From)
	o.Segments, o.now = append(o.Segments, s), nil
}

// end ends the lane with a mark.
func (o *open) end(at float64, g Glyph, title string) {
	o.leave(at)
	o.Ended = at
	o.mark(at, g, title)
}

func (o *open) mark(at float64, g Glyph, title string) {
	o.Marks = append(o.Marks, Mark{At: at, Glyph: g, Title: fmt.Sprintf("%s: %s at %.3f s", o.Name, title, at)})
}

// container is the lane of one container.
type container struct {
	*open
	// probed reports whether it has a health check.
	probed, stopping bool
}

func containerLane(t RecordedTask, of RecordedContainer) *open {
	c := container{open: newLane(LaneContainer, of.Name)}
	c.probed = of.HealthCheck || slices.ContainsFunc(t.Events, func(e RecordedEvent) bool {
		return e.Kind == KindHealth && e.Container == of.Name
	})
	for _, e := range t.Events {
		if e.Container == of.Name {
			c.add(e)
		}
	}
	return c.open
}

func (c *container) add(e RecordedEvent) {
	switch e.Kind {
	case KindStatus:
		c.status(e)
	case KindHealth:
		if c.Began >= 0 {
			c.enter(e.At, healthState(e.Status), c.stopping, strings.TrimSpace(e.Status+" "+e.Detail))
		}
	case KindRestart:
		c.runs(e.At)
		c.mark(e.At, GlyphAgain, "started again, "+e.Status+" so far")
	case KindSignal:
		if e.Status == "KILL" {
			c.mark(e.At, GlyphKill, strings.TrimSpace("signal KILL "+e.Detail))
			return
		}
		c.stopping = true
		c.mark(e.At, GlyphTerm, e.Status)
		if c.now != nil {
			c.enter(e.At, c.now.State, true, c.now.Title+", asked to stop")
		}
	case KindKill:
		g := GlyphTerm
		if e.Detail == "" || strings.Contains(e.Detail, "KILL") {
			g = GlyphKill
		}
		c.mark(e.At, g, strings.TrimSpace("kill "+e.Status+" "+e.Detail))
	}
}

func (c *container) status(e RecordedEvent) {
	switch e.Status {
	case "PULLED":
		c.enter(e.At, LaneWaiting, false, "waits to start")
	case "RUNNING":
		c.Began = e.At
		c.runs(e.At)
	case "STOPPED":
		g := GlyphBadExit
		if e.Detail == "exit code 0" {
			g = GlyphExit
		}
		c.Exit, c.Annotation = e.Detail, e.Detail
		c.end(e.At, g, "STOPPED "+e.Detail)
	}
}

// runs starts the segment of a container that has just started.
func (c *container) runs(at float64) {
	if c.probed {
		c.enter(at, LaneUnknown, c.stopping, "runs, health UNKNOWN")
	} else {
		c.enter(at, LaneUp, c.stopping, "runs")
	}
}

// healthState returns the state of a container or of a check in Consul.
func healthState(status string) LaneState {
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

// laneOf returns the lane with a name and an Exit, a new one if there is none.
func laneOf(all *[]*open, s LaneKind, name, exit string, began float64) *open {
	for _, o := range *all {
		if o.Name == name && o.Exit == exit {
			return o
		}
	}
	o := newLane(s, name)
	o.Began, o.Exit = began, exit
	*all = append(*all, o)
	return o
}

// checkLanes returns a lane for each check of each service, in the order of their first status.
func checkLanes(t RecordedTask) []*open {
	var all []*open
	for _, e := range t.Events {
		if e.Kind != KindCheck {
			continue
		}
		o := laneOf(&all, LaneCheck, e.Check, e.Service, e.At)
		if e.Status == "gone" {
			o.end(e.At, GlyphExit, "no longer in Consul")
		} else {
			o.enter(e.At, healthState(e.Status), false, e.Status)
		}
	}
	return all
}

// trafficLane shows when Consul sends traffic to the task; nil without traffic and
// without a check.
func trafficLane(t RecordedTask) *open {
	o, any := newLane(LaneTraffic, "in traffic"), false
	for _, e := range t.Events {
		switch {
		case e.Kind == KindCheck:
			any = true
		case e.Kind != KindInTraffic:
		case e.Status == "in":
			any = true
			if o.Began < 0 {
				o.Began = e.At
			}
			o.enter(e.At, LaneHealthy, false, "Consul sends traffic to it")
		default:
			o.leave(e.At)
			o.Ended = e.At
		}
	}
	if !any {
		return nil
	}
	return o
}

// tokenLanes returns a lane for each login token.
func tokenLanes(t RecordedTask) []*open {
	var all []*open
	for _, e := range t.Events {
		if e.Kind != KindToken {
			continue
		}
		o := laneOf(&all, LaneToken, "token "+e.Method, e.Accessor, e.At)
		if e.Status == "login" {
			o.enter(e.At, LaneHeld, false, "accessor "+e.Accessor)
		} else {
			o.end(e.At, GlyphExit, "logged out or removed, observed about 0.2 s late,")
		}
	}
	return all
}
