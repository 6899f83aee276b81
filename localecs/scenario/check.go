package scenario

import (
	"context"
	"slices"
	"time"
)

// evaluate checks the run, or has the observer record the rest of it. err is the error of
// the steps.
func (r *runner) evaluate(ctx context.Context, err error) {
	switch {
	case r.observer != nil:
		r.observer.Settle(ctx)
	case err == nil:
		r.check(ctx)
	}
}

// check runs the scenario's checks after the last step.
func (r *runner) check(ctx context.Context) {
	for _, problem := range Requests(r.steps.traffic.done, r.file.Checks) {
		r.progress.fail("%s", problem)
	}
	found, err := r.steps.cleanup.unexpected(ctx)
	if err != nil {
		r.progress.fail("%v", err)
	}
	for _, what := range found {
		r.progress.fail("left in Consul: %s", what)
	}
	r.steps.cleanup.checkAgents(ctx)
	for _, t := range r.tasks.Started() {
		v := t.View()
		if t.Service != "" && t.endedUnexpectedly() {
			r.progress.fail("%s: stopped unexpectedly: %s", t.Name, r.ecs.whyEnded(t))
		}
		for _, problem := range Disorder(v, t.Killed, r.file.Checks.CleanExits) {
			r.progress.fail("%s: %s", t.Name, problem)
		}
	}
}

// report returns the report of a run that was judged.
func (r *runner) report() *Report {
	started := r.tasks.Started()
	rep := &Report{
		Name: r.file.Name, StopOrder: r.file.StopOrder, Tasks: len(started),
		Failures: nonNil(r.progress.failures), Elapsed: time.Since(r.progress.started), LogDir: r.ecs.cluster.LogDir(),
	}
	if r.plan.alone != nil {
		var failures []string
		rep.Ended, failures = r.ends()
		rep.Failures = append(rep.Failures, failures...)
		return rep
	}
	rep.Left = slices.Clone(r.steps.cleanup.left)
	for _, p := range r.steps.traffic.done {
		rep.Answered, rep.Failed, rep.Slowest = rep.Answered+p.Answered, rep.Failed+p.Failed,
			max(rep.Slowest, p.Slowest)
		rep.Phases = append(rep.Phases, p.withVerdict())
	}
	if _, rep.Faults = r.steps.faults.schedule.Now(); rep.Faults > 0 {
		rep.Seed = r.file.Seed
	}
	return rep
}
