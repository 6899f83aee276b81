package view

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
	"time"
)

// pageText is the template of the page. The colours are those of Okabe and Ito, which are distinct in every
// kind of colour vision; each state also has its own pattern or height, for paper and greyscale.
//
//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page is what the template shows.
type page struct {
	*RecordedRun
	Facts   []string
	Lanes   []Lane
	Ticks   []float64
	Tables  []table
	Details []details
	seconds float64
	step    float64 // between ticks
}

// details are a task's part below the diagram.
type details struct {
	Name, Facts string
	Tables      []table
}

// table is a table whose first cells are numbers.
type table struct {
	Title   string
	Open    bool
	Numbers int
	Columns []string
	Rows    [][]string
}

// WriteHTML writes a page that shows the run: one file without scripts that loads
// nothing else. The error is the writer's.
func WriteHTML(w io.Writer, run RecordedRun) error {
	p := page{RecordedRun: &run, Facts: facts(run), seconds: max(run.Seconds, 0.01)}
	p.Lanes = append(bands("steps", laneStep, run.Steps, 0, func(i int, s RecordedStep) string {
		return fmt.Sprintf("%d %s", i+1, s.Text)
	}), append(bands("faults", laneFault, run.Faults, p.seconds/8, func(_ int, s RecordedStep) string {
		return s.About()
	}), bands("traffic", lanePhase, run.Phases, 0, func(_ int, s RecordedStep) string { return s.Text })...)...)
	if answered, lost := run.Requests.sum(); answered+lost > 0 {
		p.Lanes = append(p.Lanes, requestLane(run.Requests, fmt.Sprintf("%d ok, %d lost", answered, lost)))
	}
	p.Tables = []table{
		steps("Steps", run.Steps), steps("Faults", run.Faults), steps("Traffic", run.Phases),
		events("All other events", run.Events), requests(run.Requests),
	}
	for _, t := range run.Tasks {
		lanes := LanesOf(t, run.Seconds)
		life := LifeLane(t, lanes, run.Seconds)
		p.Lanes = append(append(p.Lanes, life), lanes...)
		p.Details = append(p.Details, details{t.Name, taskFacts(t, life), []table{
			moments(Moments(t, lanes)), events(fmt.Sprintf("All %d events", len(t.Events)), t.Events),
		}})
	}
	for _, p.step = range []float64{0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 36000} {
		if p.seconds/p.step <= 15 {
			break
		}
	}
	for at := 0.0; at <= p.seconds && len(p.Ticks) < 1000; at += p.step {
		p.Ticks = append(p.Ticks, at)
	}
	var b strings.Builder
	if err := pageTemplate.Execute(&b, p); err != nil {
		return err
	}
	_, err := io.WriteString(w, strings.Map(printable, strings.ToValidUTF8(b.String(), "?")))
	return err
}

// printable replaces what neither XML allows nor a terminal should get.
func printable(r rune) rune {
	if r < ' ' && r != '\t' && r != '\n' || r == 0x7f || r == 0xfffe || r == 0xffff {
		return '?'
	}
	return r
}

// OutcomeClass returns the outcome as a class of the style sheet.
func (p page) OutcomeClass() string { return strings.ToLower(p.Outcome) }

// At returns the place of a moment, in percent of the width.
func (p page) At(at float64) string {
	return fmt.Sprintf("%.3f", 100*min(max(at/p.seconds, 0), 1))
}

// Width returns the width of a time, in percent.
func (p page) Width(from, to float64) string {
	return p.At(min(max(to, 0), p.seconds) - min(max(from, 0), p.seconds))
}

// Tick returns the label of a tick.
func (p page) Tick(at float64) string {
	if p.step >= 60 {
		return fmt.Sprintf("%d min", int(math.Round(at/60)))
	}
	return fmt.Sprintf("%.4g s", at)
}

