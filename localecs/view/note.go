package view

import (
	"strings"
)

// StartNote is what is worth knowing of a lane in a start.
func StartNote(p Phase) func(Lane) string {
	return func(l Lane) string {
		switch l.Sort {
		case SortContainer:
			return containerStart(l, p)
		case SortToken:
			return "log-in " + p.Since(l.Began)
		}
		in, not := "", "never"
		if l.Sort == SortCheck {
			in, not = "passing ", "not passing"
		}
		for _, s := range l.Segments {
			if s.State == LaneHealthy && s.From <= p.To {
				return in + p.Since(s.From)
			}
		}
		return not
	}
}

func containerStart(l Lane, p Phase) string {
	switch {
	case l.Began < 0:
		return "never ran"
	case l.Ended >= 0 && l.Ended <= p.To:
		return SpanText(l.Ended-l.Began) + exit(l)
	}
	for _, s := range l.Segments {
		if s.State == LaneHealthy && s.From <= p.To {
			return "healthy " + p.Since(s.From)
		}
	}
	return "runs " + p.Since(l.Began)
}

// exit is how a container ended, as short as it can be said.
func exit(l Lane) string {
	if code, ok := strings.CutPrefix(l.Exit, "exit code "); ok {
		return ", exit " + code
	}
	if l.Exit == "" {
		return ""
	}
	return ", " + l.Exit
}

// Since says how long after T0 it was.
func (p Phase) Since(at float64) string {
	if at < p.Zero {
		return "before"
	}
	return "+" + SpanText(at-p.Zero)
}

// StopNote is what is worth knowing of a lane in a stop.
func StopNote(p Phase) func(Lane) string {
	return func(l Lane) string {
		ended := l.Ended >= 0 && l.Ended <= p.To
		switch {
		case l.Sort == SortContainer && l.Began < 0:
			return "never ran"
		case l.Sort == SortContainer && ended && l.Ended < p.Zero:
			return "gone before" + exit(l)
		case l.Sort == SortContainer && ended:
			return "gone " + p.Since(l.Ended) + exit(l)
		case l.Sort == SortContainer:
			return "still runs"
		case l.Sort == SortToken && ended:
			return "logged out " + p.Since(l.Ended)
		case l.Sort == SortToken:
			return "stays"
		case l.Sort == SortTraffic && l.Began < 0:
			return "never"
		case l.Sort == SortTraffic:
			return "out " + p.Since(lastIn(l))
		}
		for _, s := range l.Segments {
			if s.From >= p.From && s.State != LaneHealthy {
				return "critical " + p.Since(s.From)
			}
		}
		if ended {
			return "gone " + p.Since(l.Ended)
		}
		return ""
	}
}

// lastIn is when the traffic went for good.
func lastIn(l Lane) float64 {
	if len(l.Segments) == 0 {
		return l.Ended
	}
	return l.Segments[len(l.Segments)-1].To
}

// LifeNote is what is worth knowing of a whole task.
func LifeNote(l Lane) string {
	asked := Never
	for _, m := range l.Marks {
		if m.Glyph == GlyphTerm && asked < 0 {
			asked = m.At
		}
	}
	switch {
	case l.Began < 0:
		return "never began"
	case l.Ended < 0:
		return "still there"
	case asked >= 0:
		return "stopped in " + SpanText(l.Ended-asked)
	}
	return "stopped"
}
