package view

// Life is a whole task in one lane: it starts, is up, serves, stops. Its marks are
// what happened to any of its containers and is not an orderly stop.
func LifeLane(t RecordedTask, lanes []Lane, end float64) Lane {
	l := life{open: open{Lane: Lane{Name: t.Name, Began: Never, Ended: Never}}, health: map[string]string{}}
	for _, other := range lanes {
		l.meshed = l.meshed || other.Sort == SortTraffic
	}
	for _, c := range t.Containers {
		if c.HealthCheck && c.Essential {
			l.health[c.Name] = ""
		}
	}
	for _, e := range t.Events {
		if l.Ended < 0 {
			l.see(e)
		}
	}
	l.leave(end)
	for _, other := range lanes {
		l.Marks = append(l.Marks, grave(other)...)
	}
	return l.Lane
}

// life is a lane that is being made.
type life struct {
	open
	meshed, up, serves, stopping bool
	health                       map[string]string // of the essential containers that have one
}

// see takes an event in.
func (l *life) see(e RecordedEvent) {
	switch {
	case e.Kind == RecordedStatus && e.Container == "" && e.Status == "RUNNING":
		l.up = true
	case e.Kind == RecordedStatus && e.Container == "" && e.Status == "STOPPED":
		l.leave(e.At)
		l.Ended, l.Exit = e.At, e.Detail
		l.mark(e.At, GlyphExit, "STOPPED "+e.Detail)
		return
	case e.Kind == RecordedStatus && l.now == nil:
		l.Began = e.At
	case e.Kind == RecordedInTraffic:
		l.serves = e.Status == "in"
		l.up = l.up || l.serves
	case e.Kind == RecordedHealth:
		if _, has := l.health[e.Container]; has {
			l.health[e.Container] = e.Status
		}
	case e.Kind == RecordedRestart:
		if _, has := l.health[e.Container]; has {
			l.health[e.Container] = "" // it begins anew
		}
	case e.Kind == RecordedDesired:
		l.stopping = true
		l.mark(e.At, GlyphTerm, "asked to stop: "+e.Detail)
	default:
		return
	}
	if s, word := l.state(); l.now == nil || l.now.State != s || l.now.Stopping != l.stopping {
		l.enter(e.At, s, l.stopping, word)
	}
}

// state is how the task is now. In the mesh its traffic says that, else the health of
// its essential containers, as in ECS; those
// without a check do not hide it here.
func (l *life) state() (LaneState, string) {
	switch {
	case l.serves:
		return LaneHealthy, "Consul sends traffic to it"
	case !l.up:
		return LaneUnknown, "starts"
	case l.meshed:
		return LaneOut, "runs, Consul sends it no traffic"
	case len(l.health) == 0:
		return LaneUp, "runs"
	}
	for _, status := range l.health {
		if status == "UNHEALTHY" {
			return LaneUnhealthy, "a container is UNHEALTHY"
		}
	}
	for _, status := range l.health {
		if status != "HEALTHY" {
			return LaneUnknown, "runs, its health is UNKNOWN"
		}
	}
	return LaneHealthy, "HEALTHY"
}

// grave are a container's marks that matter to the whole task.
func grave(l Lane) []Mark {
	if l.Sort != SortContainer {
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
