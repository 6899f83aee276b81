package view

import (
	"fmt"
)

// The widths of the whole run's diagram, in pixels: a page has both and shows the one
// that fits.
const (
	wideWidth   = 1380
	narrowWidth = 720
)

// overview draws the whole run: steps, faults, requests, and a lane for each task.
func overview(run *RecordedRun, lives []Lane, width float64) *diagram {
	d := newDiagram(width, 0, run.Seconds, runPoints(run, lives))
	d.y = 4
	if len(run.Steps) > 0 {
		d.bands("steps", "step", run.Steps, d.inOneRow, func(i int) string {
			return fmt.Sprintf("%d %s", i+1, run.Steps[i].Text)
		})
	}
	if len(run.Faults) > 0 {
		d.bands("faults", "fault", run.Faults, d.stacked, func(i int) string { return run.Faults[i].About() })
	}
	if len(run.Phases) > 0 {
		d.bands("traffic", "phaseband", run.Phases, d.inOneRow, func(i int) string { return run.Phases[i].Text })
	}
	if r := run.Requests; r.Peak() > 0 {
		d.histogram("requests", requestsNote(r, 0, run.Seconds), r.BucketSeconds, r.Answered, r.Lost, r.SlowestMS)
	}
	for _, l := range lives {
		d.lane(l, LifeNote(l))
	}
	d.ruler(0)
	return d
}

// runPoints are when something happens in the run. Requests that are answered go on
// while nothing else does; lost ones are news.
func runPoints(run *RecordedRun, lives []Lane) []float64 {
	var all []float64
	for _, l := range lives {
		all = append(all, l.Points()...)
	}
	for _, list := range [][]RecordedStep{run.Steps, run.Faults, run.Phases} {
		for _, s := range list {
			all = append(all, s.From, s.To)
		}
	}
	return append(all, losses(run.Requests)...)
}

// losses are when requests were lost.
func losses(r RecordedRequests) []float64 {
	var all []float64
	for i, lost := range r.Lost {
		if lost > 0 {
			all = append(all, float64(i)*r.BucketSeconds, float64(i+1)*r.BucketSeconds)
		}
	}
	return all
}
