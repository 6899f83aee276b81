package scenario

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/localecs/chaos"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// ChaosRun runs schedules in a setting.
type ChaosRun struct {
	Setup *ChaosSetup
	// Prepare is the package's Prepare with the programs of this machine.
	Prepare func(*file.Scenario) (*Plan, error)
	// Options are those of each run; its observer is the trial's.
	Options Options
}

// ChaosResult is the result of a run.
type ChaosResult struct {
	Verdict  chaos.Verdict
	Schedule chaos.Schedule
	Report   *Report
	Observed chaos.Observed
}

// Run runs a schedule and judges it. The error is about a run that could not be
// carried out.
func (t *ChaosRun) Run(ctx context.Context, sched chaos.Schedule) (*ChaosResult, error) {
	script := t.Setup.scenario(sched)
	plan, err := t.Prepare(script)
	if err != nil {
		return nil, err
	}
	allowances := chaos.Allowances(sched, t.Setup.Topology)
	o := t.Options
	recorder := newRecorder(o.Progress, t.observing(sched, allowances))
	o.Progress, o.observer = recorder.Event, recorder
	rep, err := plan.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	r := &ChaosResult{Schedule: sched, Report: rep, Observed: recorder.Observed(time.Now())}
	r.Verdict = chaos.Check(sched, t.Setup.Topology, allowances, r.Observed)
	for _, text := range rep.Failures {
		r.Verdict.Violations = append(r.Verdict.Violations,
			chaos.Violation{Invariant: chaos.Serves, At: r.Observed.Ended, Text: text})
	}
	if o := r.Observed; o.Healed != chaos.Never && o.Ended > 0 && r.Verdict.Judged < chaos.LeastJudged {
		r.Verdict.Violations = append(r.Verdict.Violations, chaos.Violation{Invariant: chaos.MostJudged, At: o.Healed,
			Text: fmt.Sprintf("%.0f %% of the requests, want %.0f %%", 100*r.Verdict.Judged, 100*chaos.LeastJudged)})
	}
	rep.Failures = []string{}
	for _, v := range r.Verdict.Violations {
		rep.Failures = append(rep.Failures, v.String())
	}
	return r, nil
}

// Reducible reports whether a shorter schedule may break the same invariant: one did that is about
// the tasks, and after the traffic began.
func (r *ChaosResult) Reducible() bool {
	return r.Observed.Ended > 0 && slices.ContainsFunc(r.Verdict.Violations, func(v chaos.Violation) bool {
		return v.Invariant != chaos.MostJudged
	})
}

// observing returns what the recorder looks for.
func (t *ChaosRun) observing(sched chaos.Schedule, allowances []chaos.Allowance) recorderOptions {
	o := recorderOptions{
		Methods:  map[string]chaos.What{},
		Services: t.Setup.base.Checks.NoServices,
		Serving:  map[string][]string{}, Healthy: map[string][]string{},
		Stays: func(task string, what chaos.What) bool {
			return slices.ContainsFunc(allowances, func(e chaos.Allowance) bool {
				return e.What == what && e.Task == task
			})
		},
	}
	for _, m := range t.Setup.base.Consul.AuthMethods {
		// The services' identity comes from their role, the agent's rules from here.
		o.Methods[m.Name] = chaos.ServiceToken
		if m.BindRules != "" {
			o.Methods[m.Name] = chaos.ClientToken
		}
	}
	for name := range t.Setup.scenario(sched).Tasks {
		for _, c := range sched.Task(t.Setup.Topology, name).Containers {
			switch c.Role {
			case chaos.Application:
				o.Healthy[name] = append(o.Healthy[name], c.Name)
				fallthrough
			case chaos.Proxy:
				o.Serving[name] = append(o.Serving[name], c.Name)
			}
		}
	}
	return o
}

// Shrink looks for a shorter schedule that breaks one of the invariants that the
// result has broken, with at most budget runs. tried is how many it has run.
func (t *ChaosRun) Shrink(ctx context.Context, r *ChaosResult, budget int) (shortest chaos.Schedule, tried int) {
	broken := map[string]bool{}
	for _, v := range r.Verdict.Violations {
		broken[v.Invariant] = true
	}
	shortest = chaos.Shrink(r.Schedule, t.Setup.Topology, budget, func(s chaos.Schedule) bool {
		if ctx.Err() != nil {
			return false
		}
		tried++
		again, err := t.Run(ctx, s)
		return err == nil && slices.ContainsFunc(again.Verdict.Violations, func(v chaos.Violation) bool {
			return broken[v.Invariant]
		})
	})
	return shortest, tried
}
