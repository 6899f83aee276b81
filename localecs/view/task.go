package view

import (
	"strings"
)

// task shows a start and a stop.
func (c *canvas) task(t RecordedTask) {
	lanes := LanesOf(t, c.run.Seconds)
	if p, began := StartPhase(t, lanes, c.run.Seconds); began {
		c.phase(t.Name+" starts", p, lanes, StartNote(p))
	}
	if p, stopped := StopPhase(t, lanes, c.run.Seconds); stopped {
		c.phase(t.Name+" stops", p, lanes, StopNote(p))
	}
}

// phase shows one of the two, with its moments in words.
func (c *canvas) phase(title string, p Phase, lanes []Lane, note func(Lane) string) {
	var points []float64
	for _, l := range lanes {
		points = append(points, l.Points()...)
	}
	c.Axis = NewAxis(p.From, p.To, points, float64(c.plot), sketchCutWidth)
	c.WriteByte('\n')
	c.row(cleanCells(title)+", T0 at "+SpanText(p.Zero), "", nil)
	c.ruler(p.Zero)
	for _, l := range lanes {
		if l.In(p) {
			c.lane(l, note(l))
		}
	}
	var words []string
	for _, m := range p.Moments {
		words = append(words, strings.TrimSpace(m.Name+" "+m.Text+" ")+" "+SpanText(m.At-p.Zero))
	}
	c.wrapped(words)
	words = nil
	for _, f := range p.Facts {
		words = append(words, f.Text+" "+SpanText(f.Seconds))
	}
	c.wrapped(words)
}

// wrapped writes phrases one after the other, in as many lines as it takes.
func (c *canvas) wrapped(phrases []string) {
	line := ""
	for _, p := range phrases {
		if line != "" && len(line)+3+len(p) > c.Width {
			c.WriteString(line + "\n")
			line = ""
		}
		if line == "" {
			line = "  " + cut(p, c.Width-2, c.chars.ellipsis)
		} else {
			line += "; " + p
		}
	}
	if line != "" {
		c.WriteString(line + "\n")
	}
}

// legend says what the characters mean.
func (c *canvas) legend() {
	look := func(s LaneState) string { return string(c.chars.states[s].char) }
	c.WriteByte('\n')
	c.wrapped([]string{
		look(LaneUnknown) + " starts, health unknown", look(LaneUp) + " runs", look(LaneHealthy) + " healthy, in traffic",
		look(LaneUnhealthy) + " unhealthy, critical", look(LaneOut) + " not in traffic", string(c.chars.stopping) + " after TERM",
		look(LaneWaiting) + " waits", look(LaneHeld) + " token",
		"T TERM", "K KILL", "R restarted", "U UNHEALTHY", "| exit 0", "E other exit", "X lost requests", "/ time cut short",
	})
}
