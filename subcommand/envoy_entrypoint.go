package subcommand

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/entrypoint"
	"github.com/meshtask/consul-ecs/envoy"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/volume"
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
is lost, and presents the current token in service-token.

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
be started or another program has the relay's port. It is 2 when the Consul servers
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
	fs.DurationVar(&o.killGrace, "kill-grace", defaultKillGrace, "time Envoy has after TERM until KILL; 0 leaves KILL to ECS")
	startTimeoutFlag(fs, &o.limit)
	stopTimeoutFlag(fs, &o.stop)
}

func (o *envoyOptions) run(ctx context.Context, inv *cli.Invocation) error {
	if err := errors.Join(checkTimeouts(o.stop, o.limit), addIgnored(inv, &o.ignore)); err != nil {
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
	return wrapped{
		level:   o.level,
		gate:    envoyGate(inv, o.limit),
		before:  func() (func(), error) { return relayXDS(ctx, inv, refused) },
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

// relayXDS relays Envoy's xDS to the Consul servers until end is called, if mesh-init
// has written settings for that beside Envoy's bootstrap. It sends to refused when they
// refuse Envoy permanently.
func relayXDS(ctx context.Context, inv *cli.Invocation, refused chan<- struct{}) (end func(), err error) {
	none := func() {}
	path, ok := entrypoint.ConfigPath(inv.Args)
	if !ok || filepath.Base(path) != workload.FileBootstrap {
		return none, nil
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(path), workload.FileRelay))
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return nil, exit.Usagef("read the settings of the xDS relay: %w", err)
	}
	settings, err := bootstrap.ParseRelay(text)
	if err != nil {
		return nil, &exit.UsageError{Err: err}
	}
	servers, err := newServers(settings.Servers, settings.HTTPSCAPEM, settings.GRPCCAPEM, inv.Log)
	if err != nil {
		return nil, err
	}
	secured := servers.GRPCTLS()
	if _, err := secured.Config(); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(workload.AgentGRPCPort)))
	if err != nil {
		return nil, exit.Usagef("listen for Envoy's xDS: %w: without an agent in the task that port is the relay's", err)
	}
	c := envoy.RelayConfig{
		Servers: servers, Token: relayToken(settings), Log: inv.Log.Named("relay"),
		Refused: func() {
			select {
			case refused <- struct{}{}:
			default: // once is enough
			}
		},
	}
	if secured.Enabled {
		c.TLS = secured.Config
	}
	relay := envoy.NewRelay(c)
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { servers.Run(ctx) })
	running.Go(func() {
		if err := relay.Serve(ctx, listener); err != nil {
			inv.Log.Error("xDS relay ended, Envoy keeps the configuration it has", logkey.Error, err)
		}
	})
	return func() { cancel(); running.Wait() }, nil
}

// relayToken returns a function that returns the token that is valid now. A token file without a
// token is an error: the servers would take the stream for an anonymous one.
func relayToken(r bootstrap.Relay) func() (string, error) {
	if r.TokenFile == "" {
		return func() (string, error) { return r.Token, nil }
	}
	return func() (string, error) {
		token, err := volume.ReadSecret(r.TokenFile)
		if err == nil && token == "" {
			err = fmt.Errorf(
				"%s is missing or empty: mesh-init writes it, to the volume that this container must have at the same path",
				r.TokenFile,
			)
		}
		return token, err
	}
}
