package command

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/localecs/scenario"
)

// Flags are those of `localecs run` for task definitions without a scenario.
type Flags struct {
	sources scenario.Sources
	given   bool
}

// Add declares them.
func (f *Flags) Add(fs *flag.FlagSet) {
	s := &f.sources
	s.Secrets, s.EnvironmentFiles = map[string]string{}, map[string]string{}
	take := func(name, usage string, set func(string) error) {
		fs.Func(name, "of task definitions: "+usage, func(text string) error {
			f.given = true
			return set(text)
		})
	}
	take("image", "what containers of an image see, `IMAGE=PROGRAM,...`: names, paths or directories of this machine, or host for all it has; IMAGE may be *; may be repeated", s.Images.Set)
	take("entrypoint", "the image's ENTRYPOINT, `IMAGE=WORDS`; may be repeated", s.Images.SetEntrypoint)
	take("cmd", "the image's CMD, `IMAGE=WORDS`; without it the first program of -image; may be repeated", s.Images.SetCommand)
	take("secret", "the value behind a valueFrom, `NAME=VALUE`; may be repeated", pairFlag(s.Secrets))
	take("environment-file", "the file behind an ARN of environmentFiles, `ARN=FILE`; may be repeated", pairFlag(s.EnvironmentFiles))
	take("images", "scenario `file or directory` that says the same, in place of "+scenario.SettingName+" beside the definition", func(path string) error {
		s.Setting = path
		return nil
	})
}

// Prepare plans a run of the definitions. vars are the variables of images; with
// engine, those that nothing is said about are a container engine's.
func (f *Flags) Prepare(paths []string, vars map[string]string, mode network.Mode, engine bool) (*scenario.Plan, []string, error) {
	s := f.sources
	s.Vars, s.Network, s.EngineImages = vars, mode, engine
	return scenario.PrepareDefinitions(paths, s)
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

// Definitions are the arguments when they are task definitions, none when they are
// scenarios. It is an error when some are and others are not, or when flags are for
// the others. scenarioOnly are flags that were given and are for scenarios.
func (f *Flags) Definitions(args, scenarioOnly []string) ([]string, error) {
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
		return nil, Hint(args[0], fmt.Errorf("-image, -entrypoint, -cmd, -secret, -environment-file and -images are for task definitions, which %s is not: a scenario says it in its file", args[0]))
	case len(found) == 0:
		return nil, nil
	case len(found) < len(args):
		return nil, fmt.Errorf("%s is a task definition and other arguments are not: run scenarios by themselves", found[0])
	case len(scenarioOnly) > 0:
		return nil, fmt.Errorf("%s: for scenarios only", strings.Join(scenarioOnly, ", "))
	}
	return found, nil
}

func isPipe(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode()&fs.ModeNamedPipe != 0
}

// Hint explains why a directory without a scenario cannot run if it has task
// definitions.
func Hint(path string, err error) error {
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

// together is how long signals belong to the first one: timeout(1) sends it to the
// program and then to its group, and so does a terminal where we have a parent in a
// user namespace.
const together = 500 * time.Millisecond

// Twice closes stop at the first signal that ends a run, after telling so, and ends
// the context at the next one.
func Twice(parent context.Context, tell func(), ends ...os.Signal) (ctx context.Context, stop <-chan struct{}, release func()) {
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
					tell()
					close(asked)
				case time.Since(first) > together:
					cancel(&cli.SignalError{Signal: s})
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
