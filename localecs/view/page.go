package view

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// style is the style sheet and the SVG patterns that it refers to. The colours are those
// of Okabe and Ito, which are distinct in every kind of colour vision; each state also has
// its own pattern or height, for paper and greyscale.
//
//go:embed style.html
var style string

// page builds an HTML page.
type page struct {
	strings.Builder
	run *RecordedRun
}

// WriteHTML writes a page that shows the run: one file without scripts that loads
// nothing else. The error is the writer's.
func WriteHTML(w io.Writer, run RecordedRun) error {
	p := &page{run: &run}
	lanes := make([][]Lane, len(run.Tasks))
	lives := make([]Lane, len(run.Tasks))
	for i, t := range run.Tasks {
		lanes[i] = LanesOf(t, run.Seconds)
		lives[i] = LifeLane(t, lanes[i], run.Seconds)
	}
	p.head()
	p.addf("<section id=\"run\"><h2>The run</h2>\n")
	p.addf("%s%s", overview(&run, lives, wideWidth).SVG("wide", "Timeline of the run "+run.Scenario),
		overview(&run, lives, narrowWidth).SVG("narrow", "Timeline of the run "+run.Scenario))
	p.steps("Steps", run.Steps)
	p.steps("Faults", run.Faults)
	p.steps("Traffic", run.Phases)
	p.events("All other events", run.Events)
	p.requests()
	p.addf("</section>\n")
	p.legend()
	for i, t := range run.Tasks {
		p.task(i, t, lives[i], lanes[i])
	}
	p.addf("</main></body></html>\n")
	_, err := io.WriteString(w, p.String())
	return err
}

// addf adds HTML.
func (p *page) addf(format string, args ...any) { fmt.Fprintf(p, format, args...) }

