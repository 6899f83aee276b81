package command

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/localecs/scenario"
)

// Run runs a scenario and saves its pictures, of one that was interrupted too.
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

// Reported saves the pictures of a run that was judged, and notes them in its report.
// That they cannot be written changes no verdict.
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

// Broken saves the pictures of a run that has no report, and tells where they are.
func Broken(o scenario.Options, why error) {
	now := time.Now()
	run := o.Record.Broken(now, why)
	if len(run.Tasks) == 0 {
		return // there is nothing to see
	}
	page, err := scenario.Save(o.Dir, *run)
	if err != nil {
		warnTimeline(o.Log, err)
		return
	}
	o.Progress.Event(scenario.Event{
		Time: now, Seconds: scenario.Seconds(now.Sub(run.Begun)), Scenario: run.Scenario,
		Kind: scenario.KindTimeline, Detail: page, Text: "Timeline: " + page,
	})
}

func warnTimeline(log hclog.Logger, err error) {
	log.Warn("timeline was not written", logkey.Error, err)
}

// When is the value of -picture.
type When string

// The values; OnTerminal is the usual one.
const (
	OnTerminal When = "auto"
	Always     When = "always"
	Never      When = "never"
)

// String implements flag.Value.
func (w *When) String() string { return string(*w) }

// Set implements flag.Value.
func (w *When) Set(s string) error {
	if !slices.Contains([]When{OnTerminal, Always, Never}, When(s)) {
		return fmt.Errorf("want %s, %s or %s", OnTerminal, Always, Never)
	}
	*w = When(s)
	return nil
}

// Show draws a run at its end, before its report: on a terminal, or when that is
// wanted. It shows none of a report without a history.
func (w When) Show(inv *cli.Invocation, out io.Writer, r *scenario.Report) error {
	if _, is := Of(inv.Stdout); r.History == nil || w == Never || w == OnTerminal && !is {
		return nil
	}
	if _, err := io.WriteString(out, "\n"); err != nil {
		return err
	}
	return scenario.Show(out, *r.History, looks(inv))
}

// looks are how characters may look where inv writes to.
func looks(inv *cli.Invocation) scenario.Looks {
	o := scenario.Looks{Width: UsualWidth, ASCII: !speaksUTF8(inv.Getenv)}
	if columns, err := strconv.Atoi(inv.Getenv("COLUMNS")); err == nil {
		o.Width = columns
	}
	if terminal, is := Of(inv.Stdout); is {
		o.Width, _, _ = Size(terminal)
		o.Colour = inv.Getenv("NO_COLOR") == "" && inv.Getenv("TERM") != "dumb"
	}
	return o
}

// speaksUTF8 is what the locale says of characters; none at all is a terminal of today.
func speaksUTF8(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := strings.ToUpper(getenv(name)); value != "" {
			return strings.Contains(value, "UTF-8") || strings.Contains(value, "UTF8")
		}
	}
	return true
}
