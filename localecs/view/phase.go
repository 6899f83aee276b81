package view

import (
	"cmp"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/workload"
)

// Moment is a moment of a start or a stop. Name is its T0 to T4 in the diagrams of
// Consul's architecture page for ECS, empty for a moment that has none there.
type Moment struct {
	Name, Text string
	At         float64
}

// Fact is a duration within a phase.
type Fact struct {
	Text    string
	Seconds float64
}

// Phase is the start of a task, or its stop.
type Phase struct {
	// From and To are the ends of its diagram, Zero is its T0.
	From, To, Zero float64
	Moments        []Moment
	Facts          []Fact
}

// since returns how long after T0 it was.
func (p Phase) since(at float64) string {
	if at < p.Zero {
		return "before"
	}
	return "+" + SpanText(at-p.Zero)
}

// task is a task with its lanes.
type task struct {
	RecordedTask
	lanes []Lane
}

// container returns the lane of a container; an empty one has never run.
func (t task) container(name string) Lane {
	for _, l := range t.lanes {
		if l.Kind == LaneContainer && l.Name == name {
			return l
		}
	}
	return Lane{Began: never, Ended: never}
}

// first returns the time of the first such event, no earlier than from.
func (t task) first(from float64, is func(RecordedEvent) bool) float64 {
	for _, e := range t.Events {
		if e.At >= from && is(e) {
			return e.At
		}
	}
	return never
}

// when returns the time of the first event of a kind, about a container or, with an empty name, about
// the task. An empty status is any.
func (t task) when(from float64, kind Kind, container, status string) float64 {
	return t.first(from, func(e RecordedEvent) bool {
		return e.Kind == kind && e.Container == container && (status == "" || e.Status == status)
	})
}

func (t task) healthy(container string) float64 {
	return t.when(0, KindHealth, container, scheduler.HealthHealthy)
}

// firstRun returns when the first container ran, and when the first lane begins.
func firstRun(lanes []Lane) (began, first float64) {
	began, first = never, never
	for _, l := range lanes {
		if l.Kind == LaneContainer && l.Began >= 0 && (began < 0 || l.Began < began) {
			began = l.Began
		}
		if len(l.Segments) > 0 && (first < 0 || l.Segments[0].From < first) {
			first = l.Segments[0].From
		}
	}
	return began, first
}

// StartPhase returns how the task started; false when no container ever ran.
func StartPhase(t RecordedTask, lanes []Lane, end float64) (Phase, bool) {
	of := task{t, lanes}
	began, first := firstRun(lanes)
	if began < 0 {
		return Phase{}, false
	}
	mesh, proxy, app := of.container(workload.ContainerMeshInit), of.container(workload.ContainerSidecarProxy),
		of.container(t.Application)
	in := of.when(0, KindInTraffic, "", "in")
	p := Phase{Zero: began}
	p.moment("T0", "the first container runs", began)
	p.moment("T1", "mesh-init is done", mesh.Ended)
	p.moment("", "the proxy is healthy", of.healthy(proxy.Name))
	if mesh.Began >= 0 {
		p.moment("T2", "the application starts", app.Began)
	} else if app.Began > began {
		p.moment("", "the application starts", app.Began)
	}
	p.moment("", "the application is healthy", of.healthy(app.Name))
	p.moment("", "in traffic", in)
	p.fact("mesh-init", mesh.Began, mesh.Ended)
	p.fact("login after T0", began, of.when(0, KindToken, "", "login"))
	p.fact("proxy healthy after its start", proxy.Began, of.healthy(proxy.Name))
	p.fact("application healthy after its start", app.Began, of.healthy(app.Name))
	p.fact("in traffic after T0", began, in)
	last := p.last(began)
	for _, c := range t.containers() { // the start lasts until the last container is healthy
		last = max(last, of.container(c.Name).Began, of.healthy(c.Name))
	}
	if stop := of.stopBegins(); stop >= 0 {
		last = min(last, max(stop, began))
	}
	p.pad(max(0, min(first, began)), last, end)
	return p, true
}

// stopBegins returns when the task begins to stop: when it is asked to, or when a
// container ended by itself a moment before.
func (t task) stopBegins() float64 {
	at := t.when(0, KindDesired, "", "")
	begins := at
	for _, e := range t.Events {
		if e.Kind == KindStatus && e.Status == scheduler.StatusStopped && e.Container != "" && e.At > at-0.5 {
			begins = min(begins, e.At)
		}
	}
	return begins
}

