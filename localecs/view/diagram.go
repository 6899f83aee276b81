package view

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// The measures of a diagram, in pixels. Names stand left of the lanes, notes right of
// them. A page has the diagram of the run in both widths and shows the one that fits;
// those of a task's start and stop stand side by side.
const (
	wideWidth   = 1380
	narrowWidth = 720
	phaseWidth  = 680

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
	// odd reports whether the next lane has a background.
	odd bool
}

func newDiagram(width, from, to float64, points []float64) *diagram {
	return &diagram{Sheet: NewSheet(width), Axis: NewAxis(from, to, points, width-namesWidth-notesWidth, cutWidth)}
}

// overview draws the whole run: steps, faults, requests, and a lane for each task.
func overview(run *RecordedRun, lives []Lane, width float64) *diagram {
	d := newDiagram(width, 0, run.Seconds, points(run, lives, run.Steps, run.Faults, run.Phases))
	d.y = 4
	d.bands("steps", "step", run.Steps, d.inOneRow, func(i int, s RecordedStep) string {
		return fmt.Sprintf("%d %s", i+1, s.Text)
	})
	d.bands("faults", "fault", run.Faults, d.stacked, func(_ int, s RecordedStep) string { return s.About() })
	d.bands("traffic", "phaseband", run.Phases, d.inOneRow, stepText)
	if r := run.Requests; requested(r, 0, math.Inf(1)) {
		d.histogram("requests", requestsNote(r, 0, run.Seconds), r)
	}
	for _, l := range lives {
		d.lane(l, LifeNote(l))
	}
	d.ruler(0)
	return d
}

// drawPhase draws a part of a task's life. note returns the text beside a lane.
func drawPhase(run *RecordedRun, t RecordedTask, lanes []Lane, p Phase, note func(Phase, Lane) string,
	traffic bool) *diagram {
	all := points(run, lanes, run.Faults)
	for _, m := range p.Moments {
		all = append(all, m.At)
	}
	d := newDiagram(phaseWidth, p.From, p.To, all)
	lines := d.moments(p)
	var faults []RecordedStep
	for _, f := range run.Faults {
		if (f.Task == "" || f.Task == t.Name) && f.From <= p.To && f.To >= p.From {
			faults = append(faults, f)
		}
	}
	d.bands("faults", "fault", faults, d.stacked, stepText)
	for _, l := range lanes {
		if l.In(p) {
			d.lane(l, note(p, l))
		}
	}
	r := run.Requests
	if traffic && servedIn(r, t, p) {
		d.histogram("answers of this task", lastServed(t, p),
			RecordedRequests{BucketSeconds: r.BucketSeconds, Answered: t.Served})
	}
	if traffic && requested(r, p.From, p.To) {
		d.histogram("all requests", requestsNote(r, p.From, p.To), r)
	}
	lines()
	d.ruler(p.Zero)
	return d
}

func stepText(_ int, s RecordedStep) string { return s.Text }

// points returns when something happens in lanes and in lists of steps, or a request is
// lost. Answers are left out: they go on while nothing else happens.
func points(run *RecordedRun, lanes []Lane, lists ...[]RecordedStep) []float64 {
	var all []float64
	for _, l := range lanes {
		all = append(all, l.points()...)
	}
	for _, s := range slices.Concat(lists...) {
		all = append(all, s.From, s.To)
	}
	for i, lost := range run.Requests.Lost {
		if lost > 0 {
			all = append(all, float64(i)*run.Requests.BucketSeconds, float64(i+1)*run.Requests.BucketSeconds)
		}
	}
	return all
}

// at returns the place of a moment on the sheet.
func (d *diagram) at(moment float64) float64 { return namesWidth + d.X(moment) }

// right returns where the lanes end.
func (d *diagram) right() float64 { return d.width - notesWidth }

// background draws the background of a lane, with its name and its note.
func (d *diagram) background(height float64, class, name, note string) {
	if d.odd {
		d.Rect(0, d.y, d.width, height, "background", "")
	}
	d.odd = !d.odd
	base := d.y + height/2 + 4
	size := normal
	if class != string(LaneContainer) && class != "" {
		size = small
	}
	d.Fitting(6, base, namesWidth-12, size, "name "+class, name)
	d.Fitting(d.right()+8, base, notesWidth-10, small, "note", note)
}

// lane draws one lane.
func (d *diagram) lane(l Lane, note string) {
	d.background(laneHeight, string(l.Kind), l.Name, note)
	for _, s := range l.Segments {
		if s.To >= d.from && s.From <= d.to {
			d.segment(s)
		}
	}
	for _, m := range l.Marks {
		if d.Has(m.At) {
			d.Path(d.at(m.At), d.y+laneHeight/2, shape(m.Glyph), "m "+string(m.Glyph), m.Title)
		}
	}
	d.y += laneHeight
}

