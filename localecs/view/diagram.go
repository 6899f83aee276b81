package view

import (
	"fmt"
	"math"
	"strings"
)

// What a diagram is made of, in pixels. Names stand left of the lanes, what is worth
// knowing of a lane right of it.
const (
	namesWidth = 182
	notesWidth = 152
	laneHeight = 20
	barHeight  = 12
	rowHeight  = 15 // of a band with text
	histHeight = 30
	cutWidth   = 26
	tickApart  = 58

	normal FontSize = 12
	small  FontSize = 11
	tiny   FontSize = 10
)

// diagram is a sheet with an axis. Lanes are added from above.
type diagram struct {
	*Sheet
	Axis
	y float64 // where the next lane begins
	// odd reports whether the next lane has a ground of its own.
	odd bool
}

func newDiagram(width, from, to float64, points []float64) *diagram {
	return &diagram{Sheet: NewSheet(width), Axis: NewAxis(from, to, points, width-namesWidth-notesWidth, cutWidth)}
}

// at is the place of a moment on the sheet.
func (d *diagram) at(moment float64) float64 { return namesWidth + d.X(moment) }

// right is where the lanes end.
func (d *diagram) right() float64 { return d.Width() - notesWidth }

// ground is what a lane stands on, with its name and its note.
func (d *diagram) ground(height float64, class, name, note, title string) {
	if d.odd {
		d.Rect(0, d.y, d.Width(), height, "ground", "")
	}
	d.odd = !d.odd
	base := d.y + height/2 + 4
	size := normal
	if class != string(SortContainer) && class != "" {
		size = small
	}
	d.Fitting(6, base, namesWidth-12, AnchorStart, size, "name "+class, name, title)
	d.Fitting(d.right()+8, base, notesWidth-10, AnchorStart, small, "note", note, "")
}

// lane draws one lane.
func (d *diagram) lane(l Lane, note string) {
	d.ground(laneHeight, string(l.Sort), l.Name, note, "")
	for _, s := range l.Segments {
		d.segment(s)
	}
	for _, m := range l.Marks {
		if d.Has(m.At) {
			d.mark(m)
		}
	}
	d.y += laneHeight
}

// segment draws what of it is on the axis. What stops is half as high; what waits is a
// line.
func (d *diagram) segment(s Segment) {
	if s.To < d.From() || s.From > d.To() {
		return
	}
	x1, x2 := d.at(s.From), d.at(s.To)
	height := float64(barHeight)
	switch {
	case s.State == LaneWaiting || s.State == LaneOut:
		height = 3
	case s.Stopping || s.State == LaneHeld:
		height = barHeight / 2
	}
	d.Rect(x1, d.y+(laneHeight-height)/2, x2-x1, height, "s "+string(s.State), s.Title)
}

// shapes are the marks, drawn from the middle of their lane.
func shapes(g Glyph) string {
	switch g {
	case GlyphTerm:
		return "m-5,-9 h10 l-5,8 z"
	case GlyphKill:
		return "m-5,-5 l10,10 m0,-10 l-10,10"
	case GlyphAgain:
		return "m0,-6 l6,6 l-6,6 l-6,-6 z"
	case GlyphBadExit:
		return "m-4,-5 h8 v10 h-8 z"
	case GlyphSick:
		return "m0,-7 l6,11 h-12 z"
	}
	return "m0,-8 v16"
}

func (d *diagram) mark(m Mark) {
	d.Path(d.at(m.At), d.y+laneHeight/2, shapes(m.Glyph), "m "+string(m.Glyph), m.Title)
}

// moments draws a line for each, from its label above the lanes down to them. Labels
// go from left to right and, where they are near, down: so no line crosses one.
func (d *diagram) moments(p Phase) (draw func()) {
	type label struct{ from, to, row float64 }
	var labels []label
	rows := 0.0
	for _, m := range p.Moments {
		l := label{from: d.at(m.At)}
		l.to = l.from + 4 + tiny.Width(momentLabel(p, m)) + 4
		for _, other := range labels {
			if other.to > l.from {
				l.row = max(l.row, other.row+1)
			}
		}
		labels = append(labels, l)
		rows = max(rows, l.row+1)
	}
	top := d.y
	d.y += rows*rowHeight + 4
	return func() {
		for i, m := range p.Moments {
			y := top + labels[i].row*rowHeight
			d.Line(labels[i].from, y+2, labels[i].from, d.y, "moment", m.Text)
			d.Text(labels[i].from+3, y+11, AnchorStart, tiny, "momentlabel", momentLabel(p, m), momentTitle(p, m))
		}
	}
}

func momentLabel(p Phase, m Moment) string {
	name := m.Name
	if name == "" {
		name = brief(m.Text)
	}
	if m.At == p.Zero {
		return name
	}
	return name + " " + SpanText(m.At-p.Zero)
}

func momentTitle(p Phase, m Moment) string {
	return fmt.Sprintf("%s %s: %.3f s after T0, %.3f s into the run", m.Name, m.Text, m.At-p.Zero, m.At)
}

// ruler draws cuts over the lanes, and the axis below them.
func (d *diagram) ruler(zero float64) {
	top, base := 0.0, d.y
	d.Line(namesWidth, base, d.right(), base, "axis", "")
	for _, c := range d.Cuts() {
		x := namesWidth + c.X
		d.Rect(x, top, c.Width, base-top, "cut", fmt.Sprintf("%s in which nothing changed are cut short", SpanText(c.Seconds)))
		d.Text(x+c.Width/2, base+27, AnchorMiddle, tiny, "tick cutlabel", "// "+SpanText(c.Seconds), "cut short")
	}
	for _, t := range d.Ticks(zero, tickApart) {
		x := namesWidth + t.X
		d.Line(x, base, x, base+4, "axis", "")
		d.Text(x, base+14, AnchorMiddle, tiny, "tick", t.Label, "")
	}
	d.y += 32
}

