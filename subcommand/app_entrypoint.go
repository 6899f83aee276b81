package subcommand

import (
	"context"
	"flag"
	"os"
	"time"

	"github.com/meshtask/consul-ecs/entrypoint"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/supervise"
)

func appEntrypointCommand() cli.Command {
	var level string
	var delay, stop time.Duration
	var compat bool
	return cli.Command{
		Synopsis: "Run an application and delay its shutdown",
		Usage:    "app-entrypoint [flags] [--] command [args...]",
		Help: `
Runs the command, the application, as its child. The first TERM is held back
for the shutdown delay, so that the application serves until its peers have
heard that the task ends; then it goes to the application's process group.
Every other signal, a second TERM included, reaches the application at once.
A delay that does not end before the container's stop timeout is warned about:
ECS kills the application before it gets TERM.
The exit code is the application's, 128+n when signal n killed it, or 1 when it
could not be started.

Example:
  $ consul-ecs app-entrypoint -shutdown-delay 10s /app/server --port 9090`,
		Flags: func(fs *flag.FlagSet) {
			logLevelFlag(fs, &level)
			fs.DurationVar(&delay, "shutdown-delay", 0, "time the first TERM is held back, such as 10s; 0 delivers it at once")
			stopTimeoutFlag(fs, &stop)
			fs.BoolVar(&compat, "compat", false, "without a delay, never deliver the first TERM, as v0.6 did")
		},
		Run: func(ctx context.Context, inv *cli.Invocation) error {
			if delay < 0 {
				return cli.Usagef("-shutdown-delay %s: want 0 or more", delay)
			}
			if err := checkStopTimeout(stop); err != nil {
				return err
			}
			return runWrapped(inv, level, func(child *supervise.Process, signals <-chan os.Signal) int {
				if delay >= stop {
					// No refusal: version 0.6 started, and does not have -stop-timeout.
					inv.Log.Warn("-shutdown-delay does not fit into -stop-timeout: ECS kills the application before it gets TERM, unless the container's stopTimeout is longer; then set -stop-timeout to it",
						logkey.Delay, delay, logkey.StopTimeout, stop)
				}
				return entrypoint.RunApp(ctx, entrypoint.App{
					Child:   child,
					Signals: signals,
					Delay:   delay,
					Compat:  compat,
					Log:     inv.Log,
				})
			})
		},
	}
}
