package scenario

import (
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/chaos"
	"github.com/meshtask/consul-ecs/localecs/view"
)

// Summary is the result of a seed.
type Summary struct {
	Time time.Time `json:"time"`
	Kind view.Kind `json:"kind"`
	Seed uint64    `json:"seed"`
	// Events is the schedule, a line each; Kinds counts them.
	Events []string       `json:"events"`
	Kinds  map[string]int `json:"kinds"`
	// Answered and Failed are requests; what failed was excused unless it is among
	// the violations.
	Answered int `json:"answered"`
	Failed   int `json:"failed"`
	// Allowed counts what failed by the rule that explains it.
	Allowed map[string]int `json:"excused,omitempty"`
	// Judged is the share of the requests that no rule would have explained if they had failed.
	Judged     float64     `json:"judged"`
	Violations []Violation `json:"violations"`
	// Shortest is the shortest schedule that still fails, as part of a scenario
	// file, and Reruns how many were tried for it.
	Shortest string  `json:"shortest,omitempty"`
	Reruns   int     `json:"reruns,omitempty"`
	Seconds  float64 `json:"seconds"`
	LogDir   string  `json:"log_dir"`
}

// Violation is a chaos.Violation in JSON form.
type Violation struct {
	Invariant string  `json:"invariant"`
	Task      string  `json:"task,omitempty"`
	Seconds   float64 `json:"seconds"`
	Text      string  `json:"text"`
}

// Summary returns the result of a seed's schedule.
func (r *ChaosResult) Summary(seed uint64) Summary {
	v := Summary{
		Time: time.Now(), Kind: KindChaos, Seed: seed, Kinds: map[string]int{},
		Answered: r.Report.Answered, Failed: r.Report.Failed, Allowed: r.Verdict.Allowed,
		Judged:  math.Round(1000*r.Verdict.Judged) / 1000,
		Seconds: Seconds(r.Report.Elapsed), LogDir: r.Report.LogDir,
	}
	for _, e := range r.Schedule.Events {
		v.Events = append(v.Events, strings.TrimSpace(e.String()))
		v.Kinds[e.Kind()]++
	}
	for _, x := range r.Verdict.Violations {
		v.Violations = append(v.Violations, Violation{x.Invariant, x.Task, Seconds(x.At), x.Text})
	}
	return v
}

// Line returns the verdict in a line.
func (v Summary) Line() string {
	verdict := "passed"
	if len(v.Violations) > 0 {
		verdict = fmt.Sprintf("FAILED: %s", v.Violations[0].Text)
	}
	return fmt.Sprintf("seed %-20d %3d events  %6d answered  %4d failed  %3.0f %% judged  %6.1fs  %s\n",
		v.Seed, len(v.Events), v.Answered, v.Failed, 100*v.Judged, v.Seconds, verdict)
}

// maxViolations is how many of an invariant text lists: a broken proxy costs hundreds
// of requests. The JSON form has all.
const maxViolations = 10

func (v Summary) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nChaos, seed %d: seconds after the traffic began\n", v.Seed)
	for _, e := range v.Events {
		fmt.Fprintf(&b, "  %s\n", e)
	}
	for _, name := range slices.Sorted(maps.Keys(v.Allowed)) {
		fmt.Fprintf(&b, "%d lost requests are explained by %s\n", v.Allowed[name], name)
	}
	fmt.Fprintf(&b, "%.0f %% of the requests were judged: a lost one would have been a violation\n", 100*v.Judged)
	count := map[string]int{}
	for _, x := range v.Violations {
		if count[x.Invariant]++; count[x.Invariant] <= maxViolations {
			fmt.Fprintf(&b, "VIOLATED at %.2fs: %s: %s\n", x.Seconds, strings.TrimSpace(x.Task+" "+x.Invariant), x.Text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(count)) {
		if more := count[name] - maxViolations; more > 0 {
			fmt.Fprintf(&b, "VIOLATED %d times more: %s\n", more, name)
		}
	}
	if v.Shortest != "" {
		fmt.Fprintf(&b, "The shortest schedule found in %d runs, in place of the scenario's tasks and steps:\n\n%s",
			v.Reruns, v.Shortest)
	}
	return b.String()
}

// Write prints the verdict as text or as one JSON object.
func (v Summary) Write(w io.Writer, asJSON bool) error { return writeResult(w, asJSON, v.text, v) }

// Totals are those of several seeds.
type Totals struct {
	Time     time.Time      `json:"time"`
	Kind     view.Kind      `json:"kind"`
	Runs     int            `json:"runs"`
	Seconds  float64        `json:"seconds"`
	Answered int            `json:"answered"`
	Failed   int            `json:"failed"`
	Kinds    map[string]int `json:"kinds"`
	// Violated are the seeds of runs in which an invariant broke.
	Violated []uint64 `json:"violated"`
}

// Add adds a verdict.
func (t *Totals) Add(v Summary) {
	if t.Kinds == nil {
		t.Kinds = map[string]int{}
	}
	t.Runs++
	t.Seconds += v.Seconds
	t.Answered += v.Answered
	t.Failed += v.Failed
	for kind, n := range v.Kinds {
		t.Kinds[kind] += n
	}
	if len(v.Violations) > 0 {
		t.Violated = append(t.Violated, v.Seed)
	}
}

// Write prints the totals.
func (t *Totals) Write(w io.Writer, asJSON bool) error {
	t.Time, t.Kind = time.Now(), KindSummary
	return writeResult(w, asJSON, t.text, t)
}

func (t *Totals) text() string {
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(t.Kinds)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", t.Kinds[kind], kind))
	}
	return fmt.Sprintf("%d runs in %s: %d requests answered, %d failed; events: %s; violated by %d seeds %v\n",
		t.Runs, (time.Duration(t.Seconds) * time.Second), t.Answered, t.Failed, strings.Join(kinds, ", "),
		len(t.Violated), t.Violated)
}

// stream separates the schedules of a seed from other draws. Another number gives
// another schedule for every seed.
const stream = 0x6368616f73

// Generate draws the schedule of a seed for the setting, always the same one.
func (s *ChaosSetup) Generate(seed uint64, length time.Duration) chaos.Schedule {
	made := chaos.Generate(rand.New(rand.NewPCG(seed, stream)), length, s.Topology)
	made.Seed = seed
	return made
}
