package view

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Options say how a run is shown.
type SketchOptions struct {
	// Width is in cells; below minWidth it is that.
	Width int
	// Colour allows colours, ASCII wants no other characters.
	Colour, ASCII bool
	// Tasks shows the start and the stop of each task as well, or of Only, if that is
	// not empty.
	Tasks bool
	Only  string
}

// The widths of a picture's parts, in cells. Where there is enough of them, names and
// notes have room for all of theirs.
const (
	minWidth         = 60
	enough           = 100
	sketchNamesWidth = 26
	allNames         = 31
	sketchNotesWidth = 22
	allNotes         = 26
	sketchCutWidth   = 3
	sketchTickApart  = 10
)

// canvas is a picture being drawn.
type canvas struct {
	strings.Builder
	SketchOptions
	chars charset
	run   *RecordedRun
	Axis
	names, plot, notes int // how many cells each has
}

// Write writes the whole run, a lane for each task, and with Options.Tasks their starts
// and stops. The error is the writer's.
func WriteSketch(w io.Writer, run RecordedRun, o SketchOptions) error {
	o.Width = max(o.Width, minWidth)
	c := &canvas{SketchOptions: o, chars: charsetOf(o.ASCII), run: &run, names: sketchNamesWidth, notes: sketchNotesWidth}
	if o.Width >= enough {
		c.names, c.notes = allNames, allNotes
	}
	c.plot = o.Width - c.names - c.notes
	c.overview()
	for _, t := range run.Tasks {
		if o.Tasks && (o.Only == "" || o.Only == t.Name) {
			c.task(t)
		}
	}
	c.legend()
	_, err := io.WriteString(w, c.String())
	return err
}

// overview shows the whole run.
func (c *canvas) overview() {
	r := c.run
	var lives []Lane
	var points []float64
	for _, t := range r.Tasks {
		l := LifeLane(t, LanesOf(t, r.Seconds), r.Seconds)
		lives = append(lives, l)
		points = append(points, l.Points()...)
	}
	for _, s := range append(append([]RecordedStep{}, r.Steps...), r.Faults...) {
		points = append(points, s.From, s.To)
	}
	c.Axis = NewAxis(0, r.Seconds, points, float64(c.plot), sketchCutWidth)
	answered, lost := r.Requests.Totals()
	c.row(cleanCells(r.Scenario)+": "+r.Outcome+", "+SpanText(r.Seconds), "", nil)
	c.ruler(0)
	c.steps()
	if len(r.Faults) > 0 {
		c.bands("faults", r.Faults)
	}
	if answered+lost > 0 {
		c.histogram("requests", fmt.Sprintf("%d ok, %d lost", answered, lost), r.Requests.Answered, r.Requests.Lost)
	}
	for _, l := range lives {
		c.lane(l, LifeNote(l))
	}
}

// row writes a line of a name, cells and a note.
func (c *canvas) row(name, note string, draw func(sketchRow)) {
	r := blank(c.Width)
	if draw == nil {
		r.text(0, none, cut(name, c.Width, c.chars.ellipsis))
	} else {
		r.text(0, none, cut(name, c.names-1, c.chars.ellipsis))
		draw(r[c.names : c.names+c.plot])
		r.text(c.names+c.plot+1, grey, cut(cleanCells(note), c.notes-1, c.chars.ellipsis))
	}
	c.WriteString(r.line(c.Colour) + "\n")
}

// cell is the place of a moment.
func (c *canvas) cell(at float64) int { return min(c.plot-1, int(c.X(at))) }

// lane writes one lane.
func (c *canvas) lane(l Lane, note string) {
	c.row("  "+cleanCells(l.Name), note, func(r sketchRow) {
		for _, s := range l.Segments {
			if s.To < c.From() || s.From > c.To() {
				continue
			}
			look := c.chars.states[s.State]
			if s.Stopping && s.State != LaneOut {
				look.char = c.chars.stopping
			}
			for i := c.cell(s.From); i <= c.cell(s.To); i++ {
				r.put(i, look)
			}
		}
		for _, m := range l.Marks {
			if c.Has(m.At) {
				r.put(c.cell(m.At), c.chars.marks[m.Glyph])
			}
		}
		c.cuts(r)
	})
}

