package command

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/localecs/control"
)

type logsFlags struct {
	location location
	follow   bool
	tail     int
	json     bool
}

func logsCommand() cli.Command {
	f := &logsFlags{}
	return cli.Command{
		Synopsis: "Print the output of a task's containers",
		Usage:    "logs [flags] TASK [CONTAINER]",
		Help: `
Prints what a task's containers, or one of them, have written to standard output and
error. TASK is as for localecs ps; consul-server is the run's Consul server. With several
containers each line starts with the container's name, one container after the other;
with -f lines come as they are written.

It also works for a run that has ended: the logs stay below -dir until the next run
there. With -f it ends when the task has stopped, or the run.

Logs have no timestamps, so there is no -since and no -timestamps.

Exit status: 0; 1 usage or no such task; 3 there was no run.

Examples:
  $ localecs logs web
  $ localecs logs -f -tail 20 web sidecar-proxy`,
		FlagsAnywhere: true,
		Flags: func(fs *flag.FlagSet) {
			f.location.add(fs)
			fs.BoolVar(&f.follow, "f", false, "follow the output until the task has stopped")
			fs.IntVar(&f.tail, "tail", -1, "start with the last `N` lines of each container; all if negative")
			fs.BoolVar(&f.json, "json", false, "write each line as an object with task, container and line")
		},
		Run: run(f.run),
	}
}

func (f *logsFlags) run(ctx context.Context, inv *cli.Invocation) error {
	if len(inv.Args) < 1 || len(inv.Args) > 2 {
		return exit.Usagef("want a task and optionally one of its containers")
	}
	task, container := inv.Args[0], ""
	if len(inv.Args) == 2 {
		container = inv.Args[1]
	}
	client, s, err := f.location.now(ctx)
	none := (*control.NoneError)(nil)
	if err != nil && !errors.As(err, &none) && !errors.Is(err, control.ErrGone) {
		return err
	}
	if err != nil {
		client = nil
	}
	files, err := f.find(client, s, task)
	if err == nil {
		files, err = ofContainer(files, container)
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

// find returns the logs of a task: of the current run, or, without a client, of one that has ended.
func (f *logsFlags) find(client *control.Client, s control.State, task string) ([]Log, error) {
	dirs := control.Directories(f.location.dir)
	var unknown error
	if client != nil {
		dirs = []string{client.Directory}
		t, err := s.One(task)
		if err == nil {
			task = t.Name
		}
		unknown = err // unless it is the Consul server, or a task that stopped over an hour ago
	}
	var names, with []string
	var files []Log
	for _, d := range dirs {
		logs := filepath.Join(d, "logs")
		names = append(names, taskNames(logs)...)
		if found, err := inTask(logs, task); err == nil {
			files, with = found, append(with, d)
		}
	}
	switch {
	case len(with) > 1:
		return nil, usage(fmt.Errorf("%d runs below %s had a task %s: name one with -dir %s", len(with), f.location.dir, task, strings.Join(with, " or -dir ")))
	case len(with) == 1:
		return files, nil
	case unknown != nil:
		return nil, usage(unknown)
	case len(names) == 0:
		return nil, fmt.Errorf("there was no run below %s", f.location.dir)
	}
	return nil, usage(control.NoSuch("task", task, names))
}

// taskNames returns the tasks that have logs.
func taskNames(logs string) (names []string) {
	entries, _ := os.ReadDir(logs) // none if it does not exist
	for _, e := range entries {
		if name, isLog := strings.CutSuffix(e.Name(), ".log"); isLog || e.IsDir() {
			names = append(names, name)
		}
	}
	return names
}

// inTask returns the logs of a task, or of the Consul server.
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

// ofContainer returns the log of one container, or all if none is named.
func ofContainer(files []Log, container string) ([]Log, error) {
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

// until closes over when a task has stopped, or the run has ended.
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

// Log is the log of a container.
type Log struct {
	Task, Container, Path string
}

// Printer prints logs, once.
type Printer struct {
	Out  io.Writer
	Logs []Log
	// JSON writes each line as an object.
	JSON bool
	// Tail is the number of lines of each log to start with; all if it is negative.
	Tail int

	open []*source
}

// source is an open log.
type source struct {
	Log
	file *os.File
	rest []byte // of a line that has not ended
}

// Follow prints what the logs contain, and what is added until over is closed.
func (p *Printer) Follow(ctx context.Context, over <-chan struct{}) error {
	defer p.close()
	tick := time.NewTicker(pollPeriod)
	defer tick.Stop()
	for last := false; ; {
		if err := p.more(last); err != nil || last {
			return err
		}
		select {
		case <-tick.C:
		case <-over:
			last = true
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// All prints what the logs contain.
func (p *Printer) All() error {
	defer p.close()
	return p.more(true)
}

// more prints new lines. With last it includes those that have not ended.
func (p *Printer) more(last bool) error {
	tail := p.Tail
	if p.open != nil {
		tail = -1
	}
	for i, l := range p.Logs {
		if i == len(p.open) {
			file, err := os.Open(l.Path)
			if err != nil {
				return err
			}
			p.open = append(p.open, &source{Log: l, file: file})
		}
		if err := p.from(p.open[i], tail, last); err != nil {
			return err
		}
	}
	return nil
}

// from prints the last new lines of one log, all if tail is negative.
func (p *Printer) from(s *source, tail int, last bool) error {
	var kept [][]byte
	for r := bufio.NewReader(s.file); ; {
		part, err := r.ReadBytes('\n')
		s.rest = append(s.rest, part...)
		if err != nil && err != io.EOF {
			return fmt.Errorf("read %s: %w", s.Path, err)
		}
		if err == nil || last && len(s.rest) > 0 {
			line := bytes.TrimSuffix(s.rest, []byte("\n"))
			s.rest = nil
			kept = append(kept, line)
		}
		if tail >= 0 && len(kept) > tail {
			kept = kept[1:]
		}
		if tail < 0 || err == io.EOF {
			for _, line := range kept {
				if err := p.line(s.Log, line); err != nil {
					return err
				}
			}
			kept = nil
		}
		if err == io.EOF {
			return nil
		}
	}
}

func (p *Printer) line(l Log, text []byte) error {
	if p.JSON {
		return writeJSON(p.Out, struct {
			Task      string `json:"task"`
			Container string `json:"container"`
			Line      string `json:"line"`
		}{l.Task, l.Container, string(text)})
	}
	prefix := ""
	if len(p.Logs) > 1 {
		width := 0
		for _, l := range p.Logs {
			width = max(width, len(l.Container))
		}
		prefix = fmt.Sprintf("%-*s | ", width, l.Container)
	}
	_, err := fmt.Fprintf(p.Out, "%s%s\n", prefix, text)
	return err
}

func (p *Printer) close() {
	for _, s := range p.open {
		s.file.Close()
	}
}