// layout says in which row each band is, and how wide its text may be.
type bandLayout struct {
	rows int
	row  []int
	room []float64
}

// What has a text beside it takes more rows, of which there may be so many.
const (
	maxRows  = 16
	maxLabel = 170
)

// stacked puts what lasts at the same time into rows of their own. Where that does not
// take too many, each has room for its text, beside the band too.
func (d *diagram) stacked(all []RecordedStep, text func(int) string) bandLayout {
	with := d.packed(all, func(i int) float64 { return min(maxLabel, tiny.Width(text(i))) + 8 })
	if with.rows <= maxRows {
		return with
	}
	return d.packed(all, func(int) float64 { return 0 })
}

func (d *diagram) packed(all []RecordedStep, label func(int) float64) bandLayout {
	var ends []float64
	l := bandLayout{row: make([]int, len(all)), room: make([]float64, len(all))}
	for i, b := range all {
		x1, x2 := d.at(b.From), max(d.at(b.To), d.at(b.From)+3)
		wide := min(label(i), d.right()-x1)
		l.room[i] = max(x2-x1, wide) - 6
		l.row[i] = len(ends)
		for r, end := range ends {
			if end <= x1 {
				l.row[i] = r
				break
			}
		}
		if l.row[i] == len(ends) {
			ends = append(ends, 0)
		}
		ends[l.row[i]] = max(x2+1, x1+wide)
	}
	l.rows = len(ends)
	return l
}

// inOneRow is for what comes one after the other.
func (d *diagram) inOneRow(all []RecordedStep, _ func(int) string) bandLayout {
	l := bandLayout{rows: 1, row: make([]int, len(all))}
	for _, b := range all {
		l.room = append(l.room, d.at(b.To)-d.at(b.From)-4)
	}
	return l
}

// bands draws what lasts, with its text where there is room.
func (d *diagram) bands(name, class string, all []RecordedStep, place func([]RecordedStep, func(int) string) bandLayout, text func(int) string) {
	l := place(all, text)
	height := float64(l.rows*rowHeight + 4)
	d.ground(height, "", name, fmt.Sprintf("%d", len(all)), "")
	for i, b := range all {
		x1, x2, y := d.at(b.From), d.at(b.To), d.y+2+float64(l.row[i]*rowHeight)
		state := class
		if b.Error != "" {
			state += " error"
		}
		d.Rect(x1, y, max(3, x2-x1), rowHeight-2, "s "+state, bandTitle(b))
		label := tiny.Cut(text(i), l.room[i])
		if label == "" { // a number may have room
			label, _, _ = strings.Cut(text(i), " ")
			label = tiny.Cut(label, l.room[i]+2)
		}
		d.Text(x1+3, y+10.5, AnchorStart, tiny, "bandlabel", label, bandTitle(b))
	}
	d.y += height
}

func bandTitle(b RecordedStep) string {
	text := fmt.Sprintf("%s: %.3f to %.3f s (%s)", b.Text, b.From, b.To, SpanText(b.To-b.From))
	if b.Task != "" {
		text = b.Task + ": " + text
	}
	if b.Error != "" {
		text += ": " + b.Error
	}
	return text
}

// bins are buckets put together until one can be seen.
const binWidth = 3

// histogram draws how many requests ended when: those answered, and on top those lost.
func (d *diagram) histogram(name, note string, width float64, answered, lost, slowest []int) {
	d.ground(histHeight, "traffic", name, note, "")
	bins, peak := d.bins(width, answered, lost, slowest)
	base, room := d.y+histHeight-2, float64(histHeight-5)
	for _, b := range bins {
		title := fmt.Sprintf("%.1f to %.1f s: %d answered", b.from, b.to, b.answered)
		if lost != nil {
			title += fmt.Sprintf(", %d lost", b.lost)
		}
		if slowest != nil {
			title += fmt.Sprintf(", slowest %d ms", b.slowest)
		}
		x1, x2 := d.at(b.from), d.at(b.to)
		good, bad := room*b.rate(b.answered)/peak, room*b.rate(b.lost)/peak
		if b.answered > 0 {
			good = max(good, 2)
			d.Rect(x1, base-good, x2-x1, good, "s answered", title)
		}
		if b.lost > 0 {
			bad = max(bad, 5) // a single one must be seen
			d.Rect(x1, max(d.y, base-good-bad), max(x2-x1, 3), bad, "s lost", title)
		}
	}
	d.y += histHeight
}

// bin is some buckets.
type bin struct {
	from, to                float64
	answered, lost, slowest int
}

func (b bin) rate(count int) float64 { return float64(count) / (b.to - b.from) }

func (d *diagram) bins(width float64, answered, lost, slowest []int) (bins []bin, peak float64) {
	get := func(list []int, i int) int {
		if i < len(list) {
			return list[i]
		}
		return 0
	}
	var b bin
	first := max(0, int(math.Floor(d.From()/width)))
	for i := first; i < len(answered) && float64(i)*width < d.To(); i++ {
		if b.to == 0 {
			b.from = float64(i) * width
		}
		b.to = float64(i+1) * width
		b.answered, b.lost, b.slowest = b.answered+get(answered, i), b.lost+get(lost, i), max(b.slowest, get(slowest, i))
		if d.at(b.to)-d.at(b.from) >= binWidth || i+1 == len(answered) {
			bins = append(bins, b)
			peak = max(peak, b.rate(b.answered)+b.rate(b.lost))
			b = bin{}
		}
	}
	return bins, max(peak, 1e-9)
}
