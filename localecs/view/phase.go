package view

import (
	"cmp"
	"slices"

	"github.com/meshtask/consul-ecs/workload"
)

// Moment is one of the architecture page's two diagrams, or near to one. Name is its
// T0 to T4 there, empty for one that it does not name.
type Moment struct {
	Name, Text string
	At         float64
}

// Fact is a duration that is worth saying.
type Fact struct {
	Text    string
	Seconds float64
}

// Phase is the start of a task, or its stop.
type Phase struct {
	// From and To are what a picture of it shows, Zero is its T0.
	From, To, Zero float64
	Moments        []Moment
	Facts          []Fact
}

// task is what the phases need to know of one.
type task struct {
	RecordedTask
	lanes []Lane
	end   float64
}

// container finds a container's lane; an empty one has never begun.
func (t task) container(name string) Lane {
	for _, l := range t.lanes {
		if l.Sort == SortContainer && l.Name == name {
			return l
		}
	}
	return Lane{Began: Never, Ended: Never}
}

// first is when the first event came that is so, no earlier than from.
func (t task) first(from float64, is func(RecordedEvent) bool) float64 {
	for _, e := range t.Events {
		if e.At >= from && is(e) {
			return e.At
		}
	}
	return Never
}

func (t task) healthy(container string) float64 {
	return t.first(0, func(e RecordedEvent) bool {
		return e.Kind == RecordedHealth && e.Container == container && e.Status == "HEALTHY"
	})
}

func (t task) in() float64 {
	return t.first(0, func(e RecordedEvent) bool { return e.Kind == RecordedInTraffic && e.Status == "in" })
}

// Start is how the task started; false when no container ever ran.
func StartPhase(t RecordedTask, lanes []Lane, end float64) (Phase, bool) {
	of := task{t, lanes, end}
	began, first := Never, Never
	for _, l := range lanes {
		if l.Sort == SortContainer && l.Began >= 0 && (began < 0 || l.Began < began) {
			began = l.Began
		}
		if len(l.Segments) > 0 && (first < 0 || l.Segments[0].From < first) {
			first = l.Segments[0].From
		}
	}
	if began < 0 {
		return Phase{}, false
	}
	mesh, proxy, app := of.container(workload.ContainerMeshInit), of.container(workload.ContainerSidecarProxy), of.container(t.Application)
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
	p.moment("", "in traffic", of.in())
	p.order()
	p.fact("mesh-init", mesh.Began, mesh.Ended)
	p.fact("log-in after T0", began, of.first(0, func(e RecordedEvent) bool { return e.Kind == RecordedToken && e.Status == "login" }))
	p.fact("proxy healthy after its start", proxy.Began, of.healthy(proxy.Name))
	p.fact("application healthy after its start", app.Began, of.healthy(app.Name))
	p.fact("in traffic after T0", began, of.in())
	last := began
	for _, m := range p.Moments {
		last = max(last, m.At)
	}
	for _, c := range laneContainers(t) { // what became healthy late is part of the start
		last = max(last, of.container(c.Name).Began, of.healthy(c.Name))
	}
	if stop, stopped := stopBegins(t); stopped {
		last = min(last, max(stop, began))
	}
	p.From, p.To = max(0, min(first, began)), last
	p.pad(end)
	return p, true
}

// stopBegins is when the task begins to stop: it is asked to, or has ended by itself
// a moment before.
func stopBegins(t RecordedTask) (at float64, stops bool) {
	for _, e := range t.Events {
		if e.Kind == RecordedDesired {
			at, stops = e.At, true
			break
		}
	}
	if !stops {
		return 0, false
	}
	begins := at
	for _, e := range t.Events {
		if e.Kind == RecordedStatus && e.Status == "STOPPED" && e.Container != "" && e.At < begins && e.At > at-0.5 {
			begins = e.At
		}
	}
	return begins, true
}

// Stop is how the task stopped; false when it did not.
func StopPhase(t RecordedTask, lanes []Lane, end float64) (Phase, bool) {
	begins, stops := stopBegins(t)
	if !stops {
		return Phase{}, false
	}
	of := task{t, lanes, end}
	term := of.first(0, func(e RecordedEvent) bool { return e.Kind == RecordedDesired })
	stopped := of.first(begins, func(e RecordedEvent) bool {
		return e.Kind == RecordedStatus && e.Container == "" && e.Status == "STOPPED"
	})
	cleared := of.first(begins, func(e RecordedEvent) bool { return e.Kind == RecordedCleared })
	app, proxy, agent := of.container(t.Application), of.container(workload.ContainerSidecarProxy), of.container(workload.ContainerConsulClient)
	p := Phase{Zero: term}
	p.moment("T0", "the task is asked to stop", term)
	p.moment("T1", "critical in Consul", of.critical(begins))
	p.moment("", "the application is gone", app.Ended)
	p.moment("", "the proxy is gone", proxy.Ended)
	p.moment("T2", "the agent is gone", agent.Ended)
	p.moment("T3", "the task is STOPPED", stopped)
	p.moment("T4", "nothing is left of it in Consul", cleared)
	p.order()
	p.fact("TERM to critical in Consul", term, of.critical(begins))
	if t.LastServed != nil && *t.LastServed > term {
		p.fact("TERM to its last answer", term, *t.LastServed)
	}
	p.fact("TERM to the application's end", term, app.Ended)
	p.fact("TERM to STOPPED", term, stopped)
	p.fact("TERM to nothing left", term, cleared)
	last := max(begins, term)
	for _, m := range p.Moments {
		last = max(last, m.At)
	}
	for _, e := range t.Events { // what it left behind is another matter
		if e.Kind == RecordedToken && e.Status == "logout" && e.At < max(last, stopped)+10 {
			last = max(last, e.At)
		}
	}
	p.From, p.To = begins, last
	if stopped < 0 {
		p.To = end
	}
	p.pad(end)
	return p, true
}

// critical is since when Consul sends the task nothing, when that came with its stop.
func (t task) critical(begins float64) float64 {
	served := false
	for _, e := range t.Events {
		if e.Kind == RecordedInTraffic && e.At < begins {
			served = e.Status == "in"
		}
	}
	if !served {
		return Never
	}
	return t.first(begins, func(e RecordedEvent) bool {
		return e.Kind == RecordedInTraffic && e.Status == "out" || e.Kind == RecordedCheck && e.Status != "passing"
	})
}

func (p *Phase) moment(name, text string, at float64) {
	if at >= 0 {
		p.Moments = append(p.Moments, Moment{name, text, at})
	}
}

func (p *Phase) fact(text string, from, to float64) {
	if from >= 0 && to >= from {
		p.Facts = append(p.Facts, Fact{text, to - from})
	}
}

// order sorts the moments by time.
func (p *Phase) order() {
	slices.SortStableFunc(p.Moments, func(a, b Moment) int { return cmp.Compare(a.At, b.At) })
}

// pad shows a little of what was before and after.
func (p *Phase) pad(end float64) {
	more := max(0.05, 0.04*(p.To-p.From))
	p.From, p.To = max(0, p.From-more), min(max(end, p.To), p.To+more)
}
