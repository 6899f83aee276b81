package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/scenario/progress"
	"github.com/meshtask/consul-ecs/localecs/scenario/server"
	"github.com/meshtask/consul-ecs/localecs/scenario/timeline"
	"github.com/meshtask/consul-ecs/localecs/scheduler"
)

// Report is the outcome of a scenario.
type Report struct {
	Name string `json:"name"`
	// Failures is empty when everything was as it must be.
	Failures []string `json:"failures"`
	// Answered, Failed and Slowest are about the traffic.
	Answered int           `json:"answered"`
	Failed   int           `json:"failed"`
	Slowest  time.Duration `json:"slowest_ns"`
	// Text is the timeline and the verdict for people.
	Text string `json:"-"`
	// LogDir has a log per container.
	LogDir string `json:"log_dir"`
}

// check judges the scenario's promises after the last step.
func (r *runner) check(ctx context.Context) {
	c := r.file.Checks
	fail := func(format string, args ...any) { r.failures = append(r.failures, fmt.Sprintf(format, args...)) }
	if r.traffic != nil {
		answered, failed, _ := r.traffic.Totals()
		if failed > c.FailedRequests {
			fail("%d of %d requests failed; %d may. First: %s", failed, answered+failed, c.FailedRequests, r.traffic.First())
		}
		if answered < c.MinRequests {
			fail("only %d requests were answered; at least %d must be", answered, c.MinRequests)
		}
	}
	found, err := server.Left(ctx, r.client, "", c.NoTokensOf, c.NoServices)
	if err != nil {
		fail("%v", err)
	}
	for _, what := range found {
		fail("left in Consul: %s", what)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, t := range r.tasks {
		if t.task == nil {
			continue
		}
		for _, problem := range disorder(t.task.View()) {
			fail("%s: %s", name, problem)
		}
	}
}

// disorder tells what an orderly task must not show at its end: a container
// that had to be killed or that never ran.
func disorder(v scheduler.View) []string {
	var problems []string
	for _, c := range v.Containers {
		switch {
		case c.KnownStatus != scheduler.StatusStopped:
			problems = append(problems, "container "+c.Name+" is still "+c.KnownStatus)
		case c.ExitCode == nil:
			problems = append(problems, "container "+c.Name+" never ran: "+c.Reason)
		case *c.ExitCode == 137:
			problems = append(problems, "container "+c.Name+" had to be killed")
		}
	}
	return problems
}

// report sums up.
func (r *runner) report() *Report {
	rep := &Report{Name: r.file.Name, Failures: r.failures, LogDir: r.cluster.LogDir()}
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	rows := make([]timeline.Row, len(r.names))
	for i, name := range r.names {
		rows[i] = timeline.Row{Task: name, Moments: &r.tasks[name].moments}
	}
	b.WriteString(timeline.Start(rows))
	b.WriteString(timeline.Stop(rows))
	b.WriteByte('\n')
	if r.traffic != nil {
		rep.Answered, rep.Failed, rep.Slowest = r.traffic.Totals()
		fmt.Fprintf(&b, "Requests: %d answered, %d failed, slowest %s\n", rep.Answered, rep.Failed, rep.Slowest.Round(time.Millisecond))
	}
	fmt.Fprintf(&b, "Logs: %s\n", rep.LogDir)
	if len(rep.Failures) == 0 {
		fmt.Fprintf(&b, "%s: all checks passed in %s\n", rep.Name, time.Since(r.begun).Round(100*time.Millisecond))
	}
	for _, f := range rep.Failures {
		fmt.Fprintf(&b, "%s: FAILED: %s\n", rep.Name, strings.ReplaceAll(f, "\n", "\n  "))
	}
	rep.Text = b.String()
	return rep
}

// Write prints the report: text for people, one JSON object for machines.
func (r *Report) Write(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(struct {
			Time time.Time     `json:"time"`
			Kind progress.Kind `json:"kind"`
			*Report
		}{time.Now(), progress.Report, r})
	}
	_, err := io.WriteString(w, r.Text)
	return err
}
