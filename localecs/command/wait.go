package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/localecs/control"
)

type waitFlags struct {
	place
	running, healthy, stopped, steady, passing bool
	timeout                                    time.Duration
	json                                       bool
}

func waitCommand() cli.Command {
	f := &waitFlags{}
	return cli.Command{
		Synopsis: "Wait until tasks or services are as they are to be",
		Usage:    "wait [flags] NAME...",
		Help: `
Waits until something is true of all that are named, at most -timeout. The run may
have been started a moment ago, in the background: that it can be reached is waited
for, too.

  -running TASK...      the task has become RUNNING
  -healthy TASK...      it is RUNNING and its essential containers that have a health
                        check are HEALTHY
  -stopped TASK...      it has stopped, which is the default; as docker wait does,
                        this prints an exit code for each: that of the essential
                        container which ended first
  -steady SERVICE...    the ECS service has one deployment, complete, with all its
                        tasks
  -passing SERVICE...   Consul sends traffic to an instance of it; SERVICE=2: to two

A TASK is a name, an ARN, an ID or its beginning; a service or a family stands for
all its tasks that are not stopping, of which there has to be one.

When the time is up, and at once when it cannot come true any more, the last lines
of the container that is to blame are on stderr. With -json the tasks and services
that were waited for are on stdout, as in localecs ps -json.

Exit status: 0 it is so, 1 usage, or it is not so.

Example:
  $ localecs run examples/hello-mesh &
  $ localecs wait -healthy -timeout 60s web`,
		FlagsAnywhere: true,
		Flags: func(fs *flag.FlagSet) {
			f.place.add(fs)
			fs.BoolVar(&f.running, "running", false, "wait until tasks run")
			fs.BoolVar(&f.healthy, "healthy", false, "wait until tasks are healthy")
			fs.BoolVar(&f.stopped, "stopped", false, "wait until tasks have stopped; the default")
			fs.BoolVar(&f.steady, "steady", false, "wait until ECS services are steady")
			fs.BoolVar(&f.passing, "passing", false, "wait until Consul sends traffic to services")
			fs.DurationVar(&f.timeout, "timeout", 120*time.Second, "how `long` to wait")
			fs.BoolVar(&f.json, "json", false, "write what was waited for as one JSON object")
		},
		Run: run(f.run),
	}
}

// condition is what the flags say.
func (f *waitFlags) condition() (control.Condition, error) {
	chosen := control.Stopped
	n := 0
	for c, given := range map[control.Condition]bool{control.Running: f.running, control.Healthy: f.healthy, control.Stopped: f.stopped, control.Steady: f.steady, control.Passing: f.passing} {
		if given {
			chosen = c
			n++
		}
	}
	if n > 1 {
		return "", cli.Usagef("-running, -healthy, -stopped, -steady and -passing: give one of them")
	}
	return chosen, nil
}

func (f *waitFlags) run(ctx context.Context, inv *cli.Invocation) error {
	c, err := f.condition()
	if err != nil {
		return err
	}
	if len(inv.Args) == 0 {
		return cli.Usagef("want the names of tasks or services")
	}
	if f.timeout <= 0 {
		return cli.Usagef("-timeout: %s: want more than 0", f.timeout)
	}
	wishes, err := control.Parse(c, inv.Args)
	if err != nil {
		return usage(err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, f.timeout, errTimeUp)
	defer cancel()
	dir, watch, err := f.find(ctx)
	if err != nil {
		return usage(err)
	}
	var s control.State
	var verdict control.Outcome
	err = watch(ctx, func(now control.State) bool {
		s = now
		verdict = control.Judge(wishes, now)
		return verdict.Over()
	})
	switch {
	case verdict.Met():
		return f.write(inv, wishes, s)
	case err != nil && !errors.Is(err, errTimeUp) && !errors.Is(err, control.ErrGone):
		return err
	}
	fmt.Fprintf(inv.Stderr, "localecs wait: %s%s\n", verdict.Text(f.reason(err, s)), lastWords(dir, verdict.Blame()))
	return &cli.ExitError{Code: cli.ExitUsage}
}

// lookPeriod is how often a run is looked for.
const lookPeriod = 100 * time.Millisecond

var errTimeUp = errors.New("time is up")

// reason is why nothing more is waited for, empty when it cannot come true.
func (f *waitFlags) reason(err error, s control.State) string {
	switch {
	case errors.Is(err, errTimeUp):
		return fmt.Sprintf("not within %s", f.timeout)
	case err != nil || s.Ended:
		return "the run has ended"
	}
	return ""
}

// find waits until there is a run, or one has ended meanwhile: it may have taken less
// time than lies between two looks. watch is Client.Watch.
func (f *waitFlags) find(ctx context.Context) (dir string, watch func(context.Context, func(control.State) bool) error, err error) {
	tick := time.NewTicker(lookPeriod)
	defer tick.Stop()
	for begun := time.Now(); ; {
		client, err := f.dial(context.WithoutCancel(ctx))
		if err == nil {
			return client.Directory, client.Watch, nil
		}
		if none := (*control.NoneError)(nil); !errors.As(err, &none) {
			return "", nil, err
		}
		switch last, failed := control.Ended(f.dir, begun); {
		case failed != nil:
			return "", nil, failed
		case last != nil:
			return last.Directory, func(_ context.Context, see func(control.State) bool) error { see(*last); return nil }, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, errTimeUp) {
				return "", nil, cause
			}
			if last, _ := control.Ended(f.dir, time.Time{}); last != nil { // an error is no reason to say less
				err = fmt.Errorf("%w; the run in %s had ended before the wait began", err, last.Directory)
			}
			return "", nil, fmt.Errorf("not within %s: %w", f.timeout, err)
		}
	}
}

// write says what has come.
func (f *waitFlags) write(inv *cli.Invocation, wishes []control.Wish, s control.State) error {
	if f.json {
		return writeJSON(inv.Stdout, about(wishes, s))
	}
	if wishes[0].Condition != control.Stopped {
		return nil
	}
	for _, w := range wishes {
		for _, t := range s.Named(w.Name) {
			code := "-" // none of it ever ran
			if c := t.Decider(); c != nil {
				code = exit(*c)
			}
			if _, err := fmt.Fprintln(inv.Stdout, code); err != nil {
				return err
			}
		}
	}
	return nil
}

// about leaves of a state what the wishes are about.
func about(wishes []control.Wish, s control.State) control.State {
	all := s
	s.Tasks, s.Services = []control.Task{}, []control.Service{}
	for _, w := range wishes {
		if w.OfTasks() {
			s.Tasks = append(s.Tasks, all.Named(w.Name)...)
		}
		for _, v := range all.Services {
			if v.Name == w.Name {
				s.Services = append(s.Services, v)
			}
		}
	}
	return s
}

// lastLines is how much of a log is shown.
const lastLines = 5

// lastWords are the last lines of a container's log, each below the other.
func lastWords(dir string, b control.Blame) string {
	if b.Container == "" {
		return ""
	}
	var text strings.Builder
	path := filepath.Join(dir, "logs", b.Task, b.Container+".log")
	p := Printer{Out: &text, Logs: []Log{{Task: b.Task, Container: b.Container, Path: path}}, Tail: lastLines}
	if err := p.All(); err != nil {
		return "\n" + err.Error()
	}
	said := strings.TrimRight(text.String(), "\n")
	if said == "" {
		return fmt.Sprintf("\n%s has said nothing", b.Container)
	}
	return fmt.Sprintf("\n%s said last:\n  %s", b.Container, strings.ReplaceAll(said, "\n", "\n  "))
}
