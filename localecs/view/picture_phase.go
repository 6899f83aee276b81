package view

import (
	"fmt"
	"strings"
)

// phaseWidth is that of a diagram of a task, in pixels: two stand side by side.
const phaseWidth = 680

// brief is a moment's text as short as a label has to be.
func brief(text string) string {
	text = strings.TrimPrefix(text, "the ")
	text = strings.Replace(text, "application", "app", 1)
	return strings.Replace(text, " is ", " ", 1)
}

// phase draws the start or the stop of a task. note is what is worth knowing of a lane.
func phase(run *RecordedRun, t RecordedTask, lanes []Lane, p Phase, note func(Lane) string, traffic bool) *diagram {
	d := newDiagram(phaseWidth, p.From, p.To, points(run, lanes, p))
	lines := d.moments(p)
	if faults := during(run.Faults, p, t.Name); len(faults) > 0 {
		d.bands("faults", "fault", faults, d.stacked, func(i int) string { return faults[i].Text })
	}
	for _, l := range lanes {
		if l.In(p) {
			d.lane(l, note(l))
		}
	}
	if traffic && servedIn(run.Requests, t, p) {
		d.histogram("answers of this task", lastServed(t, p), run.Requests.BucketSeconds, t.Served, nil, nil)
	}
	if r := run.Requests; traffic && answeredIn(r, p) {
		d.histogram("all requests", requestsNote(r, p.From, p.To), r.BucketSeconds, r.Answered, r.Lost, r.SlowestMS)
	}
	lines()
	d.ruler(p.Zero)
	return d
}

// points are when something happens in a phase.
func points(run *RecordedRun, lanes []Lane, p Phase) []float64 {
	var all []float64
	for _, l := range lanes {
		all = append(all, l.Points()...)
	}
	for _, m := range p.Moments {
		all = append(all, m.At)
	}
	for _, f := range run.Faults {
		all = append(all, f.From, f.To)
	}
	return append(all, losses(run.Requests)...)
}

// during are the faults of a phase that are about the task, or about nobody.
func during(all []RecordedStep, p Phase, task string) []RecordedStep {
	var some []RecordedStep
	for _, s := range all {
		if (s.Task == "" || s.Task == task) && s.From <= p.To && s.To >= p.From {
			some = append(some, s)
		}
	}
	return some
}

// servedIn reports whether answers named the task in a phase.
func servedIn(r RecordedRequests, t RecordedTask, p Phase) bool {
	for i, n := range t.Served {
		if at := float64(i) * r.BucketSeconds; n > 0 && at+r.BucketSeconds >= p.From && at <= p.To {
			return true
		}
	}
	return false
}

func lastServed(t RecordedTask, p Phase) string {
	switch {
	case t.LastServed == nil:
		return ""
	case *t.LastServed < p.Zero:
		return "last before T0"
	}
	return "last " + p.Since(*t.LastServed)
}

// answeredIn reports whether there was traffic in a phase.
func answeredIn(r RecordedRequests, p Phase) bool {
	answered, lost := countIn(r, p.From, p.To)
	return answered+lost > 0
}

func countIn(r RecordedRequests, from, to float64) (answered, lost int) {
	for i := range r.Answered {
		if at := (float64(i) + 0.5) * r.BucketSeconds; at >= from && at <= to {
			answered, lost = answered+r.Answered[i], lost+r.Lost[i]
		}
	}
	return answered, lost
}

func requestsNote(r RecordedRequests, from, to float64) string {
	answered, lost := countIn(r, from, to)
	return fmt.Sprintf("%d ok, %d lost", answered, lost)
}
