package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/localecs/control"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

type execFlags struct {
	place
	container             string
	input, terminal, both bool
}

func execCommand() cli.Command {
	f := &execFlags{}
	return cli.Command{
		Synopsis: "Run a command in a container of a task",
		Usage:    "exec [flags] TASK [--] COMMAND [ARGUMENT...]",
		Help: `
Runs a command in a running container, as docker exec does: with the container's
programs, user, environment, working directory, read-only root and network. TASK is as
for localecs ps. Without -container it is the task's only container, or the one that is
named like its family.

Its output is what this command writes, and its exit status that of this command.
SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on. Standard input is empty without -i.

Exit status: the command's, 128+n after signal n, 127 when the container has no such
program, 126 when it is no program, 125 when it could not be tried.

Examples:
  $ localecs exec web -- id -u
  $ localecs exec -it -container sidecar-proxy web -- /bin/sh
  $ localecs exec -i web -- tee /tmp/in < file`,
		Flags: func(fs *flag.FlagSet) {
			f.place.add(fs)
			fs.StringVar(&f.container, "container", "", "run it in the container of that `name`")
			fs.BoolVar(&f.input, "i", false, "pass standard input on")
			fs.BoolVar(&f.terminal, "t", false, "give it a terminal of its own; this one has to be a terminal")
			fs.BoolVar(&f.both, "it", false, "-i and -t")
		},
		Run: f.run,
	}
}

func (f *execFlags) run(ctx context.Context, inv *cli.Invocation) error {
	if len(inv.Args) > 1 && inv.Args[1] == "--" {
		inv.Args = slices.Delete(inv.Args, 1, 2)
	}
	if len(inv.Args) < 2 {
		return failed(inv, "exec", runtime.CodeFailed, errors.New("want a task, and a command to run in it"))
	}
	code, err := f.attach(ctx, inv)
	return failed(inv, "exec", code, err)
}

// failed is the end of a command whose exit status is another's: an error of its own
// is told here.
func failed(inv *cli.Invocation, command string, code int, err error) error {
	if err != nil {
		fmt.Fprintf(inv.Stderr, "localecs %s: %v\n", command, err)
	}
	if code == cli.ExitOK {
		return nil
	}
	return &cli.ExitError{Code: code}
}

func (f *execFlags) attach(ctx context.Context, inv *cli.Invocation) (code int, err error) {
	client, s, err := f.now(ctx)
	if err != nil {
		return runtime.CodeFailed, err
	}
	task, err := s.One(inv.Args[0])
	if err != nil {
		return runtime.CodeFailed, err
	}
	container, err := choose(task, f.container)
	if err != nil {
		return runtime.CodeFailed, err
	}
	terminal := f.terminal || f.both
	io, err := openStreams(inv, Options{Input: f.input || f.both, Terminal: terminal})
	if err != nil {
		return runtime.CodeFailed, err
	}
	defer io.Close()
	return client.Attach(ctx, control.Request{
		Argv: inv.Args[1:], TaskID: task.ID, Container: container, Terminal: terminal,
	}, io.Session)
}

// choose is the container that is meant.
func choose(t control.Task, name string) (string, error) {
	var all, runs []string
	for _, c := range t.Containers {
		all = append(all, c.Name)
		if c.LastStatus == "RUNNING" {
			runs = append(runs, c.Name)
		}
	}
	switch {
	case name != "" && !slices.Contains(all, name):
		return "", control.NoSuch("container", name, all)
	case name != "" && !slices.Contains(runs, name):
		return "", fmt.Errorf("container %s of %s does not run", name, t.Name)
	case name != "":
		return name, nil
	case len(runs) == 0:
		return "", fmt.Errorf("no container of %s runs: %s", t.Name, t.Status())
	case len(runs) == 1:
		return runs[0], nil
	case slices.Contains(runs, t.Family):
		return t.Family, nil
	}
	return "", fmt.Errorf("%s has several containers: name one of them with -container: %s", t.Name, strings.Join(runs, ", "))
}
