package command

import (
	"context"
	"time"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/localecs/scenario"
)

// runPlan runs a scenario and saves its timeline, of an interrupted run too.
func runPlan(ctx context.Context, plan *scenario.Plan, o scenario.Options) (*scenario.Report, error) {
	o.Record = scenario.NewRecording()
	r, err := plan.Run(ctx, o)
	saveTimeline(o, r, err)
	return r, err
}

// saveTimeline saves the timeline of a run that has ended. It notes the page in the
// report, or sends its path as an event if an error has ended the run. A timeline that
// cannot be written changes no verdict.
func saveTimeline(o scenario.Options, r *scenario.Report, ended error) {
	now := time.Now()
	run := o.Record.End(now, r, ended)
	if ended != nil && len(run.Tasks) == 0 {
		return // nothing to show
	}
	page, err := scenario.Save(o.Dir, *run)
	if err != nil {
		o.Log.Warn("timeline was not written", logkey.Error, err)
		page = ""
	}
	if ended == nil {
		r.Timeline, r.History = page, run
	} else if page != "" {
		o.Progress(scenario.Event{
			Time: now, Seconds: scenario.Seconds(now.Sub(run.Started)), Scenario: run.Scenario,
			Kind: scenario.KindTimeline, Detail: page, Text: "Timeline: " + page,
		})
	}
}