func (p *page) head() {
	r := p.run
	p.addf("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><meta name=\"viewport\" " +
		"content=\"width=device-width, initial-scale=1\"/>\n")
	p.addf("<meta name=\"color-scheme\" content=\"light dark\"/><title>%s: %s</title>\n%s<main>\n", escape(r.Scenario),
		escape(r.Outcome), style)
	p.addf("<header><h1>%s <span class=\"outcome %s\">%s</span></h1>\n<p class=\"facts\">", escape(r.Scenario),
		escape(strings.ToLower(r.Outcome)), escape(r.Outcome))
	facts := []string{SpanText(r.Seconds), count(len(r.Tasks), "task")}
	if answered, lost := r.Requests.between(0, math.Inf(1)); answered+lost > 0 {
		facts = append(facts, fmt.Sprintf("%d requests answered, %d lost", answered, lost))
	}
	if len(r.Faults) > 0 {
		facts = append(facts, count(len(r.Faults), "fault"))
	}
	if r.StopOrder != "" {
		facts = append(facts, "stop order "+r.StopOrder)
	}
	if r.Seed != 0 {
		facts = append(facts, fmt.Sprintf("seed %d", r.Seed))
	}
	facts = append(facts, "started "+r.Started.UTC().Format(time.RFC3339))
	for i, f := range facts {
		if i > 0 {
			p.addf(" · ")
		}
		p.addf("<span>%s</span>", escape(f))
	}
	p.addf("</p>\n")
	if len(r.Failures) > 0 {
		p.addf("<ul class=\"failures\">")
		for _, f := range r.Failures {
			p.addf("<li>%s</li>", escape(f))
		}
		p.addf("</ul>\n")
	}
	p.addf("<nav><a href=\"#run\">The run</a>")
	for i, t := range r.Tasks {
		p.addf(" <a href=\"#task-%d\">%s</a>", i+1, escape(t.Name))
	}
	p.addf("</nav></header>\n")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// task shows a task: its start and its stop side by side, and all its events.
func (p *page) task(i int, t RecordedTask, life Lane, lanes []Lane) {
	end := p.run.Seconds
	start, began := StartPhase(t, lanes, end)
	stop, stopped := StopPhase(t, lanes, end)
	p.addf("<section class=\"task\" id=\"task-%d\"><h2>%s</h2>\n<p class=\"facts\">", i+1, escape(t.Name))
	for _, fact := range []string{t.ID, t.Address, taskEnding(life)} {
		if fact != "" {
			p.addf("<span>%s</span> ", escape(fact))
		}
	}
	p.addf("</p>\n<div class=\"phases\">\n")
	if began {
		p.phase(t, "Start", start, drawPhase(p.run, t, lanes, start, StartNote, false))
	} else {
		p.addf("<p>No container of it ever ran.</p>\n")
	}
	if stopped {
		p.phase(t, "Stop", stop, drawPhase(p.run, t, lanes, stop, StopNote, true))
	}
	p.addf("</div>\n")
	whole := Phase{From: start.From, To: end, Zero: start.Zero}
	stopFrom := end + 1
	if stopped {
		whole.To, stopFrom = stop.To, stop.From
	}
	if began && happened(t, start.To, stopFrom) {
		d := drawPhase(p.run, t, lanes, whole, func(Phase, Lane) string { return "" }, true)
		p.addf("<figure class=\"life\"><figcaption>From start to stop <small>seconds since its "+
			"T0</small></figcaption>\n%s</figure>\n", d.SVG("phase", "Life of "+t.Name))
	}
	p.events("All "+fmt.Sprint(len(t.Events))+" events of "+t.Name, t.Events)
	p.addf("</section>\n")
}

// taskEnding returns the reason that ECS gives for the end of a task, by its lane.
func taskEnding(life Lane) string {
	if life.Ended < 0 {
		return "not stopped"
	}
	return "STOPPED " + life.Exit
}

// phase shows a diagram, and its moments and durations as text.
func (p *page) phase(t RecordedTask, what string, ph Phase, d *diagram) {
	p.addf("<figure><figcaption>%s <small>T0 is %.2f s into the run</small></figcaption>\n", what, ph.Zero)
	p.addf("%s<dl>", d.SVG("phase", what+" of "+t.Name))
	for _, m := range ph.Moments {
		name := cmp.Or(m.Name, "·")
		p.addf("<div><dt>%s</dt><dd>%s <b>%s</b></dd></div>", escape(name), escape(m.Text),
			escape(SpanText(m.At-ph.Zero)))
	}
	p.addf("</dl>\n")
	if len(ph.Facts) > 0 {
		p.addf("<p class=\"durations\">")
		for _, f := range ph.Facts {
			p.addf("<span>%s <b>%s</b></span> ", escape(f.Text), escape(SpanText(f.Seconds)))
		}
		p.addf("</p>\n")
	}
	p.addf("</figure>\n")
}

// happened reports whether a diagram of that time shows an event.
func happened(t RecordedTask, from, to float64) bool {
	drawn := []Kind{KindHealth, KindCheck, KindInTraffic, KindRestart, KindSignal, KindKill, KindToken}
	return slices.ContainsFunc(t.Events, func(e RecordedEvent) bool {
		return e.At > from && e.At < to && (slices.Contains(drawn, e.Kind) || e.Kind == KindStatus && e.Container != "")
	})
}

// table adds a collapsed table. The cells of the first n columns are numbers.
func (p *page) table(title string, numbers int, columns []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	p.addf("<details><summary>%s</summary><table><thead><tr>", escape(title))
	for _, c := range columns {
		p.addf("<th scope=\"col\">%s</th>", escape(c))
	}
	p.addf("</tr></thead><tbody>\n")
	for _, row := range rows {
		p.addf("<tr>")
		for i, c := range row {
			class := ""
			if i < numbers {
				class = " class=\"number\""
			}
			p.addf("<td%s>%s</td>", class, escape(c))
		}
		p.addf("</tr>\n")
	}
	p.addf("</tbody></table></details>\n")
}

func (p *page) steps(title string, all []RecordedStep) {
	var rows [][]string
	for i, s := range all {
		rows = append(rows, []string{fmt.Sprint(i + 1), millis(s.From), millis(s.To), millis(s.To - s.From), s.Task,
			s.Text, s.Error})
	}
	p.table(fmt.Sprintf("%s (%d)", title, len(all)), 4,
		[]string{"#", "from s", "to s", "took s", "task", "what", "error"}, rows)
}

// millis formats seconds to the millisecond.
func millis(at float64) string { return fmt.Sprintf("%.3f", at) }

func (p *page) events(title string, all []RecordedEvent) {
	var rows [][]string
	for _, e := range all {
		what := e.Container
		switch {
		case e.Check != "":
			what = e.Check + " (" + e.Service + ")"
		case e.Method != "":
			what = e.Method + " " + e.Accessor
		case e.Service != "":
			what = e.Service
		}
		rows = append(rows, []string{millis(e.At), string(e.Kind), what, e.Status, e.Detail})
	}
	p.table(title, 1, []string{"s", "kind", "container, check or token", "status", "detail"}, rows)
}

// requests shows the requests of each second.
func (p *page) requests() {
	r := p.run.Requests
	each := max(1, int(1/max(r.BucketSeconds, 1e-9)+0.5))
	var rows [][]string
	for i := 0; i < len(r.Answered); i += each {
		answered, lost, slowest := 0, 0, 0
		for j := i; j < min(i+each, len(r.Answered)); j++ {
			answered, lost, slowest = answered+r.Answered[j], lost+r.Lost[j], max(slowest, r.SlowestMS[j])
		}
		if answered+lost > 0 {
			rows = append(rows, []string{millis(float64(i) * r.BucketSeconds),
				millis(float64(i+each) * r.BucketSeconds), fmt.Sprint(answered), fmt.Sprint(lost), fmt.Sprint(slowest)})
		}
	}
	p.table("Requests by second", 5, []string{"from s", "to s", "answered", "lost", "slowest ms"}, rows)
}

// legend explains every bar and mark.
func (p *page) legend() {
	p.addf("<section class=\"legend\"><h2>Legend</h2><ul>\n")
	key := func(text string, draw func(*Sheet)) {
		s := NewSheet(38)
		draw(s)
		p.addf("<li>%s%s</li>\n", s.SVG("key", text), escape(text))
	}
	for _, bar := range []struct {
		class  string
		height float64
		text   string
	}{
		{string(LaneWaiting), 3, "image is there, waits to start"},
		{string(LaneUnknown), barHeight, "runs, health UNKNOWN; a task that starts"},
		{string(LaneUp), barHeight, "runs, has no health check"},
		{string(LaneHealthy), barHeight, "HEALTHY, passing, in traffic"},
		{string(LaneWarning), barHeight, "a check warns"},
		{string(LaneUnhealthy), barHeight, "UNHEALTHY, critical"},
		{string(LaneOut), 3, "task runs, Consul sends it nothing"},
		{string(LaneHealthy), barHeight / 2, "half as high: after TERM"},
		{string(LaneHeld), barHeight / 2, "Consul token, login to logout"},
		{"answered", barHeight, "requests answered"},
		{"lost", barHeight, "requests lost"},
		{"step", barHeight, "step, number in the table"},
		{"fault", barHeight, "fault"},
		{"cut", 16, "// nothing changed, cut short"},
	} {
		key(bar.text, func(s *Sheet) { s.Rect(3, 8-bar.height/2, 32, bar.height, "s "+bar.class, "") })
	}
	for _, m := range []struct {
		glyph Glyph
		text  string
	}{
		{GlyphTerm, "TERM: asked to stop"}, {GlyphKill, "KILL"}, {GlyphAgain, "restart policy started it again"},
		{GlyphExit, "ended, exit 0"}, {GlyphBadExit, "ended otherwise, or never ran"},
		{GlyphSick, "a container turned UNHEALTHY"},
	} {
		key(m.text, func(s *Sheet) {
			s.Path(19, 10, shape(m.glyph), "m "+string(m.glyph), "")
			s.Rect(0, 19, 0, 0, "none", "")
		})
	}
	p.addf("</ul><p>All times are measured; hover over a mark for its exact time. Logouts are observed about 0.2 s " +
		"late. An answer counts for a task when it has the task's ID, address or host name in it.</p></section>\n")
}
