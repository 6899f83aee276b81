package command

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/control"
	"github.com/meshtask/consul-ecs/localecs/scenario"
)

// remoteCommands returns the commands about a live run, by name.
func remoteCommands() map[string]cli.Command {
	return map[string]cli.Command{"ps": psCommand(), "logs": logsCommand(), "wait": waitCommand(), "stop": stopCommand(), "exec": execCommand(), "visit": visitCommand()}
}

// runsDir is where `localecs run` keeps its runs by default.
const runsDir = ".localecs"

// location selects a run by its directory.
type location struct{ dir string }

func (l *location) add(fs *flag.FlagSet) {
	fs.StringVar(&l.dir, "dir", runsDir, "`directory` of the run, or the one above it: -dir of localecs run or serve")
}

func (l *location) dial(ctx context.Context) (*control.Client, error) {
	return control.Dial(ctx, l.dir, cli.Version())
}

// now finds the run and reads its state.
func (l *location) now(ctx context.Context) (*control.Client, control.State, error) {
	c, err := l.dial(ctx)
	if err != nil {
		return nil, control.State{}, err
	}
	s, err := c.State(ctx)
	return c, s, err
}

// run wraps a command: signals end it, and errors are printed as text.
func run(do func(context.Context, *cli.Invocation) error) func(context.Context, *cli.Invocation) error {
	return func(ctx context.Context, inv *cli.Invocation) error {
		ctx, stop := cli.SignalContext(ctx, syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		err := do(ctx, inv)
		if end, ok := errors.AsType[*exit.SignalError](err); ok {
			return &exit.CodeError{Code: signalCode(end.Signal)}
		}
		if _, ok := errors.AsType[*exit.CodeError](err); err == nil || ok {
			return err
		}
		return &exit.Plain{Err: err}
	}
}

// signalCode returns the exit code of a command that a signal ended, as in shells.
func signalCode(s os.Signal) int {
	if number, ok := s.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return exit.CodeUnknown
}

// usage turns an error into one of usage.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &exit.UsageError{Err: err}
}

func writeJSON(out io.Writer, v any) error { return json.NewEncoder(out).Encode(v) }

// serveScenario returns scenario.Options.Attend of a run in dir: it serves the control socket.
func serveScenario(dir string, log hclog.Logger) func(scenario.LiveRun) (stop func()) {
	return func(l scenario.LiveRun) func() {
		consul := func() *control.Consul {
			address, token, passing, ok := l.Consul()
			if !ok {
				return nil
			}
			return &control.Consul{Address: address, Token: token, Passing: passing}
		}
		return serve(control.ServerOptions{Command: "run", Name: l.Name(), Directory: dir, Controller: &control.RegionController{
			Region: l.Region(), MayEnd: l.MayEnd, Planned: l.Planned, OnEnd: l.End, Consul: consul,
		}}, log)
	}
}

// serveRegion serves the control socket of a region without a run, that of the command. end is
// called when all tasks have stopped on request. stop must be called when nothing runs any more.
func serveRegion(command string, r *cluster.Region, dir string, end func(), log hclog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var draining sync.WaitGroup
	drain := sync.OnceFunc(func() {
		draining.Go(func() {
			if err := r.Drain(ctx, "localecs stop -all"); err != nil && ctx.Err() == nil {
				log.Warn("tasks were not stopped", logkey.Error, err)
			}
			end()
		})
	})
	closeSocket := serve(control.ServerOptions{Command: command, Name: command, Directory: dir, Controller: &control.RegionController{Region: r, OnEnd: drain}}, log)
	return func() {
		cancel()
		draining.Wait()
		closeSocket()
	}
}

// serve serves a control socket until stop. Without one the run continues.
func serve(o control.ServerOptions, log hclog.Logger) (stop func()) {
	o.Version = cli.Version()
	s, err := control.Serve(o)
	if err != nil {
		log.Warn("localecs ps, logs -f, wait, exec and stop cannot reach this run", logkey.Error, err)
		return func() {}
	}
	return func() {
		if err := s.Close(); err != nil {
			log.Warn("last state of the run was not written, or its control socket was not removed", logkey.Error, err)
		}
	}
}
