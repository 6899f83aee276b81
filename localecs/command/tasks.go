package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/localecs/command/attend"
	"github.com/meshtask/consul-ecs/localecs/command/output"
	"github.com/meshtask/consul-ecs/localecs/command/statedir"
	"github.com/meshtask/consul-ecs/localecs/command/tasks"
	"github.com/meshtask/consul-ecs/localecs/command/tty"
	"github.com/meshtask/consul-ecs/localecs/plain"
	"github.com/meshtask/consul-ecs/localecs/region"
	"github.com/meshtask/consul-ecs/localecs/scenario/report"
)

// runTasks runs task definitions that have no scenario.
func (f *runFlags) runTasks(ctx context.Context, inv *cli.Invocation, paths []string) error {
	plan, warnings, err := f.prepareTasks(paths)
	if goOn, err := f.ready(inv, warnings, err); !goOn {
		return err
	}
	dir, err := statedir.Open(filepath.Join(f.dir, plan.Name()))
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	defer dir.Close()
	ctx, stop, release := tasks.Twice(ctx, func() { f.stopping(inv) }, ends()...)
	defer release()
	ctx, out := output.Watch(ctx, inv.Stdout)
	if f.mode == auto {
		f.mode = plainMode
	}
	follow, giveBack, err := f.follower(inv, out)
	if err != nil {
		return err
	}
	defer giveBack()
	_, terminal := tty.Of(inv.Stdout)
	attended := func(r *region.Region) func() {
		return attend.Region("run", plan.Name(), plan.Tasks(), r, dir.Name(), func() {}, inv.Log)
	}
	outcome, err := plan.Run(ctx, plain.Options{
		Dir: dir.Name(), Docker: f.docker, StopOrder: f.stopOrder, Stop: stop, Progress: follow, Attend: attended,
		Colour: terminal && !f.json && inv.Getenv("NO_COLOR") == "", Log: inv.Log,
	})
	if err != nil {
		return err
	}
	if !f.json {
		err = f.picture.Show(inv, out, &report.Report{History: outcome.History})
	}
	if err := errors.Join(err, outcome.Write(out, f.json)); err != nil {
		return context.Cause(ctx) // what out made of it
	}
	if len(outcome.Failures) > 0 {
		return &cli.ExitError{Code: cli.ExitRefused}
	}
	return nil
}

// stopping tells people that a stop has been heard, which takes its time.
func (f *runFlags) stopping(inv *cli.Invocation) {
	if !f.json {
		fmt.Fprintln(inv.Stderr, "localecs run: stopping the tasks as ECS does; once more kills everything at once")
	}
}

// prepareTasks looks at everything that was given before anything is touched.
func (f *runFlags) prepareTasks(paths []string) (*plain.Plan, []string, error) {
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
