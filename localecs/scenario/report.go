package scenario

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/view"
)

// Report is the outcome of a run.
type Report struct {
	Name string `json:"name"`
	// StopOrder is file.StopReverse or file.StopAtOnce.
	StopOrder string `json:"stop_order"`
	// Tasks is how many were started.
	Tasks int `json:"tasks"`
	// Failures is empty when everything was as it must be.
	Failures []string `json:"failures"`
	// Answered, Failed and Slowest are about all the traffic, Phases about each
	// part of it.
	Answered int           `json:"answered"`
	Failed   int           `json:"failed"`
	Slowest  time.Duration `json:"slowest_ns"`
	Phases   []Phase       `json:"phases,omitempty"`
	// Faults is how many were made; Seed has drawn the requests to which they applied.
	Faults int    `json:"faults,omitempty"`
	Seed   uint64 `json:"seed,omitempty"`
	// Ended is how the tasks of a run without a Consul server have ended.
	Ended []TaskEnd `json:"ended,omitempty"`
	// Left is what remains in Consul, as steps declare.
	Left []ReportedLeftover `json:"left,omitempty"`
	// Elapsed is the time of the whole run so far.
	Elapsed time.Duration `json:"elapsed_ns"`
	// LogDir has a log per container.
	LogDir string `json:"log_dir"`
	// Timeline is the path of timeline.html, History what it was drawn from.
	Timeline string            `json:"timeline,omitempty"`
	History  *view.RecordedRun `json:"history,omitempty"`
}

// ReportedLeftover is something of a task that remains in Consul, as a step declares.
type ReportedLeftover struct {
	Task string `json:"task"`
	// What names it, Reason is the step's.
	What   string `json:"what"`
	Reason string `json:"reason"`
}

// String describes what is left and why.
func (l ReportedLeftover) String() string {
	return fmt.Sprintf("%s, as %s", l.What, l.Reason)
}

func (r *Report) text() string {
	var b strings.Builder
	b.WriteString(endTable(r.Ended))
	b.WriteString(phaseTable(r.Phases))
	b.WriteByte('\n')
	if len(r.Phases) > 0 {
		fmt.Fprintf(&b, "Requests: %d answered, %d failed, slowest %s\n", r.Answered, r.Failed,
			r.Slowest.Round(time.Millisecond))
	}
	if r.Faults > 0 {
		fmt.Fprintf(&b, "Faults: %d, requests drawn by seed %d\n", r.Faults, r.Seed)
	}
	for _, l := range r.Left {
		fmt.Fprintf(&b, "Left by %s: %s\n", l.Task, l)
	}
	logs, verdict := "Logs", "all checks passed"
	if r.Ended != nil {
		logs, verdict = "Logs and metadata", "all essential containers ended well"
	}
	fmt.Fprintf(&b, "%s: %s\n", logs, r.LogDir)
	if r.Timeline != "" {
		fmt.Fprintf(&b, "Timeline: %s\n", r.Timeline)
	}
	if len(r.Failures) == 0 {
		fmt.Fprintf(&b, "%s: %s in %s\n", r.Name, verdict, r.Elapsed.Round(100*time.Millisecond))
	}
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "%s: FAILED: %s\n", r.Name, strings.ReplaceAll(f, "\n", "\n  "))
	}
	return b.String()
}

// phaseTable shows the phases, unless the totals suffice.
func phaseTable(phases []Phase) string {
	if len(phases) == 0 || len(phases) == 1 && phases[0].Verdict == "" {
		return ""
	}
	width := len("phase")
	for _, p := range phases {
		width = max(width, len(p.Name))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nTraffic: no request is ever retried\n  %-*s  answered  failed     allowed  slowest  verdict\n",
		width, "phase")
	for _, p := range phases {
		line := fmt.Sprintf("  %-*s  %8d  %6d  %10s  %7s  %s", width, p.Name, p.Answered, p.Failed, p.Limits,
			p.Slowest.Round(time.Millisecond), p.Verdict)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// Write prints the report as text or as one JSON object.
func (r *Report) Write(w io.Writer, asJSON bool) error {
	return writeResult(w, asJSON, r.text, struct {
		Time time.Time `json:"time"`
		Kind view.Kind `json:"kind"`
		*Report
	}{time.Now(), KindReport, r})
}

// writeResult prints a text, or an object as JSON.
func writeResult(w io.Writer, asJSON bool, text func() string, object any) error {
	if asJSON {
		return json.NewEncoder(w).Encode(object)
	}
	_, err := io.WriteString(w, text())
	return err
}
