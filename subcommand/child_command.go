package subcommand

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/entrypoint"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/meshinit"
	"github.com/meshtask/consul-ecs/supervise"
	"github.com/meshtask/consul-ecs/workload"
)

// childCommand is a program that runs below this one.
type childCommand struct {
	level string
	// gate is what the program waits for; nil for nothing.
	gate *meshinit.Gate
	// stop, if not 0, ends the wait at the gate as TERM does.
	stop syscall.Signal
	// before starts what the program needs, and returns its end; nil for nothing.
	before func() (end func(), err error)
	// control attends to the program, and returns the exit code.
	control func(*supervise.Process, <-chan os.Signal) int
}

// run waits at the gate and starts the command given by the arguments. Signals are
// queued from here on, so that one that arrives before the child's start is not lost.
func (c childCommand) run(inv *cli.Invocation) error {
	signals, stop := supervise.Subscribe()
	defer stop()
	limitRuntime(inv, wrapperGCPercent)
	if err := inv.UseLogger(c.level, false); err != nil {
		return err
	}
	inv.Log = inv.Log.ResetNamed("consul-ecs") // as in 0.6 and 0.10
	if len(inv.Args) == 0 {
		return exit.Usagef("command is required: name the program to run after the flags")
	}
	if err := waitGate(c.gate, inv, signals, c.stop); err != nil {
		return err
	}
	if c.before != nil {
		end, err := c.before()
		if err != nil {
			return err
		}
		defer end()
	}
	child, err := supervise.Start(inv.Args, inv.Log)
	if err != nil {
		return &exit.UsageError{Err: err}
	}
	if code := c.control(child, signals); code != exit.CodeOK {
		return &exit.CodeError{Code: code}
	}
	return nil
}

// startTimeoutFlag declares the limit of the wait at a gate.
func startTimeoutFlag(fs *flag.FlagSet, limit *time.Duration) {
	fs.DurationVar(limit, "start-timeout", retry.StartLimit,
		"give up after this `duration` without progress of mesh-init; 0 does not wait")
}

// envoyGate returns mesh-init's success, if the command starts from a file that
// mesh-init writes for Envoy or consul-dataplane; else nil. Without task metadata there is no ECS task, and no
// mesh-init.
func envoyGate(inv *cli.Invocation, limit time.Duration) *meshinit.Gate {
	path, ok := entrypoint.ConfigPath(inv.Args)
	name := filepath.Base(path)
	if !ok || name != workload.FileBootstrap && name != workload.FileDataplane ||
		inv.Getenv(awsutil.MetadataEnvVar) == "" || limit == 0 {
		return nil
	}
	return &meshinit.Gate{Dir: filepath.Dir(path),
		Metadata: awsutil.NewMetadataClient(inv.Getenv(awsutil.MetadataEnvVar)), Limit: limit}
}

// appGate returns a proxy that accepts connections; nil when that is not asked for.
func appGate(inv *cli.Invocation, dir, proxy string, limit time.Duration) *meshinit.Gate {
	listeners := splitNames(proxy)
	if len(listeners) == 0 || limit == 0 {
		return nil
	}
	return &meshinit.Gate{Dir: dir, Metadata: awsutil.NewMetadataClient(inv.Getenv(awsutil.MetadataEnvVar)),
		Proxy: listeners, Limit: limit}
}

// waitGate waits at the gate. A signal that asks the program to end, such as stop, does so
// at once; any other has no receiver yet and is dropped.
func waitGate(gate *meshinit.Gate, inv *cli.Invocation, signals <-chan os.Signal, stop syscall.Signal) error {
	if gate == nil {
		return nil
	}
	gate.Log = inv.Log
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	opened := make(chan error, 1)
	go func() { opened <- gate.Wait(ctx) }()
	for {
		select {
		case err := <-opened:
			return err
		case sig := <-signals:
			switch sig {
			case syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, stop:
				return fmt.Errorf("wait for the start of the task: %w", &exit.SignalError{Signal: sig})
			}
		}
	}
}