// segment draws a bar: half as high for what stops, a line for what waits.
func (d *diagram) segment(s Segment) {
	height := float64(barHeight)
	switch {
	case s.State == LaneWaiting || s.State == LaneOut:
		height = 3
	case s.Stopping || s.State == LaneHeld:
		height = barHeight / 2
	}
	x1, x2 := d.at(s.From), d.at(s.To)
	d.Rect(x1, d.y+(laneHeight-height)/2, x2-x1, height, "s "+string(s.State), s.Title)
}

// shape returns the path of a mark, from the middle of its lane.
func shape(g Glyph) string {
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

// moments reserves rows for the labels of the moments above the lanes; draw draws them,
// and a line from each down through the lanes. Labels that are close go down from left
// to right, so that no line crosses one.
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
			x, y := labels[i].from, top+labels[i].row*rowHeight
			title := fmt.Sprintf("%s %s: %.3f s after T0, %.3f s into the run", m.Name, m.Text, m.At-p.Zero, m.At)
			d.Line(x, y+2, x, d.y, "moment", m.Text)
			d.Text(x+3, y+11, AnchorStart, tiny, "momentlabel", momentLabel(p, m), title)
		}
	}
}

// momentLabel returns a moment's name or its shortened text, and its time.
func momentLabel(p Phase, m Moment) string {
	name := m.Name
	if name == "" {
		name = strings.Replace(strings.TrimPrefix(m.Text, "the "), "application", "app", 1)
		name = strings.Replace(name, " is ", " ", 1)
	}
	if m.At == p.Zero {
		return name
	}
	return name + " " + SpanText(m.At-p.Zero)
}

// ruler draws cuts over the lanes, and the axis below them.
func (d *diagram) ruler(zero float64) {
	base := d.y
	d.Line(namesWidth, base, d.right(), base, "axis", "")
	for _, c := range d.Cuts() {
		x := namesWidth + c.X
		d.Rect(x, 0, c.Width, base, "cut",
			fmt.Sprintf("%s in which nothing changed are cut short", SpanText(c.Seconds)))
		d.Text(x+c.Width/2, base+27, AnchorMiddle, tiny, "tick cutlabel", "// "+SpanText(c.Seconds), "cut short")
	}
	for _, t := range d.Ticks(zero, tickApart) {
		x := namesWidth + t.X
		d.Line(x, base, x, base+4, "axis", "")
		d.Text(x, base+14, AnchorMiddle, tiny, "tick", t.Label, "")
	}
	d.y += 32
}

// place is the row of a band, and the room for its text.
type place struct {
	row  int
	room float64
}

// Bands with a text beside them take more rows, at most maxRows.
const (
	maxRows  = 16
	maxLabel = 170
)

// stacked puts bands that overlap into different rows. Each has room for its text,
// beside the band too, unless that takes too many rows.
func (d *diagram) stacked(all []RecordedStep, texts []string) (places []place, rows int) {
	if places, rows = d.packed(all, func(i int) float64 {
		return min(maxLabel, tiny.Width(texts[i])) + 8
	}); rows <= maxRows {
		return places, rows
	}
	return d.packed(all, func(int) float64 { return 0 })
}

func (d *diagram) packed(all []RecordedStep, label func(int) float64) (places []place, rows int) {
	var ends []float64
	for i, b := range all {
		x1, x2 := d.at(b.From), max(d.at(b.To), d.at(b.From)+3)
		wide := min(label(i), d.right()-x1)
		row := slices.IndexFunc(ends, func(end float64) bool { return end <= x1 })
		if row < 0 {
			row, ends = len(ends), append(ends, 0)
		}
		ends[row] = max(x2+1, x1+wide)
		places = append(places, place{row, max(x2-x1, wide) - 6})
	}
	return places, len(ends)
}

// inOneRow places bands that follow each other.
func (d *diagram) inOneRow(all []RecordedStep, _ []string) (places []place, rows int) {
	for _, b := range all {
		places = append(places, place{room: d.at(b.To) - d.at(b.From) - 4})
	}
	return places, 1
}

// bands draws steps as bands, with their text where there is room.
func (d *diagram) bands(name, class string, all []RecordedStep, arrange func([]RecordedStep, []string) ([]place, int),
	text func(int, RecordedStep) string) {
	if len(all) == 0 {
		return
	}
	texts := make([]string, len(all))
	for i, b := range all {
		texts[i] = text(i, b)
	}
	places, rows := arrange(all, texts)
	height := float64(rows*rowHeight + 4)
	d.background(height, "", name, fmt.Sprint(len(all)))
	for i, b := range all {
		x1, x2, y := d.at(b.From), d.at(b.To), d.y+2+float64(places[i].row*rowHeight)
		state := class
		if b.Error != "" {
			state += " error"
		}
		d.Rect(x1, y, max(3, x2-x1), rowHeight-2, "s "+state, bandTitle(b))
		label := tiny.cut(texts[i], places[i].room)
		if label == "" { // a number may have room
			label, _, _ = strings.Cut(texts[i], " ")
			label = tiny.cut(label, places[i].room+2)
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
