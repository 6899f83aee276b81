package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/localecs/control"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

type waitFlags struct {
	location location
	given    []control.Condition
	timeout  time.Duration
	json     bool
}

func waitCommand() cli.Command {
	f := &waitFlags{}
	return cli.Command{
		Synopsis: "Wait for tasks or services to reach a state",
		Usage:    "wait [flags] NAME...",
		Help: `
Waits until all that are named have reached a state, at most -timeout. The run may have
been started a moment before, in the background: localecs wait also waits for it.

  -running TASK...      the task has become RUNNING
  -healthy TASK...      it is RUNNING and its essential containers that have a health
                        check are HEALTHY; if none has one, all others that have one
  -stopped TASK...      it has stopped, which is the default; as docker wait does,
                        this prints an exit code for each: that of the essential
                        container which exited first
  -steady SERVICE...    the ECS service has one deployment, complete, with all its
                        tasks
  -passing SERVICE...   Consul sends traffic to an instance of it; SERVICE=2: to two

A TASK is a name, an ARN, an ID or a prefix of one; a service or a family stands for
all its tasks that are not stopping, of which there has to be one.

After the timeout, and as soon as the state cannot be reached any more, the last lines
of the container that prevents it are on stderr. With -json the tasks and services that
were waited for are on stdout, as in localecs ps -json.

Exit status: 0 the state is reached; 1 usage, or it is not reached.

Example:
  $ localecs run examples/hello-mesh &
  $ localecs wait -healthy -timeout 60s web`,
		FlagsAnywhere: true,
		Flags: func(fs *flag.FlagSet) {
			f.location.add(fs)
			for c, usage := range map[control.Condition]string{
				control.Running: "wait until tasks run",
				control.Healthy: "wait until tasks are healthy",
				control.Stopped: "wait until tasks have stopped; the default",
				control.Steady:  "wait until ECS services are steady",
				control.Passing: "wait until Consul sends traffic to services",
			} {
				fs.BoolFunc(string(c), usage, func(value string) error {
					on, err := strconv.ParseBool(value)
					if on && !slices.Contains(f.given, c) {
						f.given = append(f.given, c)
					}
					return err
				})
			}
			fs.DurationVar(&f.timeout, "timeout", 120*time.Second, "how `long` to wait")
			fs.BoolVar(&f.json, "json", false, "write what was waited for as one JSON object")
		},
		Run: run(f.run),
	}
}

// targets reads the command line.
func (f *waitFlags) targets(args []string) ([]control.Target, error) {
	switch {
	case len(f.given) > 1:
		return nil, exit.Usagef("-running, -healthy, -stopped, -steady and -passing are mutually exclusive")
	case len(args) == 0:
		return nil, exit.Usagef("want the names of tasks or services")
	case f.timeout <= 0:
		return nil, exit.Usagef("-timeout: %s: want more than 0", f.timeout)
	}
	c := control.Stopped
	if len(f.given) > 0 {
		c = f.given[0]
	}
	targets, err := control.ParseTargets(c, args)
	return targets, usage(err)
}

func (f *waitFlags) run(ctx context.Context, inv *cli.Invocation) error {
	targets, err := f.targets(inv.Args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, f.timeout, errTimeout)
	defer cancel()
	dir, watch, err := f.find(ctx)
	if err != nil {
		return usage(err)
	}
	var s control.State
	var outcome control.Outcome
	err = watch(ctx, func(now control.State) bool {
		s = now
		outcome = control.Evaluate(targets, now)
		return outcome.Over
	})
	switch {
	case outcome.Met:
		return f.write(inv, targets, s)
	case err != nil && !errors.Is(err, errTimeout) && !errors.Is(err, control.ErrGone):
		return err
	}
	fmt.Fprintf(inv.Stderr, "localecs wait: %s%s\n", outcome.Text(f.reason(err, s)), logEnd(dir, outcome.Blame))
	return &exit.CodeError{Code: exit.CodeUsage}
}

// pollPeriod is the interval of looking for a run, and for new lines of logs.
const pollPeriod = 100 * time.Millisecond

var errTimeout = errors.New("timed out")

// reason returns why the wait ended, empty if the state cannot be reached.
func (f *waitFlags) reason(err error, s control.State) string {
	switch {
	case errors.Is(err, errTimeout):
		return fmt.Sprintf("timed out after %s", f.timeout)
	case err != nil || s.Ended:
		return "the run has ended"
	}
	return ""
}

// find waits until there is a run, or one has ended since the call: a run may be shorter than the
// polling interval. watch is Client.Watch, or calls back with the last state.
func (f *waitFlags) find(ctx context.Context) (dir string, watch func(context.Context, func(control.State) bool) error, err error) {
	tick := time.NewTicker(pollPeriod)
	defer tick.Stop()
	for started := time.Now(); ; {
		client, err := f.location.dial(context.WithoutCancel(ctx))
		if err == nil {
			return client.Directory, client.Watch, nil
		}
		if none := (*control.NoneError)(nil); !errors.As(err, &none) {
			return "", nil, err
		}
		switch last, failed := control.Ended(f.location.dir, started); {
		case failed != nil:
			return "", nil, failed
		case last != nil:
			return last.Directory, func(_ context.Context, see func(control.State) bool) error { see(*last); return nil }, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, errTimeout) {
				return "", nil, cause
			}
			if last, _ := control.Ended(f.location.dir, time.Time{}); last != nil { // an error here is less important
				err = fmt.Errorf("%w; the run in %s had ended before the wait started", err, last.Directory)
			}
			return "", nil, fmt.Errorf("timed out after %s: %w", f.timeout, err)
		}
	}
}

// write prints the result.
func (f *waitFlags) write(inv *cli.Invocation, targets []control.Target, s control.State) error {
	if f.json {
		return writeJSON(inv.Stdout, only(targets, s))
	}
	if targets[0].Condition != control.Stopped {
		return nil
	}
	for _, t := range only(targets, s).Tasks {
		code := "-" // no container of it started
		if c := t.Decider(); c != nil {
			code = exitText(*c)
		}
		if _, err := fmt.Fprintln(inv.Stdout, code); err != nil {
			return err
		}
	}
	return nil
}

// only reduces a state to the tasks and services of targets.
func only(targets []control.Target, s control.State) control.State {
	all := s
	s.Tasks, s.Services = []control.Task{}, []shapes.Service{}
	for _, t := range targets {
		if t.OfTasks() {
			s.Tasks = append(s.Tasks, all.Named(t.Name)...)
		}
		for _, v := range all.Services {
			if v.ServiceName == t.Name {
				s.Services = append(s.Services, v)
			}
		}
	}
	return s
}

// logEnd returns the end of a container's log, on its own lines.
func logEnd(dir string, b control.Blame) string {
	if b.Container == "" {
		return ""
	}
	const lines = 5
	var text strings.Builder
	path := filepath.Join(dir, "logs", b.Task, b.Container+".log")
	p := Printer{Out: &text, Logs: []Log{{Task: b.Task, Container: b.Container, Path: path}}, Tail: lines}
	if err := p.All(); err != nil {
		return "\n" + err.Error()
	}
	output := strings.TrimRight(text.String(), "\n")
	if output == "" {
		return fmt.Sprintf("\n%s: no output", b.Container)
	}
	return fmt.Sprintf("\n%s: last output:\n  %s", b.Container, strings.ReplaceAll(output, "\n", "\n  "))
}