// cuts marks what is cut short.
func (c *canvas) cuts(r sketchRow) {
	for _, cut := range c.Cuts() {
		r.put(int(cut.X+cut.Width/2), cell{char: '/', style: grey, rank: 9})
	}
}

// ruler writes the times.
func (c *canvas) ruler(zero float64) {
	c.row("", "", func(r sketchRow) {
		for _, t := range c.Ticks(zero, sketchTickApart) {
			r.text(int(t.X), grey, t.Label)
		}
	})
	c.row("", "", func(r sketchRow) {
		for i := range r {
			r[i] = cell{char: c.chars.axis, style: grey}
		}
		for _, t := range c.Ticks(zero, sketchTickApart) {
			r.put(min(int(t.X), len(r)-1), cell{char: c.chars.tick, style: grey, rank: 1})
		}
		c.cuts(r)
	})
}

// steps writes their numbers where they begin and there is room.
func (c *canvas) steps() {
	if len(c.run.Steps) == 0 {
		return
	}
	c.row("steps", fmt.Sprintf("%d", len(c.run.Steps)), func(r sketchRow) {
		for i, s := range c.run.Steps {
			at := c.cell(s.From)
			if text := fmt.Sprint(i + 1); c.cell(s.To)-at > len(text) {
				r.text(at, none, text)
			}
			for x := at; x < c.cell(s.To); x++ {
				if r[x].char == ' ' {
					r[x] = cell{char: c.chars.axis, style: grey}
				}
			}
			r.put(c.cell(s.To), cell{char: ' '})
		}
	})
}

// maxBands is how many faults have a line of their own.
const maxBands = 8

// bands writes a line for each thing that lasted. When there are many, those that
// follow each other share one.
func (c *canvas) bands(name string, all []RecordedStep) {
	var lines [][]RecordedStep
	for _, s := range all {
		i := slices.IndexFunc(lines, func(l []RecordedStep) bool {
			return len(all) > maxBands && c.cell(l[len(l)-1].To)+1 < c.cell(s.From)
		})
		if i < 0 {
			lines, i = append(lines, nil), len(lines)
		}
		lines[i] = append(lines[i], s)
	}
	for i, l := range lines {
		title, note := "", l[0].About()
		if len(l) > 1 {
			note = fmt.Sprintf("%d of %d", len(l), len(all))
		}
		if i == 0 {
			title = name
		}
		c.row(title, note, func(r sketchRow) {
			for _, s := range l {
				for x := c.cell(s.From); x <= c.cell(s.To); x++ {
					r.put(x, cell{char: c.chars.band, style: amber})
				}
			}
			c.cuts(r)
		})
	}
}

// histogram writes how many requests ended when. A cell in which one was lost says so.
func (c *canvas) histogram(name, note string, answered, lost []int) {
	sum, bad := make([]float64, c.plot), make([]int, c.plot)
	width := c.run.Requests.BucketSeconds
	for i := range answered {
		at := (float64(i) + 0.5) * width
		if !c.Has(at) {
			continue
		}
		sum[c.cell(at)] += float64(answered[i])
		if i < len(lost) {
			bad[c.cell(at)] += lost[i]
		}
	}
	peak := 1.0
	for _, n := range sum {
		peak = max(peak, n)
	}
	c.row(name, note, func(r sketchRow) {
		for i := range sum {
			if sum[i] > 0 {
				level := min(len(c.chars.levels)-1, int(sum[i]/peak*float64(len(c.chars.levels))))
				r.put(i, cell{char: c.chars.levels[level]})
			}
			if bad[i] > 0 {
				r.put(i, cell{char: 'X', style: red, rank: 1})
			}
		}
	})
}
