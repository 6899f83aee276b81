package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/localecs/scenario"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// chaosFlags are those of `localecs run -chaos`.
type chaosFlags struct {
	given  bool
	seed   uint64
	length time.Duration
	runs   int
	shrink int
}

func (c *chaosFlags) add(fs *flag.FlagSet) {
	usual := usualChaos()
	fs.Func("chaos", "run a random schedule of faults in place of the scenario's steps: `seed` is a number, or random for one that is printed", c.setSeed)
	fs.DurationVar(&c.length, "for", usual.length, "with -chaos: how `long` faults occur")
	fs.IntVar(&c.runs, "runs", usual.runs, "with -chaos: run this `number` of seeds one after the other, starting with that one")
	fs.IntVar(&c.shrink, "shrink", usual.shrink, "with -chaos: run a failing seed up to this `number` of times again to find a shorter schedule")
}

// usualChaos returns the default flags.
func usualChaos() chaosFlags { return chaosFlags{length: time.Minute, runs: 1, shrink: 12} }

// missed reports whether flags that require -chaos were given without it.
func (c *chaosFlags) missed() bool { return !c.given && *c != usualChaos() }

// setSeed takes the value of -chaos. 0 and "random" are any.
func (c *chaosFlags) setSeed(text string) (err error) {
	c.given, c.seed = true, 0
	if text == "random" {
		return nil
	}
	if c.seed, err = strconv.ParseUint(text, 10, 64); err != nil {
		return errors.New("want a number from 0 to 2^64-1, or random")
	}
	return nil
}

// first returns the seed of the first run. A random one is short enough to type.
func (c *chaosFlags) first() uint64 {
	if c.seed != 0 {
		return c.seed
	}
	return rand.Uint64N(1e9) + 1
}

// maxChaos limits -for.
const maxChaos = time.Hour

// chaosSetup reads the scenario and checks whether it can be run.
func (f *runFlags) chaosSetup(paths []string) (*scenario.ChaosRun, []string, error) {
	switch {
	case len(paths) != 1:
		return nil, nil, errors.New("-chaos takes one scenario")
	case f.seed != nil:
		return nil, nil, errors.New("-chaos and -seed are mutually exclusive")
	case f.chaos.length < time.Second || f.chaos.length > maxChaos:
		return nil, nil, fmt.Errorf("-for: %s: want 1s to %s", f.chaos.length, maxChaos)
	case f.chaos.runs < 1 || f.chaos.shrink < 0:
		return nil, nil, errors.New("want -runs of 1 or more and -shrink of 0 or more")
	case f.stopOrder == bothOrders:
		return nil, nil, errors.New("-chaos and -stop-order both are mutually exclusive")
	}
	values, err := variables(f.vars)
	if err != nil {
		return nil, nil, err
	}
	scene, _, warnings, err := f.load(paths[0], values)
	if err != nil {
		return nil, warnings, err
	}
	setup, err := scenario.NewChaosSetup(scene)
	prepare := func(script *file.Scenario) (*scenario.Plan, error) {
		plan, _, err := scenario.Prepare(script, values, f.network)
		return plan, err
	}
	return &scenario.ChaosRun{Setup: setup, Prepare: prepare}, warnings, err
}

// runChaos runs the seeds one after the other.
func (f *runFlags) runChaos(ctx context.Context, t *scenario.ChaosRun, o scenario.Options, out io.Writer) error {
	t.Options = o
	var totals scenario.Totals
	first := f.chaos.first()
	for i := range f.chaos.runs {
		number := first + uint64(i)
		verdict, err := f.runSeed(ctx, out, *t, filepath.Join(f.dir, fmt.Sprintf("%s-chaos-%d", t.Setup.Name(), number)), number)
		if err != nil {
			return err
		}
		totals.Add(verdict)
	}
	if f.chaos.runs > 1 {
		if err := totals.Write(out, f.json); err != nil {
			return context.Cause(ctx) // the write error
		}
	}
	if len(totals.Violated) > 0 {
		return &exit.CodeError{Code: exit.CodeRefused}
	}
	return nil
}

// runSeed runs one seed. If it fails, it looks for a shorter schedule in another directory.
func (f *runFlags) runSeed(ctx context.Context, out io.Writer, t scenario.ChaosRun, dir string, number uint64) (v scenario.Summary, err error) {
	err = inStateDir(dir, func() error {
		t.Options.Dir, t.Options.Attend = dir, serveScenario(dir, t.Options.Log)
		events, err := f.quiet(&t, dir)
		if err != nil {
			return err
		}
		defer events.Close()
		sched := t.Setup.Generate(number, f.chaos.length)
		t.Options.Record = scenario.NewRecording()
		result, err := t.Run(ctx, sched)
		if err != nil {
			saveTimeline(t.Options, nil, err)
			return fmt.Errorf("seed %d: %w", number, err)
		}
		saveTimeline(t.Options, result.Report, nil)
		v = result.Summary(number)
		if f.chaos.runs == 1 {
			if err := result.Report.Write(out, f.json); err != nil {
				return context.Cause(ctx) // the write error
			}
		}
		if f.chaos.runs > 1 && !f.json {
			if _, err := io.WriteString(out, v.Line()); err != nil {
				return context.Cause(ctx) // the write error
			}
		}
		if !result.Reducible() || f.chaos.shrink == 0 {
			return nil
		}
		return inStateDir(dir+"-again", func() error { return f.shorter(ctx, t, dir+"-again", result, &v) })
	})
	if v.Seed != 0 && (f.chaos.runs == 1 || f.json || len(v.Violations) > 0) {
		// The result is written even if the search for a shorter schedule was interrupted.
		if v.Write(out, f.json) != nil {
			return v, context.Cause(ctx) // the write error
		}
	}
	return v, err
}

// shorter looks for a shorter schedule, and records the shortest so far even if it is interrupted.
func (f *runFlags) shorter(ctx context.Context, t scenario.ChaosRun, dir string, r *scenario.ChaosResult, v *scenario.Summary) error {
	t.Options.Dir, t.Options.Record, t.Options.Attend = dir, nil, serveScenario(dir, t.Options.Log)
	shortest, tried := t.Shrink(ctx, r, f.chaos.shrink)
	text, err := t.Setup.YAML(shortest)
	v.Shortest, v.Reruns = text, tried
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// quiet sends the events to a file among the logs if there are several runs.
func (f *runFlags) quiet(t *scenario.ChaosRun, dir string) (io.Closer, error) {
	if f.chaos.runs == 1 {
		return io.NopCloser(nil), nil
	}
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o755); err != nil {
		return nil, err
	}
	events, err := os.Create(filepath.Join(dir, "logs", "events.txt"))
	if err != nil {
		return nil, err
	}
	t.Options.Progress = scenario.Lines(events, events)
	return events, nil
}

// inStateDir calls do while it holds the state directory.
func inStateDir(path string, do func() error) error {
	dir, err := openStateDir(path)
	if err != nil {
		return &exit.UsageError{Err: err}
	}
	defer dir.Close()
	return do()
}
