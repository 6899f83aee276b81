package subcommand

import (
	"context"
	"errors"
	"flag"
	"os"
	"time"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/entrypoint"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/supervise"
	"github.com/meshtask/consul-ecs/workload"
)

const defaultKillGrace = 10 * time.Second

// envoyOptions are the flags of envoy-entrypoint.
type envoyOptions struct {
	level                  string
	ignore                 workload.Ignored
	killGrace, limit, stop time.Duration
}

func envoyEntrypointCommand() cli.Command {
	var o envoyOptions
	return cli.Command{
		Synopsis: "Run Envoy and end it after the applications",
		Usage:    "envoy-entrypoint [flags] [--] command [args...]",
		Help: `
Runs the command, Envoy or consul-dataplane, as its child. When -c or --config-path
names an envoy-bootstrap.json, or -config-file a consul-dataplane.json, it first waits
until mesh-init of the same task has written it; no dependsOn between the two is needed.
When mesh-init fails, this command ends with its message and exit code 3, as it does on
TERM during the wait.

In a task without an agent and with proxy.mode direct, mesh-init has also written
xds-relay.json beside the bootstrap. Then this command serves Envoy's xDS on
127.0.0.1:8502 and relays it to the Consul servers: it moves to another server when one
is lost, and presents the current token in service-token. With transparentProxy.consulDNS
it answers the task's DNS queries on 127.0.0.1:8600 in the same way, until Envoy has ended.
With an agent it relays in the same way, if the token expires: at an abstract Unix socket.

On TERM, Envoy drains its inbound listeners and keeps running until the task metadata
shows every application container as stopped; then the child gets TERM. The same drain
starts before TERM, as soon as ECS wants the task to stop. Every other signal reaches
the child at once.
Callers of a gateway call Envoy itself. On TERM, health-sync makes the gateway
critical in Consul, and Envoy runs until no callers remain, by the rule of
app-entrypoint -shutdown-delay auto: no new connection for 0.5 s, and at least 1.25 s
and at most 5 s, or a sixth of the stop timeout if that is less, after TERM.

A child that ends with an error, or by a signal, without having been asked to end is
started again while applications may need it: at most three times in five minutes, after
0.1, 0.5 and 1 s.

The exit code is the child's, 128+n when signal n killed it, or 1 when it could not
be started or another program has a port of the relay. It is 2 when the Consul servers
refuse this Envoy, such as a version that they do not support, and have never served it.

The drain needs Envoy's admin address, which is read from the bootstrap named
by -c or --config-path; below consul-dataplane it is 127.0.0.1:19000. Without it Envoy
is not drained. Add --drain-strategy immediate to Envoy's arguments; otherwise it spreads
the drain over ten minutes. An Envoy whose arguments leave hot restart to the default gets
--disable-hot-restart: of two with hot restart in one task, one could not start.
When metadata cannot be read, Envoy runs until ECS kills it.

Environment:
  ECS_CONTAINER_METADATA_URI_V4  task metadata, set by ECS
  CONSUL_ECS_IGNORE_CONTAINERS   as -ignore-containers; both apply

Examples:
  $ consul-ecs envoy-entrypoint envoy --config-path /consul/envoy-bootstrap.json
  $ consul-ecs envoy-entrypoint consul-dataplane -config-file /consul/consul-dataplane.json`,
		Flags: o.declare,
		Run:   o.run,
	}
}

func (o *envoyOptions) declare(fs *flag.FlagSet) {
	logLevelFlag(fs, &o.level)
	ignoreContainersFlag(fs, &o.ignore, "`names` of containers that Envoy does not wait for, such as log routers")
	fs.DurationVar(&o.killGrace, "kill-grace", defaultKillGrace,
		"time Envoy has after TERM until KILL; 0 leaves KILL to ECS")
	startTimeoutFlag(fs, &o.limit)
	stopTimeoutFlag(fs, &o.stop)
}

func (o *envoyOptions) run(ctx context.Context, inv *cli.Invocation) error {
	if err := errors.Join(checkTimeouts(o.stop, o.limit), addIgnoredContainers(inv, &o.ignore)); err != nil {
		return err
	}
	inv.Args = entrypoint.WithoutHotRestart(inv.Args)
	refused := make(chan struct{}, 1)
	control := func(child *supervise.Process, signals <-chan os.Signal) int {
		e := entrypoint.Envoy{
			Child:     child,
			Start:     func() (entrypoint.Child, error) { return supervise.Start(inv.Args, inv.Log) },
			Signals:   signals,
			Metadata:  awsutil.NewMetadataClient(inv.Getenv(awsutil.MetadataEnvVar)),
			Ignore:    o.ignore,
			Refused:   refused,
			KillGrace: o.killGrace,
			Log:       inv.Log,
		}
		setEnvoyDrain(&e, inv.Args, workload.NewStopBudget(o.stop))
		return entrypoint.RunEnvoy(ctx, e)
	}
	return childCommand{
		level:   o.level,
		gate:    envoyGate(inv, o.limit),
		before:  func() (func(), error) { return startRelay(ctx, inv, refused) },
		control: control,
	}.run(inv)
}

// setEnvoyDrain leaves the drain out when the command does not lead to Envoy's admin
// address: it may be another proxy that drains by itself.
func setEnvoyDrain(e *entrypoint.Envoy, command []string, budget workload.StopBudget) {
	proxy, err := entrypoint.ReadBootstrap(command)
	if err != nil {
		e.Log.Info("envoy will not be asked to drain", logkey.Reason, err)
		return
	}
	e.Drain = entrypoint.Drainer(proxy)
	if proxy.Gateway {
		running := func(context.Context) bool { return true } // it is our child
		e.Callers = &entrypoint.Callers{Calls: entrypoint.Calls(proxy), Proxied: running, MinDelay: budget.MinDelay}
		e.MaxDelay = budget.MaxDelay
	}
}
