package scenario

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/localecs/scenario/report"
	"github.com/meshtask/consul-ecs/localecs/scenario/server"
	"github.com/meshtask/consul-ecs/localecs/scenario/timeline"
	"github.com/meshtask/consul-ecs/localecs/scenario/traffic"
	"github.com/meshtask/consul-ecs/localecs/scheduler"
)

// check judges the scenario's promises after the last step.
func (r *runner) check(ctx context.Context) {
	r.checkRequests()
	found, err := r.surprises(ctx)
	if err != nil {
		r.fail("%v", err)
	}
	for _, what := range found {
		r.fail("left in Consul: %s", what)
	}
	r.checkAgents(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range r.names {
		t := r.tasks[name]
		for _, problem := range disorder(t.task.View(), t.killed, r.file.Checks.CleanExits) {
			r.fail("%s: %s", name, problem)
		}
	}
}

// checkAgents judges the agents of tasks whose end no step has awaited.
func (r *runner) checkAgents(ctx context.Context) {
	for _, name := range r.names {
		t := r.tasks[name]
		if !r.file.Checks.AgentsLeft || t.judged {
			continue
		}
		agent, err := r.agentOf(ctx, t.task)
		switch {
		case err != nil:
			r.fail("%s: %v", name, err)
		case agent.State != server.AgentLeft:
			r.fail("%s: %s", name, agent)
		}
	}
}

// checkRequests judges all phases together, and the losses of those that have
// no limits of their own.
func (r *runner) checkRequests() {
	c := r.file.Checks
	answered, free := 0, traffic.Phase{}
	for _, p := range r.phases {
		answered += p.Answered
		if !p.Limits.Say() {
			free.Answered, free.Failed = free.Answered+p.Answered, free.Failed+p.Failed
			if free.First == "" {
				free.First = p.First
			}
		}
	}
	if free.Failed > c.FailedRequests {
		r.fail("%d of %d requests failed; %d may. First: %s", free.Failed, free.Answered+free.Failed, c.FailedRequests, free.First)
	}
	if answered < c.MinRequests {
		r.fail("only %d requests were answered; at least %d must be", answered, c.MinRequests)
	}
}

// disorder tells what an orderly task must not show at its end: a container
// that never ran, or that had to be killed without being among killed, or, when
// exits have to be clean, that has failed.
func disorder(v scheduler.View, killed []string, clean bool) []string {
	var problems []string
	for _, c := range v.Containers {
		switch {
		case c.KnownStatus != scheduler.StatusStopped:
			problems = append(problems, "container "+c.Name+" is still "+c.KnownStatus)
		case c.ExitCode == nil:
			problems = append(problems, "container "+c.Name+" never ran: "+c.Reason)
		case *c.ExitCode == 137 && !slices.Contains(killed, c.Name):
			problems = append(problems, "container "+c.Name+" had to be killed")
		case *c.ExitCode != 0 && clean && !slices.Contains(killed, c.Name):
			problems = append(problems, fmt.Sprintf("container %s exited with %d", c.Name, *c.ExitCode))
		}
	}
	return problems
}

// report sums up.
func (r *runner) report() *report.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	rep := &report.Report{
		Name: r.file.Name, StopOrder: r.file.StopOrder, Tasks: len(r.names),
		Failures: r.failures, Left: r.left, Elapsed: time.Since(r.begun), LogDir: r.cluster.LogDir(),
	}
	for _, p := range r.phases {
		rep.Answered, rep.Failed, rep.Slowest = rep.Answered+p.Answered, rep.Failed+p.Failed, max(rep.Slowest, p.Slowest)
		rep.Phases = append(rep.Phases, report.NewPhase(p))
	}
	rows := make([]timeline.Row, len(r.names))
	for i, name := range r.names {
		rows[i] = timeline.Row{Task: name, Moments: &r.tasks[name].moments}
	}
	rep.Timeline = timeline.Start(rows) + timeline.Stop(rows)
	return rep
}
