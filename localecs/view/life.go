package view

import (
	"maps"
	"slices"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
)

// LifeLane returns a whole task in one lane: it starts, runs, serves, stops. The marks
// are the irregular ends of its containers.
func LifeLane(t RecordedTask, lanes []Lane, end float64) Lane {
	l := life{open: newLane(LaneTask, t.Name), health: map[string]scheduler.ContainerHealth{}}
	l.meshed = slices.ContainsFunc(lanes, func(l Lane) bool { return l.Kind == LaneTraffic })
	for _, c := range t.Containers {
		h := scheduler.ContainerHealth{Essential: c.Essential}
		if c.HealthCheck {
			h.Status = scheduler.HealthUnknown
		}
		l.health[c.Name] = h
	}
	for _, e := range t.Events {
		if l.Ended < 0 {
			l.add(e)
		}
	}
	l.leave(end)
	l.Annotation = l.annotation()
	for _, other := range lanes {
		l.Marks = append(l.Marks, irregular(other)...)
	}
	return l.Lane
}

// annotation returns the text beside the lane.
func (l *life) annotation() string {
	i := slices.IndexFunc(l.Marks, func(m Mark) bool { return m.Glyph == GlyphTerm })
	switch {
	case l.Began < 0:
		return "never started"
	case l.Ended < 0:
		return "still there"
	case i >= 0:
		return "stopped in " + spanText(l.Ended-l.Marks[i].At)
	}
	return "stopped"
}

// life is the lane of a whole task.
type life struct {
	*open
	meshed, up, serves, stopping bool
	health                       map[string]scheduler.ContainerHealth // by container
}

func (l *life) add(e RecordedEvent) {
	if e.Kind == KindStatus && e.Container == "" && e.Status == scheduler.StatusStopped {
		l.Exit = e.Detail
		l.end(e.At, GlyphExit, "STOPPED "+e.Detail)
		return
	}
	if !l.observe(e) {
		return
	}
	if s, word := l.state(); l.now == nil || l.now.State != s || l.now.Stopping != l.stopping {
		l.enter(e.At, s, l.stopping, word)
	}
}

// observe notes an event, and reports whether it may change the state.
func (l *life) observe(e RecordedEvent) bool {
	switch e.Kind {
	case KindStatus:
		if e.Container == "" && e.Status == scheduler.StatusRunning {
			l.up = true
			return true
		}
		if l.now != nil {
			return false
		}
		l.Began = e.At
	case KindInTraffic:
		l.serves = e.Status == "in"
		l.up = l.up || l.serves
	case KindHealth, KindRestart:
		if h := l.health[e.Container]; h.Status != "" {
			h.Status = e.Status // of a restart a number: not known
			l.health[e.Container] = h
		}
	case KindDesired:
		l.stopping = true
		l.mark(e.At, GlyphTerm, "asked to stop: "+e.Detail)
	default:
		return false
	}
	return true
}

// state returns the state of the task now. In the mesh its traffic decides, else the health of its
// essential containers that have a check.
func (l *life) state() (LaneState, string) {
	switch {
	case l.serves:
		return LaneHealthy, "Consul sends traffic to it"
	case !l.up:
		return LaneUnknown, "starts"
	case l.meshed:
		return LaneOut, "runs, Consul sends it no traffic"
	}
	switch status := scheduler.CheckedHealth(maps.Values(l.health)); status {
	case "":
		return LaneUp, "runs"
	case scheduler.HealthUnhealthy:
		return LaneUnhealthy, "a container is UNHEALTHY"
	case scheduler.HealthHealthy:
		return LaneHealthy, status
	}
	return LaneUnknown, "runs, its health is UNKNOWN"
}

// irregular returns a container's marks that concern the whole task.
func irregular(l Lane) []Mark {
	if l.Kind != LaneContainer {
		return nil
	}
	var marks []Mark
	for _, m := range l.Marks {
		if m.Glyph == GlyphKill || m.Glyph == GlyphAgain || m.Glyph == GlyphBadExit {
			marks = append(marks, m)
		}
	}
	for _, s := range l.Segments {
		if s.State == LaneUnhealthy {
			marks = append(marks, Mark{At: s.From, Glyph: GlyphSick, Title: s.Title})
		}
	}
	return marks
}
