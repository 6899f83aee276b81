package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/localecs/control"
)

type stopFlags struct {
	location  location
	all, json bool
}

func stopCommand() cli.Command {
	f := &stopFlags{}
	return cli.Command{
		Synopsis: "Stop tasks in ECS's order, or end a run",
		Usage:    "stop [flags] TASK... | stop [flags] -all",
		Help: `
Stops tasks, as aws ecs stop-task does, and waits for them: containers get their stop
signals in reverse dependsOn order, and are killed after their stopTimeout. A service
replaces a task that was stopped. A scenario accepts that such a task ends, but steps
that wait for it fail.

With -all it deletes all services, stops all tasks in that order, and then ends the
run: localecs run of a scenario with exit status 3, since the checks were not
evaluated; of task definitions with the status of the tasks; localecs serve with 0.

With -json the tasks are on stdout as in localecs ps -json.

Exit status: 0 the tasks have stopped; 1 usage or no such task; 3 no run, or the run was
killed.

Example:
  $ localecs stop web
  $ localecs stop -all`,
		FlagsAnywhere: true,
		Flags: func(fs *flag.FlagSet) {
			f.location.add(fs)
			fs.BoolVar(&f.all, "all", false, "stop all tasks, then end the run")
			fs.BoolVar(&f.json, "json", false, "write the tasks as one JSON object when they have stopped")
		},
		Run: run(f.run),
	}
}

func (f *stopFlags) run(ctx context.Context, inv *cli.Invocation) error {
	if f.all != (len(inv.Args) == 0) {
		return exit.Usagef("want task names, or -all")
	}
	client, s, err := f.location.now(ctx)
	if err != nil {
		return err
	}
	var ids []string
	for _, word := range inv.Args {
		t, err := s.One(word)
		if err != nil {
			return usage(err)
		}
		ids = append(ids, t.ID())
	}
	if f.all {
		err = client.End(ctx)
	} else {
		err = client.Stop(ctx, ids...)
	}
	if err != nil {
		return err
	}
	last, err := f.await(ctx, client, ids)
	if err != nil {
		return err
	}
	return f.write(inv, last)
}

// await waits until the tasks with these IDs have stopped, or with -all until the run has ended.
func (f *stopFlags) await(ctx context.Context, client *control.Client, ids []string) (last control.State, err error) {
	err = client.Watch(ctx, func(s control.State) bool {
		last = s
		left := slices.DeleteFunc(slices.Clone(s.Tasks), func(t control.Task) bool {
			return t.Stopped() || !slices.Contains(ids, t.ID())
		})
		return !f.all && len(left) == 0
	})
	if errors.Is(err, control.ErrGone) {
		return last, fmt.Errorf("%w before all tasks were stopped", err)
	}
	if !f.all {
		last.Tasks = slices.DeleteFunc(last.Tasks, func(t control.Task) bool { return !slices.Contains(ids, t.ID()) })
	}
	return last, err
}

// write prints the names of the tasks, as docker stop does.
func (f *stopFlags) write(inv *cli.Invocation, s control.State) error {
	if f.json {
		return writeJSON(inv.Stdout, s)
	}
	for _, t := range s.Tasks {
		if _, err := fmt.Fprintln(inv.Stdout, t.Name); err != nil {
			return err
		}
	}
	return nil
}
