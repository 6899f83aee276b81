package view

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// page is being written.
type page struct {
	strings.Builder
	run *RecordedRun
}

// HTML writes a page that shows the run: one file without scripts, and without
// anything that a browser would have to fetch. The error is the writer's.
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
	p.addf("%s%s", overview(&run, lives, wideWidth).SVG("wide", "Timeline of the run "+run.Scenario), overview(&run, lives, narrowWidth).SVG("narrow", "Timeline of the run "+run.Scenario))
	p.steps("Steps", run.Steps)
	p.steps("Faults", run.Faults)
	p.steps("Traffic", run.Phases)
	p.events("Everything else that was seen", run.Events)
	p.requests()
	p.addf("</section>\n")
	p.legend()
	for i, t := range run.Tasks {
		p.task(i, t, lanes[i])
	}
	p.addf("</main></body></html>\n")
	_, err := io.WriteString(w, p.String())
	return err
}

// addf adds what is HTML already; esc makes it of what is not.
func (p *page) addf(format string, args ...any) { fmt.Fprintf(p, format, args...) }

func esc(text string) string { return Escape(text) }

func (p *page) head() {
	r := p.run
	p.addf("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n")
	p.addf("<meta name=\"color-scheme\" content=\"light dark\"/><title>%s: %s</title>\n<style>%s</style></head>\n<body>%s<main>\n", esc(r.Scenario), esc(r.Outcome), pageStyle, patterns)
	p.addf("<header><h1>%s <span class=\"outcome %s\">%s</span></h1>\n<p class=\"facts\">", esc(r.Scenario), esc(strings.ToLower(r.Outcome)), esc(r.Outcome))
	answered, lost := r.Requests.Totals()
	facts := []string{SpanText(r.Seconds), count(len(r.Tasks), "task")}
	if answered+lost > 0 {
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
	facts = append(facts, "begun "+r.Begun.UTC().Format(time.RFC3339))
	for i, f := range facts {
		if i > 0 {
			p.addf(" · ")
		}
		p.addf("<span>%s</span>", esc(f))
	}
	p.addf("</p>\n")
	if len(r.Failures) > 0 {
		p.addf("<ul class=\"failures\">")
		for _, f := range r.Failures {
			p.addf("<li>%s</li>", esc(f))
		}
		p.addf("</ul>\n")
	}
	p.addf("<nav><a href=\"#run\">The run</a>")
	for i, t := range r.Tasks {
		p.addf(" <a href=\"#task-%d\">%s</a>", i+1, esc(t.Name))
	}
	p.addf("</nav></header>\n")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// task shows one: its start and its stop side by side, and all its events.
func (p *page) task(i int, t RecordedTask, lanes []Lane) {
	p.addf("<section class=\"task\" id=\"task-%d\"><h2>%s</h2>\n<p class=\"facts\">", i+1, esc(t.Name))
	for _, fact := range []string{t.ID, t.Address, taskEnding(t)} {
		if fact != "" {
			p.addf("<span>%s</span> ", esc(fact))
		}
	}
	p.addf("</p>\n<div class=\"phases\">\n")
	if start, began := StartPhase(t, lanes, p.run.Seconds); began {
		p.phase(t, "Start", start, phase(p.run, t, lanes, start, StartNote(start), false))
	} else {
		p.addf("<p>No container of it ever ran.</p>\n")
	}
	if stop, stopped := StopPhase(t, lanes, p.run.Seconds); stopped {
		p.phase(t, "Stop", stop, phase(p.run, t, lanes, stop, StopNote(stop), true))
	}
	p.addf("</div>\n")
	p.between(t, lanes)
	p.events("All "+fmt.Sprint(len(t.Events))+" events of "+t.Name, t.Events)
	p.addf("</section>\n")
}

// ending is what ECS says of the end.
func taskEnding(t RecordedTask) string {
	for _, e := range t.Events {
		if e.Kind == RecordedStatus && e.Container == "" && e.Status == "STOPPED" {
			return "STOPPED " + e.Detail
		}
	}
	return "not stopped"
}

// phase shows a diagram with its moments in words.
func (p *page) phase(t RecordedTask, what string, ph Phase, d *diagram) {
	p.addf("<figure><figcaption>%s <small>T0 is %.2f s into the run</small></figcaption>\n", what, ph.Zero)
	p.addf("%s<dl>", d.SVG("phase", what+" of "+t.Name))
	for _, m := range ph.Moments {
		name := m.Name
		if name == "" {
			name = "·"
		}
		p.addf("<div><dt>%s</dt><dd>%s <b>%s</b></dd></div>", esc(name), esc(m.Text), esc(SpanText(m.At-ph.Zero)))
	}
	p.addf("</dl>\n")
	if len(ph.Facts) > 0 {
		p.addf("<p class=\"durations\">")
		for _, f := range ph.Facts {
			p.addf("<span>%s <b>%s</b></span> ", esc(f.Text), esc(SpanText(f.Seconds)))
		}
		p.addf("</p>\n")
	}
	p.addf("</figure>\n")
}

// between shows a task's whole life where something happened between its start and
// its stop that neither diagram has.
func (p *page) between(t RecordedTask, lanes []Lane) {
	start, began := StartPhase(t, lanes, p.run.Seconds)
	stop, stopped := StopPhase(t, lanes, p.run.Seconds)
	if !stopped {
		stop.From = p.run.Seconds + 1
	}
	if !began || !happened(t, start.To, stop.From) {
		return
	}
	whole := Phase{From: start.From, To: p.run.Seconds, Zero: start.Zero}
	if stopped {
		whole.To = stop.To
	}
	d := phase(p.run, t, lanes, whole, func(Lane) string { return "" }, true)
	p.addf("<figure class=\"life\"><figcaption>From start to stop <small>seconds since its T0</small></figcaption>\n%s</figure>\n", d.SVG("phase", "Life of "+t.Name))
}

func happened(t RecordedTask, from, to float64) bool {
	for _, e := range t.Events {
		if e.At > from && e.At < to && drawn(e) {
			return true
		}
	}
	return false
}

// drawn reports whether a diagram shows the event; what a step has asked is in the table.
func drawn(e RecordedEvent) bool {
	switch e.Kind {
	case RecordedHealth, RecordedCheck, RecordedInTraffic, RecordedRestart, RecordedSignal, RecordedKill, RecordedToken:
		return true
	case RecordedStatus:
		return e.Container != ""
	}
	return false
}
