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
	var level, dir, proxy string
	var delay, stop, limit time.Duration
	var compat bool
	return cli.Command{
		Synopsis: "Run an application and delay its shutdown",
		Usage:    "app-entrypoint [flags] [--] command [args...]",
		Help: `
Runs the command, the application, as its child. With -await-proxy it first waits
for the proxy of the same task: the public listener, 127.0.0.1:20000, and the local
ports of upstreams that the application needs at once. ECS need not order the two.
When mesh-init fails, this command ends with its message and exit code 3, and so
it does on TERM during the wait.

The first TERM is held back
for the shutdown delay, so that the application serves until its peers
know that the task ends; then it goes to the application's process group.
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
			fs.StringVar(&proxy, "await-proxy", "", "before the start, wait until these `addresses` of the proxy, <host>:<port> separated by commas, accept connections; usually 127.0.0.1:20000")
			fs.StringVar(&dir, "dir", defaultDir, "the shared volume's `directory`, where -await-proxy finds out that mesh-init has failed")
			startTimeoutFlag(fs, &limit)
			fs.BoolVar(&compat, "compat", false, "without a delay, never deliver the first TERM, as v0.6 did")
		},
		Run: func(ctx context.Context, inv *cli.Invocation) error {
			if delay < 0 {
				return cli.Usagef("-shutdown-delay %s: want 0 or more", delay)
			}
			if err := checkStopTimeout(stop); err != nil {
				return err
			}
			if err := checkStartTimeout(limit); err != nil {
				return err
			}
			return runWrapped(inv, level, appGate(inv, dir, proxy, limit), func(child *supervise.Process, signals <-chan os.Signal) int {
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
