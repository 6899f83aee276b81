package command

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/localecs/scenario"
)

// runTasks runs task definitions that have no scenario.
func (f *runFlags) runTasks(ctx context.Context, inv *cli.Invocation, paths []string) error {
	plan, warnings, err := f.prepareTasks(paths)
	if goOn, err := f.ready(inv, warnings, err); !goOn {
		return err
	}
	dir, err := openStateDir(filepath.Join(f.dir, plan.Name()))
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	defer dir.Close()
	stderr := inv.Stderr
	ctx, stop, release := Twice(ctx, func() { go f.stopping(stderr) }, ends()...) // which may block
	defer release()
	ctx, out := Watch(ctx, inv.Stdout)
	if f.mode == auto {
		f.mode = plainMode
	}
	follow, giveBack, err := f.follower(ctx, inv, out)
	if err != nil {
		return err
	}
	defer giveBack()
	_, terminal := Of(inv.Stdout)
	report, err := Run(ctx, plan, scenario.Options{
		Dir: dir.Name(), Docker: f.docker, StopOrder: f.stopOrder, Stop: stop, Progress: follow, Attend: Scenario(dir.Name(), inv.Log),
		Colour: terminal && !f.json && inv.Getenv("NO_COLOR") == "", Log: inv.Log,
	})
	if err != nil {
		return err
	}
	if err := report.Write(out, f.json); err != nil {
		return context.Cause(ctx) // what out made of it
	}
	if len(report.Failures) > 0 {
		return &cli.ExitError{Code: cli.ExitRefused}
	}
	return nil
}

// stopping writes that the tasks have been asked to stop.
func (f *runFlags) stopping(stderr io.Writer) {
	if !f.json {
		fmt.Fprintln(stderr, "localecs run: stopping the tasks as ECS does; once more kills everything at once")
	}
}

// prepareTasks looks at everything that was given before anything is touched.
func (f *runFlags) prepareTasks(paths []string) (*scenario.Plan, []string, error) {
	if _, err := f.orders(); err != nil {
		return nil, nil, err
	}
	values, err := f.vars.Found()
	if err != nil {
		return nil, nil, err
	}
	return f.tasks.Prepare(paths, values, f.network, f.docker != "")
}

// scenarioOnly are the given flags that task definitions alone have no use for.
func (f *runFlags) scenarioOnly() []string {
	var flags []string
	if f.chaos.given {
		flags = append(flags, "-chaos")
	}
	if f.seed != nil {
		flags = append(flags, "-seed")
	}
	if f.stopOrder == bothOrders {
		flags = append(flags, "-stop-order both")
	}
	return flags
}