func facts(r RecordedRun) []string {
	all := []string{spanText(r.Seconds), count(len(r.Tasks), "task")}
	if answered, lost := r.Requests.sum(); answered+lost > 0 {
		all = append(all, fmt.Sprintf("%d requests answered, %d lost", answered, lost))
	}
	if len(r.Faults) > 0 {
		all = append(all, count(len(r.Faults), "fault"))
	}
	if r.StopOrder != "" {
		all = append(all, "stop order "+r.StopOrder)
	}
	if r.Seed != 0 {
		all = append(all, fmt.Sprintf("seed %d", r.Seed))
	}
	return append(all, "started "+r.Started.UTC().Format(time.RFC3339))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// taskFacts returns a task's ID and address, and the reason that ECS gives for its end.
func taskFacts(t RecordedTask, life Lane) string {
	end := "not stopped"
	if life.Ended >= 0 {
		end = "STOPPED " + life.Exit
	}
	return strings.Join(strings.Fields(t.ID+" "+t.Address+" "+end), " ")
}

// bands returns lanes of steps. Each has room for its label for so many seconds, so those that are nearer are in
// another lane.
func bands(name string, state LaneState, all []RecordedStep, room float64,
	label func(int, RecordedStep) string) []Lane {
	var lanes []Lane
	for i, b := range all {
		s := Segment{
			From: b.From, To: b.To, Until: max(b.To, b.From+room), State: state, Failed: b.Error != "",
			Label: label(i, b),
			Title: fmt.Sprintf("%s: %.3f to %.3f s (%s) %s", b.About(), b.From, b.To, spanText(b.To-b.From), b.Error),
		}
		row := 0
		for row < len(lanes) && lanes[row].Segments[len(lanes[row].Segments)-1].Until > b.From+1e-6 {
			row++
		}
		if row == len(lanes) {
			lanes = append(lanes, Lane{Kind: LaneBand})
		}
		lanes[row].Segments = append(lanes[row].Segments, s)
	}
	if len(lanes) > 0 {
		lanes[0].Name, lanes[0].Annotation = name, fmt.Sprint(len(all))
	}
	return lanes
}

// requestLane shows when requests were answered, and when some were lost.
func requestLane(r RecordedRequests, annotation string) Lane {
	l := Lane{Kind: LaneBand, Name: "requests", Annotation: annotation}
	var answered, lost int // of the last segment
	for i := range r.Answered {
		state := laneAnswered
		if r.Lost[i] > 0 {
			state = laneLost
		} else if r.Answered[i] == 0 {
			continue
		}
		from, n := float64(i)*r.BucketSeconds, len(l.Segments)
		if n == 0 || l.Segments[n-1].State != state || l.Segments[n-1].To < from-r.BucketSeconds/2 {
			l.Segments, n = append(l.Segments, Segment{From: from, State: state}), n+1
			answered, lost = 0, 0
		}
		s := &l.Segments[n-1]
		answered, lost, s.To = answered+r.Answered[i], lost+r.Lost[i], from+r.BucketSeconds
		s.Title = fmt.Sprintf("%.1f to %.1f s: %d answered, %d lost", s.From, s.To, answered, lost)
	}
	return l
}

func moments(all []Moment) table {
	t := table{Title: "Start and stop", Open: true, Numbers: 2,
		Columns: []string{"s", "s since the first container runs, or it is asked to stop", "what"}}
	for _, m := range all {
		t.Rows = append(t.Rows, []string{millis(m.At), millis(m.Since), m.Text})
	}
	return t
}

func steps(title string, all []RecordedStep) table {
	t := table{Title: fmt.Sprintf("%s (%d)", title, len(all)), Numbers: 4,
		Columns: []string{"#", "from s", "to s", "took s", "task", "what", "error"}}
	for i, s := range all {
		t.Rows = append(t.Rows, []string{fmt.Sprint(i + 1), millis(s.From), millis(s.To), millis(s.To - s.From), s.Task,
			s.Text, s.Error})
	}
	return t
}

// millis formats seconds to the millisecond.
func millis(at float64) string { return fmt.Sprintf("%.3f", at) }

func events(title string, all []RecordedEvent) table {
	t := table{Title: title, Numbers: 1,
		Columns: []string{"s", "kind", "container, check or token", "status", "detail"}}
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
		t.Rows = append(t.Rows, []string{millis(e.At), string(e.Kind), what, e.Status, e.Detail})
	}
	return t
}

// requests shows the requests of each second.
func requests(r RecordedRequests) table {
	t := table{Title: "Requests by second", Numbers: 5,
		Columns: []string{"from s", "to s", "answered", "lost", "slowest ms"}}
	each := max(1, int(1/max(r.BucketSeconds, 1e-9)+0.5))
	for i := 0; i < len(r.Answered); i += each {
		answered, lost, slowest := 0, 0, 0
		for j := i; j < min(i+each, len(r.Answered)); j++ {
			answered, lost, slowest = answered+r.Answered[j], lost+r.Lost[j], max(slowest, r.SlowestMS[j])
		}
		if answered+lost > 0 {
			t.Rows = append(t.Rows, []string{millis(float64(i) * r.BucketSeconds),
				millis(float64(i+each) * r.BucketSeconds), fmt.Sprint(answered), fmt.Sprint(lost), fmt.Sprint(slowest)})
		}
	}
	return t
}

// spanText formats a duration, the shorter the more exactly.
func spanText(seconds float64) string {
	switch {
	case seconds < 9.995:
		return fmt.Sprintf("%.2f s", max(seconds, 0))
	case seconds < 119.95:
		return fmt.Sprintf("%.1f s", seconds)
	}
	return fmt.Sprintf("%d min %02d s", int(seconds+0.5)/60, int(seconds+0.5)%60)
}
