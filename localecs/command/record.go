package command

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/localecs/scenario"
)

// Run runs a scenario and saves its timeline, of an interrupted run too.
func Run(ctx context.Context, plan *scenario.Plan, o scenario.Options) (*scenario.Report, error) {
	o.Record = scenario.NewRecording()
	r, err := plan.Run(ctx, o)
	if err == nil {
		Reported(o, r)
	} else {
		Broken(o, err)
	}
	return r, err
}

// Reported saves the timeline of a run that was judged, and notes it in the report. A
// timeline that cannot be written changes no verdict.
func Reported(o scenario.Options, r *scenario.Report) {
	run := o.Record.Judged(time.Now(), r.Failures)
	run.Seed = r.Seed
	page, err := scenario.Save(o.Dir, *run)
	if err != nil {
		warnTimeline(o.Log, err)
		page = ""
	}
	r.Picture, r.History = page, run
}

// Broken saves the timeline of a run that has no report, and sends its path as an event.
func Broken(o scenario.Options, why error) {
	now := time.Now()
	run := o.Record.Broken(now, why)
	if len(run.Tasks) == 0 {
		return // nothing to show
	}
	page, err := scenario.Save(o.Dir, *run)
	if err != nil {
		warnTimeline(o.Log, err)
		return
	}
	o.Progress(scenario.Event{
		Time: now, Seconds: scenario.Seconds(now.Sub(run.Started)), Scenario: run.Scenario,
		Kind: scenario.KindTimeline, Detail: page, Text: "Timeline: " + page,
	})
}

func warnTimeline(log hclog.Logger, err error) {
	log.Warn("timeline was not written", logkey.Error, err)
}