// StopPhase returns how the task stopped; false when it did not.
func StopPhase(t RecordedTask, lanes []Lane, end float64) (Phase, bool) {
	of := task{t, lanes}
	begins := of.stopBegins()
	if begins < 0 {
		return Phase{}, false
	}
	term, critical := of.when(0, KindDesired, "", ""), of.critical(begins)
	stopped, cleared := of.when(begins, KindStatus, "", scheduler.StatusStopped), of.when(begins, KindCleared, "", "")
	app, proxy, agent := of.container(t.Application), of.container(workload.ContainerSidecarProxy),
		of.container(workload.ContainerConsulClient)
	p := Phase{Zero: term}
	p.moment("T0", "the task is asked to stop", term)
	p.moment("T1", "critical in Consul", critical)
	p.moment("", "the application is gone", app.Ended)
	p.moment("", "the proxy is gone", proxy.Ended)
	p.moment("T2", "the agent is gone", agent.Ended)
	p.moment("T3", "the task is STOPPED", stopped)
	p.moment("T4", "nothing is left of it in Consul", cleared)
	p.fact("TERM to critical in Consul", term, critical)
	if t.LastServed != nil && *t.LastServed > term {
		p.fact("TERM to its last answer", term, *t.LastServed)
	}
	p.fact("TERM to the application's end", term, app.Ended)
	p.fact("TERM to STOPPED", term, stopped)
	p.fact("TERM to nothing left", term, cleared)
	last := p.last(begins)
	for _, e := range t.Events { // a token that is removed much later is not part of the stop
		if e.Kind == KindToken && e.Status == "logout" && e.At < max(last, stopped)+10 {
			last = max(last, e.At)
		}
	}
	if stopped < 0 {
		last = end
	}
	p.pad(begins, last, end)
	return p, true
}

// critical returns since when Consul sends the task nothing, if that came with its stop.
func (t task) critical(begins float64) float64 {
	served := false
	for _, e := range t.Events {
		if e.Kind == KindInTraffic && e.At < begins {
			served = e.Status == "in"
		}
	}
	if !served {
		return never
	}
	return t.first(begins, func(e RecordedEvent) bool {
		return e.Kind == KindInTraffic && e.Status == "out" || e.Kind == KindCheck && e.Status != "passing"
	})
}

// moment adds a moment that has come, in the order of time.
func (p *Phase) moment(name, text string, at float64) {
	if at >= 0 {
		p.Moments = append(p.Moments, Moment{name, text, at})
		slices.SortStableFunc(p.Moments, func(a, b Moment) int { return cmp.Compare(a.At, b.At) })
	}
}

func (p *Phase) fact(text string, from, to float64) {
	if from >= 0 && to >= from {
		p.Facts = append(p.Facts, Fact{text, to - from})
	}
}

// last returns the time of the last moment, no earlier than least.
func (p *Phase) last(least float64) float64 {
	for _, m := range p.Moments {
		least = max(least, m.At)
	}
	return least
}

// pad sets the ends, with a margin within the run.
func (p *Phase) pad(from, to, end float64) {
	margin := max(0.05, 0.04*(to-from))
	p.From, p.To = max(0, from-margin), min(max(end, to), to+margin)
}

// StartNote returns the text beside a lane in a start.
func StartNote(p Phase, l Lane) string {
	healthy := l.healthyBy(p.To)
	switch {
	case l.Kind == LaneToken:
		return "login " + p.since(l.Began)
	case l.Kind == LaneCheck && healthy >= 0:
		return "passing " + p.since(healthy)
	case l.Kind == LaneCheck:
		return "not passing"
	case l.Kind == LaneTraffic && healthy >= 0:
		return p.since(healthy)
	case l.Kind == LaneTraffic:
		return "never"
	case l.Began < 0:
		return "never ran"
	case l.Ended >= 0 && l.Ended <= p.To:
		return SpanText(l.Ended-l.Began) + exitText(l)
	case healthy >= 0:
		return "healthy " + p.since(healthy)
	}
	return "runs " + p.since(l.Began)
}

// exitText returns how a container ended, in short.
func exitText(l Lane) string {
	if code, ok := strings.CutPrefix(l.Exit, "exit code "); ok {
		return ", exit " + code
	}
	if l.Exit == "" {
		return ""
	}
	return ", " + l.Exit
}

// StopNote returns the text beside a lane in a stop.
func StopNote(p Phase, l Lane) string {
	ended := l.Ended >= 0 && l.Ended <= p.To
	switch l.Kind {
	case LaneContainer:
		return containerStop(p, l, ended)
	case LaneToken:
		if ended {
			return "logged out " + p.since(l.Ended)
		}
		return "stays"
	case LaneTraffic:
		if l.Began < 0 {
			return "never"
		}
		return "out " + p.since(l.Segments[len(l.Segments)-1].To)
	}
	for _, s := range l.Segments {
		if s.From >= p.From && s.State != LaneHealthy {
			return "critical " + p.since(s.From)
		}
	}
	if ended {
		return "gone " + p.since(l.Ended)
	}
	return ""
}

func containerStop(p Phase, l Lane, ended bool) string {
	switch {
	case l.Began < 0:
		return "never ran"
	case !ended:
		return "still runs"
	case l.Ended < p.Zero:
		return "gone before" + exitText(l)
	}
	return "gone " + p.since(l.Ended) + exitText(l)
}

// LifeNote returns the text beside a whole task.
func LifeNote(l Lane) string {
	i := slices.IndexFunc(l.Marks, func(m Mark) bool { return m.Glyph == GlyphTerm })
	switch {
	case l.Began < 0:
		return "never started"
	case l.Ended < 0:
		return "still there"
	case i >= 0:
		return "stopped in " + SpanText(l.Ended-l.Marks[i].At)
	}
	return "stopped"
}
