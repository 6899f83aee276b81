package lane

import (
	"github.com/meshtask/consul-ecs/localecs/picture/history"
)

// Life is a whole task in one lane: it starts, is up, serves, stops. Its marks are
// what happened to any of its containers and is not an orderly stop.
func Life(t history.Task, lanes []Lane, end float64) Lane {
	o := open{Lane: Lane{Name: t.Name, Began: Never, Ended: Never}}
	stopping, serves, up := false, false, false
	meshed := false
	for _, l := range lanes {
		meshed = meshed || l.Sort == Traffic
	}
	state := func() (State, string) {
		switch {
		case serves:
			return Healthy, "Consul sends traffic to it"
		case !up:
			return Unknown, "starts"
		case meshed:
			return Out, "runs, Consul sends it no traffic"
		}
		return Up, "runs"
	}
	change := func(at float64) {
		s, word := state()
		if o.now != nil && o.now.State == s && o.now.Stopping == stopping {
			return
		}
		o.enter(at, s, stopping, word)
	}
	for _, e := range t.Events {
		switch {
		case o.Ended >= 0:
		case e.Kind == history.Status && e.Container == "" && e.Status == "RUNNING":
			up = true
			change(e.At)
		case e.Kind == history.Status && e.Container == "" && e.Status == "STOPPED":
			o.leave(e.At)
			o.Ended, o.Exit = e.At, e.Detail
			o.mark(e.At, Exit, "STOPPED "+e.Detail)
		case e.Kind == history.Status && o.now == nil:
			o.Began = e.At
			change(e.At)
		case e.Kind == history.InTraffic:
			serves = e.Status == "in"
			up = up || serves
			change(e.At)
		case e.Kind == history.Desired:
			stopping = true
			o.mark(e.At, Term, "asked to stop: "+e.Detail)
			change(e.At)
		}
	}
	o.leave(end)
	for _, l := range lanes {
		o.Marks = append(o.Marks, grave(l)...)
	}
	return o.Lane
}

// grave are a container's marks that matter to the whole task.
func grave(l Lane) []Mark {
	if l.Sort != Container {
		return nil
	}
	var marks []Mark
	for _, m := range l.Marks {
		if m.Glyph == Kill || m.Glyph == Again || m.Glyph == BadExit {
			marks = append(marks, m)
		}
	}
	for _, s := range l.Segments {
		if s.State == Unhealthy {
			marks = append(marks, Mark{At: s.From, Glyph: Sick, Title: s.Title})
		}
	}
	return marks
}
