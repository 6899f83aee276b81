package scenario

import (
	"context"
	"slices"
	"time"
)

// judge checks the run, or has the observer record the rest of it. err is the error of
// the steps.
func (r *runner) judge(ctx context.Context, err error) {
	switch {
	case r.observer != nil:
		r.observer.Settle(ctx)
	case err == nil:
		r.check(ctx)
	}
}

// check runs the scenario's checks after the last step.
func (r *runner) check(ctx context.Context) {
	for _, problem := range Requests(r.phases, r.file.Checks) {
		r.fail("%s", problem)
	}
	found, err := r.unexpected(ctx)
	if err != nil {
		r.fail("%v", err)
	}
	for _, what := range found {
		r.fail("left in Consul: %s", what)
	}
	r.checkAgents(ctx)
	for _, t := range r.tasks.Started() {
		v := t.View()
		if t.Service != "" && t.endedUnexpectedly() {
			r.fail("%s: stopped unexpectedly: %s", t.Name, r.whyEnded(t))
		}
		for _, problem := range Disorder(v, t.Killed, r.file.Checks.CleanExits) {
			r.fail("%s: %s", t.Name, problem)
		}
	}
}

// checkAgents checks the agents of tasks whose end no step has awaited.
func (r *runner) checkAgents(ctx context.Context) {
	for _, t := range r.tasks.Started() {
		if !r.file.Checks.AgentsLeft || t.Judged || !t.HasAgent() {
			continue
		}
		agent, err := r.look.agent(ctx, t.IP())
		switch {
		case err != nil:
			r.fail("%s: %v", t.Name, err)
		case agent.State != agentLeft:
			r.fail("%s: %s", t.Name, agent)
		}
	}
}

// report returns the report of a run that was judged.
func (r *runner) report() *Report {
	started := r.tasks.Started()
	r.mu.Lock()
	defer r.mu.Unlock()
	rep := &Report{
		Name: r.file.Name, StopOrder: r.file.StopOrder, Tasks: len(started),
		Failures: nonNil(r.failures), Elapsed: time.Since(r.started), LogDir: r.cluster.LogDir(),
	}
	if r.plan.alone != nil {
		var failures []string
		rep.Ended, failures = r.ends(r.plan)
		rep.Failures = append(rep.Failures, failures...)
		return rep
	}
	rep.Left = slices.Clone(r.left)
	for _, p := range r.phases {
		rep.Answered, rep.Failed, rep.Slowest = rep.Answered+p.Answered, rep.Failed+p.Failed, max(rep.Slowest, p.Slowest)
		rep.Phases = append(rep.Phases, p.judged())
	}
	if _, rep.Faults = r.faults.Now(); rep.Faults > 0 {
		rep.Seed = r.file.Seed
	}
	return rep
}
