package command

import (
	"context"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/localecs/scenario"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// runTasks runs task definitions that have no scenario.
func (f *runFlags) runTasks(ctx context.Context, inv *cli.Invocation, paths []string) error {
	plan, warnings, err := f.prepareTasks(paths)
	if proceed, err := f.ready(inv, warnings, err, plan); !proceed {
		return err
	}
	defer f.closeListeners()
	dir, err := openStateDir(filepath.Join(f.dir, plan.Name()))
	if err != nil {
		return &exit.UsageError{Err: err}
	}
	defer dir.Close()
	stderr := inv.Stderr
	ctx, stop, release := twice(ctx, func() { go f.stopping(stderr) }, ends()...) // which may block
	defer release()
	ctx, out := watch(ctx, inv.Stdout)
	follow, giveBack, err := f.follower(ctx, inv, out)
	if err != nil {
		return err
	}
	defer giveBack()
	report, err := runPlan(ctx, plan, scenario.Options{
		Dir: dir.Name(), Docker: f.docker, StopOrder: f.stopOrder, Stop: stop, Progress: follow, Attend: serveScenario(dir.Name(), inv.Log), Listeners: f.listeners,
		Colour: !f.json && isTerminal(inv.Stdout) && inv.Getenv("NO_COLOR") == "", Log: inv.Log,
	})
	if err != nil {
		return err
	}
	if err := report.Write(out, f.json); err != nil {
		return context.Cause(ctx) // the write error
	}
	if len(report.Failures) > 0 {
		return &exit.CodeError{Code: exit.CodeRefused}
	}
	return nil
}

// stopping reports that the tasks have been asked to stop.
func (f *runFlags) stopping(stderr io.Writer) {
	if !f.json {
		fmt.Fprintln(stderr, "localecs run: stopping the tasks as ECS does; a second signal kills everything at once")
	}
}

// prepareTasks reads and checks everything before anything is changed.
func (f *runFlags) prepareTasks(paths []string) (*scenario.Plan, []string, error) {
	if _, err := f.orders(); err != nil {
		return nil, nil, err
	}
	values, err := variables(f.vars)
	if err != nil {
		return nil, nil, err
	}
	s := f.tasks.sources
	s.Publish, s.Outside = f.publish, f.outside
	s.Vars, s.Network, s.EngineImages = values, f.network, f.docker != "" // which then has images without a setting
	return scenario.PrepareDefinitions(paths, s)
}

// scenarioOnly returns the given flags that require a scenario.
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

// definitionFlags are those of `localecs run` for task definitions without a scenario.
type definitionFlags struct {
	sources scenario.Sources
	given   bool
}

// Add declares them.
func (f *definitionFlags) Add(fs *flag.FlagSet) {
	s := &f.sources
	s.Secrets, s.EnvironmentFiles = map[string]string{}, map[string]string{}
	take := func(name, usage string, set func(string) error) {
		fs.Func(name, "of task definitions: "+usage, func(text string) error {
			f.given = true
			return set(text)
		})
	}
	take("image", "programs of an image, `IMAGE=PROGRAM,...`: names, paths or directories of this machine, or host for "+
		"all of it; IMAGE may be *; may be repeated", s.Images.Set)
	take("entrypoint", "the image's ENTRYPOINT, `IMAGE=WORDS`; may be repeated", s.Images.SetEntrypoint)
	take("cmd", "the image's CMD, `IMAGE=WORDS`; without it the first program of -image; may be repeated",
		s.Images.SetCommand)
	take("secret", "the value behind a valueFrom, `NAME=VALUE`, or NAME=@FILE with the value in a file; may be repeated",
		secretFlag(s.Secrets))
	take("environment-file", "the file behind an ARN of environmentFiles, `ARN=FILE`; may be repeated",
		func(text string) error {
			arn, path, _ := strings.Cut(text, "=")
			absolute, err := filepath.Abs(path)
			if err != nil || arn == "" || path == "" {
				return fmt.Errorf("want ARN=FILE, got %q", text)
			}
			s.EnvironmentFiles[arn] = absolute
			return nil
		})
	take("images", "scenario `file or directory` with the same settings, in place of "+scenario.SettingName+" beside the definition", func(path string) error {
		s.Setting = path
		return nil
	})
}

func pairFlag(of map[string]string) func(string) error {
	return func(text string) error {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return fmt.Errorf("want NAME=VALUE, got %q", text)
		}
		of[name] = value
		return nil
	}
}

// secretFlag returns pairFlag's, which reads @FILE.
func secretFlag(of map[string]string) func(string) error {
	return func(text string) error {
		if err := pairFlag(of)(text); err != nil {
			return err
		}
		name, value, _ := strings.Cut(text, "=")
		path, in := strings.CutPrefix(value, "@")
		if !in {
			return nil
		}
		value, err := file.ReadSecret(path)
		of[name] = value
		return err
	}
}

// Definitions returns the arguments if they are task definitions, and none if they are scenarios. A
// mix of both, and flags for the other kind, are errors. scenarioOnly are the given flags that are
// for scenarios.
func (f *definitionFlags) Definitions(args, scenarioOnly []string) ([]string, error) {
	var found []string
	for _, path := range args {
		if scenario.IsDefinition(path) {
			found = append(found, path)
		}
	}
	switch {
	case len(found) == 0 && f.given && len(args) > 0 && isPipe(args[0]):
		return nil, fmt.Errorf("%s is a pipe: task definitions are read more than once, so write it to a file", args[0])
	case len(found) == 0 && f.given && len(args) > 0:
		return nil, hint(args[0], fmt.Errorf("-image, -entrypoint, -cmd, -secret, -environment-file and -images are for task definitions, which %s is not: set them in the scenario's file", args[0]))
	case len(found) == 0:
		return nil, nil
	case len(found) < len(args):
		return nil, fmt.Errorf("%s is a task definition and other arguments are not: run scenarios separately", found[0])
	case len(scenarioOnly) > 0:
		return nil, fmt.Errorf("%s: for scenarios only", strings.Join(scenarioOnly, ", "))
	}
	return found, nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func isPipe(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode()&fs.ModeNamedPipe != 0
}

// hint explains why a directory without a scenario cannot run if it has task
// definitions.
func hint(path string, err error) error {
	names, _ := filepath.Glob(filepath.Join(path, "*.json"))
	var found []string
	for _, name := range names {
		if data, err := os.ReadFile(name); err == nil && scenario.LooksLikeDefinition(data) {
			found = append(found, name)
		}
	}
	if err == nil || len(found) == 0 {
		return err
	}
	return fmt.Errorf("%w; its task definitions run with: localecs run %s", err, strings.Join(found, " "))
}

// together is the time in which signals count as one: timeout(1) signals the program and then its
// group, and so does a terminal if this process is a child in a user namespace.
const together = 500 * time.Millisecond

// twice calls notify and closes stop at the first of the signals, and ends the context at the next.
func twice(parent context.Context, notify func(), ends ...os.Signal) (ctx context.Context, stop <-chan struct{}, release func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals, asked := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, ends...)
	go func() {
		var first time.Time
		for {
			select {
			case s := <-signals:
				switch {
				case first.IsZero():
					first = time.Now()
					notify()
					close(asked)
				case time.Since(first) > together:
					cancel(&exit.SignalError{Signal: s})
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, asked, func() {
		signal.Stop(signals)
		cancel(context.Canceled)
	}
}
