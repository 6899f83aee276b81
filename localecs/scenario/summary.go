package scenario

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/localecs/view"
)

// Outcome is the result of one scenario of several.
type Outcome struct {
	// Name and StopOrder are the scenario's.
	Name, StopOrder string
	// Report is nil when the scenario could not be run, for the reason Err.
	Report *Report
	Err    error
}

// code returns the outcome's exit code.
func (o Outcome) code() int {
	switch {
	case o.Err != nil:
		return cli.ExitCode(o.Err)
	case len(o.Report.Failures) > 0:
		return exit.CodeRefused
	}
	return exit.CodeOK
}

// Code returns the highest exit code: 3 could not be run, 2 a check failed, 1 usage.
func Code(outcomes []Outcome) int {
	worst := exit.CodeOK
	for _, o := range outcomes {
		worst = max(worst, o.code())
	}
	return worst
}

// line is the JSON form of an outcome.
type line struct {
	Name      string  `json:"name"`
	StopOrder string  `json:"stop_order"`
	Tasks     int     `json:"tasks"`
	Answered  int     `json:"answered"`
	Failed    int     `json:"failed"`
	Verdict   string  `json:"verdict"`
	Seconds   float64 `json:"seconds"`
	// Why is the first failure, or why there is no report.
	Why string `json:"why,omitempty"`
}

func (o Outcome) line() line {
	l := line{Name: o.Name, StopOrder: o.StopOrder, Verdict: view.Passed}
	if o.Err != nil {
		l.Verdict, l.Why = "not run", o.Err.Error()
		return l
	}
	r := o.Report
	l.Tasks, l.Answered, l.Failed, l.Seconds = r.Tasks, r.Answered, r.Failed,
		r.Elapsed.Round(100*time.Millisecond).Seconds()
	if len(r.Failures) > 0 {
		l.Verdict, l.Why = view.Failed, r.Failures[0]
	}
	return l
}

// WriteSummary prints one line for each outcome, as text or as one JSON object.
func WriteSummary(w io.Writer, asJSON bool, outcomes []Outcome) error {
	lines := make([]line, len(outcomes))
	for i, o := range outcomes {
		lines[i] = o.line()
	}
	return writeResult(w, asJSON, func() string { return summaryText(lines) }, struct {
		Time      time.Time `json:"time"`
		Kind      view.Kind `json:"kind"`
		Scenarios []line    `json:"scenarios"`
	}{time.Now(), KindSummary, lines})
}

// maxWhy is where a reason is cut, in characters: the whole text is in the
// scenario's own report.
const maxWhy = 200

func summaryText(lines []line) string {
	width, good := len("scenario"), 0
	for _, l := range lines {
		width = max(width, len(l.Name))
	}
	var table, why strings.Builder
	fmt.Fprintf(&table, "\nSummary\n  %-*s  stop order  tasks  answered  failed  verdict  seconds\n", width, "scenario")
	for _, l := range lines {
		fmt.Fprintf(&table, "  %-*s  %-10s  %5d  %8d  %6d  %-7s  %7.1f\n", width, l.Name, l.StopOrder, l.Tasks,
			l.Answered, l.Failed, l.Verdict, l.Seconds)
		if l.Why != "" {
			fmt.Fprintf(&why, "%s, %s: %s: %s\n", l.Name, l.StopOrder, l.Verdict, shortened(l.Why))
		} else {
			good++
		}
	}
	return fmt.Sprintf("%s\n%s%d of %d passed\n", &table, &why, good, len(lines))
}

// shortened returns text on one line, cut at maxWhy.
func shortened(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > maxWhy {
		return string(runes[:maxWhy]) + "…"
	}
	return string(runes)
}
