package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/localecs/control"
)

type logsFlags struct {
	place
	follow bool
	tail   int
	json   bool
}

func logsCommand() cli.Command {
	f := &logsFlags{}
	return cli.Command{
		Synopsis: "Print the output of a task's containers",
		Usage:    "logs [flags] TASK [CONTAINER]",
		Help: `
Prints what a task's containers have written to their standard output and error, or
one container. TASK is as for localecs ps; consul-server is the run's Consul server.
Of several containers each line begins with the container's name, one container
after the other; with -f lines come as they are written.

It also works for a run that has ended: the logs stay below -dir until the next run
there. With -f it ends when the task has stopped, or the run.

There are no times of lines, since none are kept: -since and -timestamps of docker
do not exist here.

Exit status: 0, 1 usage or no such task, 3 no run has been there.

Examples:
  $ localecs logs web
  $ localecs logs -f -tail 20 web sidecar-proxy`,
		FlagsAnywhere: true,
		Flags: func(fs *flag.FlagSet) {
			f.place.add(fs)
			fs.BoolVar(&f.follow, "f", false, "go on with what is written from now on, until the task has stopped")
			fs.IntVar(&f.tail, "tail", -1, "begin with the last `N` lines of each container; negative is all")
			fs.BoolVar(&f.json, "json", false, "write each line as an object with task, container and line")
		},
		Run: run(f.run),
	}
}

func (f *logsFlags) run(ctx context.Context, inv *cli.Invocation) error {
	if len(inv.Args) < 1 || len(inv.Args) > 2 {
		return cli.Usagef("want a task, and perhaps one of its containers")
	}
	task, container := inv.Args[0], ""
	if len(inv.Args) == 2 {
		container = inv.Args[1]
	}
	client, s, err := f.now(ctx)
	none := (*control.NoneError)(nil)
	if err != nil && !errors.As(err, &none) && !errors.Is(err, control.ErrGone) {
		return err
	}
	var files []Log
	if err == nil {
		files, err = present(client.Directory, s, task)
	} else {
		client = nil
		files, err = former(f.dir, task)
	}
	if err == nil {
		files, err = only(files, task, container)
	}
	if err != nil {
		return err
	}
	p := &Printer{Out: inv.Stdout, Logs: files, JSON: f.json, Tail: f.tail}
	if !f.follow || client == nil {
		return p.All()
	}
	over, stop := until(ctx, client, files[0].Task)
	defer stop()
	return p.Follow(ctx, over)
}

// present are the logs of a task of a run that goes on.
func present(dir string, s control.State, word string) ([]Log, error) {
	t, err := s.One(word)
	if err == nil {
		return inTask(filepath.Join(dir, "logs"), t.Name)
	}
	if files, missing := inTask(filepath.Join(dir, "logs"), word); missing == nil { // a service's, or older than an hour
		return files, nil
	}
	return nil, usage(err)
}

// former are the logs of a task of a run that has ended, below dir.
func former(dir, task string) ([]Log, error) {
	dirs := []string{dir}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("no run has been below %s: %w", dir, err)
	}
	for _, e := range entries {
		dirs = append(dirs, filepath.Join(dir, e.Name()))
	}
	var names, with []string
	var files []Log
	for _, d := range dirs {
		logs := filepath.Join(d, "logs")
		names = append(names, taskNames(logs)...)
		found, err := inTask(logs, task)
		if err == nil {
			files, with = found, append(with, d)
		}
	}
	switch {
	case len(with) > 1:
		return nil, usage(fmt.Errorf("%d runs below %s have had a task %s: name one with -dir %s", len(with), dir, task, strings.Join(with, " or -dir ")))
	case len(with) == 1:
		return files, nil
	case len(names) == 0:
		return nil, fmt.Errorf("no run has been below %s", dir)
	}
	return nil, usage(control.NoSuch("task", task, names))
}

// taskNames are the tasks that have logs.
func taskNames(logs string) (names []string) {
	entries, _ := os.ReadDir(logs) // of what does not exist there are none
	for _, e := range entries {
		if name, isLog := strings.CutSuffix(e.Name(), ".log"); isLog || e.IsDir() {
			names = append(names, name)
		}
	}
	return names
}

// inTask are the logs of a task, or of a service of the network.
func inTask(logs, task string) ([]Log, error) {
	if task != filepath.Base(task) {
		return nil, fs.ErrNotExist
	}
	if single := filepath.Join(logs, task+".log"); exists(single) {
		return []Log{{Task: task, Container: task, Path: single}}, nil
	}
	entries, err := os.ReadDir(filepath.Join(logs, task))
	var files []Log
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".log"); ok {
			files = append(files, Log{Task: task, Container: name, Path: filepath.Join(logs, task, e.Name())})
		}
	}
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("task %s has no logs", task)
	}
	return files, err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// only leaves the log of one container, if one is named.
func only(files []Log, task, container string) ([]Log, error) {
	if container == "" {
		return files, nil
	}
	var names []string
	for _, f := range files {
		if f.Container == container {
			return []Log{f}, nil
		}
		names = append(names, f.Container)
	}
	return nil, usage(control.NoSuch("container", container, names))
}

// until closes over when a task has stopped, or the run is over.
func until(ctx context.Context, c *control.Client, task string) (over chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	over = make(chan struct{})
	go func() {
		defer close(over)
		_ = c.Watch(ctx, func(s control.State) bool { // an error is an end, too
			return slices.ContainsFunc(s.Tasks, func(t control.Task) bool { return t.Name == task && t.Stopped() })
		})
	}()
	return over, func() {
		cancel()
		<-over
	}
}
