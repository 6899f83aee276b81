package command

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"syscall"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/localecs/control"
)

// Commands are the commands by name.
func Commands() map[string]cli.Command {
	return map[string]cli.Command{"ps": psCommand(), "logs": logsCommand(), "wait": waitCommand(), "stop": stopCommand(), "exec": execCommand(), "visit": visitCommand()}
}

// defaultDir is -dir of localecs run.
const defaultDir = ".localecs"

// place says which run is meant.
type place struct{ dir string }

func (p *place) add(fs *flag.FlagSet) {
	fs.StringVar(&p.dir, "dir", defaultDir, "`directory` of the run, or the one above it: -dir of localecs run or serve")
}

// dial finds the run.
func (p *place) dial(ctx context.Context) (*control.Client, error) {
	return control.Dial(ctx, p.dir, cli.Version())
}

// now finds the run and asks it how it is.
func (p *place) now(ctx context.Context) (*control.Client, control.State, error) {
	c, err := p.dial(ctx)
	if err != nil {
		return nil, control.State{}, err
	}
	s, err := c.State(ctx)
	return c, s, err
}

// run is what all commands have: Ctrl-C ends them, and errors are for people.
func run(do func(context.Context, *cli.Invocation) error) func(context.Context, *cli.Invocation) error {
	return func(ctx context.Context, inv *cli.Invocation) error {
		ctx, stop := cli.SignalContext(ctx, syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		err := do(ctx, inv)
		if end, ok := errors.AsType[*cli.SignalError](err); ok {
			return &cli.ExitError{Code: signalled(end.Signal)}
		}
		if code := (*cli.ExitError)(nil); err == nil || errors.As(err, &code) {
			return err
		}
		return &cli.Plain{Err: err}
	}
}

// signalled is the code of a command that a signal has ended, as shells have it.
func signalled(s os.Signal) int {
	number, ok := s.(syscall.Signal)
	if !ok {
		return cli.ExitUnknown
	}
	return 128 + int(number)
}

// usage makes an error one of usage.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &cli.UsageError{Err: err}
}

func writeJSON(out io.Writer, v any) error { return json.NewEncoder(out).Encode(v) }
