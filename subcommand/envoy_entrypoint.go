package subcommand

import (
	"context"
	"flag"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/awsutil/tmds"
	"github.com/meshtask/consul-ecs/entrypoint"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/supervise"
)

const defaultKillGrace = 10 * time.Second

func envoyEntrypointCommand() cli.Command {
	var level, ignore string
	var killGrace, limit time.Duration
	return cli.Command{
		Synopsis: "Run Envoy and end it after the applications",
		Usage:    "envoy-entrypoint [flags] [--] command [args...]",
		Help: `
Runs the command, Envoy, as its child. When -c or --config-path names an
envoy-bootstrap.json, it first waits until mesh-init of the same task has written
it; ECS need not order the two. When mesh-init fails, this command ends with its
message and exit code 3, and so it does on TERM during the wait.

On TERM, Envoy drains its inbound
listeners and keeps running until the task metadata shows every application
container as stopped; then it gets TERM. The same drain starts before TERM, as
soon as ECS wants the task to stop. Every other signal reaches Envoy at once.
The exit code is Envoy's, 128+n when signal n killed it, or 1 when it could not
be started.

The drain needs Envoy's admin address, which is read from the bootstrap named
by -c or --config-path; without it Envoy runs on undrained. Add
--drain-strategy immediate to Envoy's arguments, or it spreads its goodbyes
over ten minutes. When metadata cannot be read, Envoy runs until ECS kills it.

Environment:
  ECS_CONTAINER_METADATA_URI_V4  task metadata, set by ECS
  CONSUL_ECS_IGNORE_CONTAINERS   as -ignore-containers, which comes on top

Example:
  $ consul-ecs envoy-entrypoint envoy --config-path /consul/envoy-bootstrap.json`,
		Flags: func(fs *flag.FlagSet) {
			logLevelFlag(fs, &level)
			fs.StringVar(&ignore, "ignore-containers", "", "comma-separated `names` of containers that Envoy does not wait for, such as log routers")
			fs.DurationVar(&killGrace, "kill-grace", defaultKillGrace, "time Envoy has after TERM until KILL; 0 leaves KILL to ECS")
			startTimeoutFlag(fs, &limit)
		},
		Run: func(ctx context.Context, inv *cli.Invocation) error {
			if err := checkStartTimeout(limit); err != nil {
				return err
			}
			return runWrapped(inv, level, envoyGate(inv, limit), func(child *supervise.Process, signals <-chan os.Signal) int {
				return entrypoint.RunEnvoy(ctx, entrypoint.Envoy{
					Child:     child,
					Signals:   signals,
					Metadata:  tmds.New(inv.Getenv(tmds.EnvVar)),
					Drain:     envoyDrain(inv.Args, inv.Log),
					Ignore:    ignored(inv, ignore),
					KillGrace: killGrace,
					Log:       inv.Log,
				})
			})
		},
	}
}

// envoyDrain is nil when the command does not lead to Envoy's admin address: it
// may be another proxy that drains by itself.
func envoyDrain(command []string, log hclog.Logger) func(context.Context) error {
	address, err := entrypoint.AdminAddress(command)
	if err != nil {
		log.Info("envoy will not be asked to drain", logkey.Reason, err)
		return nil
	}
	return entrypoint.Drainer(address)
}
