package scenario

import (
	"context"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/localecs/chaos"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// Trial runs schedules in a setting.
type Trial struct {
	*Setting
	// Prepare is the package's Prepare with the programs of this machine.
	Prepare func(*file.Scenario) (*Plan, error)
	// Options are those of each run; its observer is the trial's.
	Options Options
}

// Result is the result of a run.
type Result struct {
	chaos.Verdict
	Schedule chaos.Schedule
	Report   *Report
	Observed chaos.Observed
}

// Run runs a schedule and judges it. The error is about a run that could not be
// carried out.
func (t *Trial) Run(ctx context.Context, sched chaos.Schedule) (*Result, error) {
	script := t.script(sched)
	plan, err := t.Prepare(script)
	if err != nil {
		return nil, err
	}
	excuses := chaos.Excuses(sched, t.World)
	o := t.Options
	recorder := newRecorder(o.Progress, t.observing(sched, excuses))
	o.Progress, o.observer = recorder.Event, recorder
	rep, err := plan.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	r := &Result{Schedule: sched, Report: rep, Observed: recorder.Observed(time.Now())}
	r.Verdict = chaos.Check(sched, t.World, excuses, r.Observed)
	for _, text := range rep.Failures {
		r.Violations = append(r.Violations, chaos.Violation{Invariant: chaos.Serves, At: r.Observed.Ended, Text: text})
	}
	rep.Failures = []string{}
	for _, v := range r.Violations {
		rep.Failures = append(rep.Failures, v.String())
	}
	return r, nil
}

// observing returns what the recorder looks for.
func (t *Trial) observing(sched chaos.Schedule, excuses []chaos.Excuse) recorderOptions {
	o := recorderOptions{
		Methods:  map[string]chaos.What{},
		Services: t.scene.Checks.NoServices,
		Serving:  map[string][]string{}, Healthy: map[string][]string{},
		Stays: func(task string, what chaos.What) bool {
			return slices.ContainsFunc(excuses, func(e chaos.Excuse) bool { return e.What == what && e.Task == task })
		},
	}
	for _, m := range t.scene.Consul.AuthMethods {
		// The services' identity comes from their role, the agent's rules from here.
		o.Methods[m.Name] = chaos.ServiceToken
		if m.BindRules != "" {
			o.Methods[m.Name] = chaos.ClientToken
		}
	}
	for name := range t.script(sched).Tasks {
		for _, c := range sched.Task(t.World, name).Containers {
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
func (t *Trial) Shrink(ctx context.Context, r *Result, budget int) (shortest chaos.Schedule, tried int) {
	broken := map[string]bool{}
	for _, v := range r.Violations {
		broken[v.Invariant] = true
	}
	shortest = chaos.Shrink(r.Schedule, t.World, budget, func(s chaos.Schedule) bool {
		if ctx.Err() != nil {
			return false
		}
		tried++
		again, err := t.Run(ctx, s)
		return err == nil && slices.ContainsFunc(again.Violations, func(v chaos.Violation) bool {
			return broken[v.Invariant]
		})
	})
	return shortest, tried
}
