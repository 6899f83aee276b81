package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/localecs/control"
)

type stopFlags struct {
	place
	all, json bool
}

func stopCommand() cli.Command {
	f := &stopFlags{}
	return cli.Command{
		Synopsis: "Stop tasks in ECS's order, or end a run",
		Usage:    "stop [flags] TASK... | stop [flags] -all",
		Help: `
Asks tasks to stop, as aws ecs stop-task does, and waits until they have: containers
get their stop signals in reverse dependsOn order, and are killed when their
stopTimeout is over. A service replaces a task of its own. To a scenario it is no
surprise that such a task ends, but what it awaits of the task will not come.

With -all all services are deleted and all tasks stopped in that order, and then
the run ends: localecs run of a scenario with exit status 3, since nothing was judged,
of task definitions as when they end by themselves, localecs serve with 0.

With -json the tasks are on stdout as in localecs ps -json.

Exit status: 0 they have stopped, 1 usage or no such task, 3 nothing runs there, or
the run was killed meanwhile.

Example:
  $ localecs stop web
  $ localecs stop -all`,
		FlagsAnywhere: true,
		Flags: func(fs *flag.FlagSet) {
			f.place.add(fs)
			fs.BoolVar(&f.all, "all", false, "stop all tasks, and then the run")
			fs.BoolVar(&f.json, "json", false, "write the tasks as one JSON object when they have stopped")
		},
		Run: run(f.run),
	}
}

func (f *stopFlags) run(ctx context.Context, inv *cli.Invocation) error {
	if f.all != (len(inv.Args) == 0) {
		return cli.Usagef("want names of tasks, or -all")
	}
	client, s, err := f.now(ctx)
	if err != nil {
		return err
	}
	var ids []string
	for _, word := range inv.Args {
		t, err := s.One(word)
		if err != nil {
			return usage(err)
		}
		ids = append(ids, t.ID)
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

// await waits until the tasks have stopped; all, and the run, when there are no
// IDs.
func (f *stopFlags) await(ctx context.Context, client *control.Client, ids []string) (last control.State, err error) {
	err = client.Watch(ctx, func(s control.State) bool {
		last = s
		left := slices.DeleteFunc(slices.Clone(s.Tasks), func(t control.Task) bool {
			return t.Stopped() || !slices.Contains(ids, t.ID)
		})
		return !f.all && len(left) == 0
	})
	if errors.Is(err, control.ErrGone) {
		return last, fmt.Errorf("%w before all was stopped in order", err)
	}
	if !f.all {
		last.Tasks = slices.DeleteFunc(last.Tasks, func(t control.Task) bool { return !slices.Contains(ids, t.ID) })
	}
	return last, err
}

// write says what has stopped, as docker stop does.
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
