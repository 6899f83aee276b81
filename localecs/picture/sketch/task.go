package sketch

import (
	"strings"

	"github.com/meshtask/consul-ecs/localecs/picture/axis"
	"github.com/meshtask/consul-ecs/localecs/picture/history"
	"github.com/meshtask/consul-ecs/localecs/picture/lane"
)

// task shows a start and a stop.
func (c *canvas) task(t history.Task) {
	lanes := lane.Of(t, c.run.Seconds)
	if p, began := lane.Start(t, lanes, c.run.Seconds); began {
		c.phase(t.Name+" starts", p, lanes, lane.StartNote(p))
	}
	if p, stopped := lane.Stop(t, lanes, c.run.Seconds); stopped {
		c.phase(t.Name+" stops", p, lanes, lane.StopNote(p))
	}
}

// phase shows one of the two, with its moments in words.
func (c *canvas) phase(title string, p lane.Phase, lanes []lane.Lane, note func(lane.Lane) string) {
	var points []float64
	for _, l := range lanes {
		points = append(points, l.Points()...)
	}
	c.Axis = axis.New(p.From, p.To, points, float64(c.plot), cutWidth)
	c.WriteByte('\n')
	c.row(clean(title)+", T0 at "+axis.Span(p.Zero), "", nil)
	c.ruler(p.Zero)
	for _, l := range lanes {
		if l.In(p) {
			c.lane(l, note(l))
		}
	}
	var words []string
	for _, m := range p.Moments {
		words = append(words, strings.TrimSpace(m.Name+" "+m.Text+" ")+" "+axis.Span(m.At-p.Zero))
	}
	c.wrapped(words)
	words = nil
	for _, f := range p.Facts {
		words = append(words, f.Text+" "+axis.Span(f.Seconds))
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
	look := func(s lane.State) string { return string(c.chars.states[s].char) }
	c.WriteByte('\n')
	c.wrapped([]string{
		look(lane.Unknown) + " starts, health unknown", look(lane.Up) + " runs", look(lane.Healthy) + " healthy, in traffic",
		look(lane.Unhealthy) + " unhealthy, critical", look(lane.Out) + " not in traffic", string(c.chars.stopping) + " after TERM",
		look(lane.Waiting) + " waits", look(lane.Held) + " token",
		"T TERM", "K KILL", "R restarted", "U UNHEALTHY", "| exit 0", "E other exit", "X lost requests", "/ time cut short",
	})
}
