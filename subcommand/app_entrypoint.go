package subcommand

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/entrypoint"
	"github.com/meshtask/consul-ecs/envoy"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/supervise"
	"github.com/meshtask/consul-ecs/workload"
	"golang.org/x/sys/unix"
)

// appOptions are the flags of app-entrypoint.
type appOptions struct {
	level, dir, proxy, admin string
	delay                    shutdownDelay
	stop, limit              time.Duration
	stopSignal               syscall.Signal
	compat                   bool
}

func appEntrypointCommand() cli.Command {
	o := appOptions{delay: shutdownDelay{ShutdownDelay: workload.ShutdownDelay{Auto: true}}}
	return cli.Command{
		Synopsis: "Run an application and delay its shutdown",
		Usage:    "app-entrypoint [flags] [--] command [args...]",
		Help: `
Runs the command, the application, as its child. With -await-proxy it first waits
for the proxy of the same task: the public listener, 127.0.0.1:20000, or without an
agent http://127.0.0.1:22000/ready, and the local ports of upstreams that the application
needs at once. No dependsOn between the two is needed.
When mesh-init fails, this command ends with its message and exit code 3, as it does on
TERM during the wait.

With proxy.namedUpstreams it first adds the names of upstreams, which mesh-init wrote to
upstream-hosts, to /etc/hosts of its container, which needs root.

The first TERM is held back until no callers remain, so that none is refused; then it
goes to the application's process group. Every other signal, a second TERM included,
reaches the application at once.

Where the application's image has a STOPSIGNAL, ECS sends that signal in place of TERM:
QUIT for nginx and php-fpm, WINCH for httpd, USR1 for haproxy. Name it with -stop-signal,
and the first one is held back as TERM is; without the flag it reaches the application
while callers still send requests.

By default (-shutdown-delay auto), no callers remain when the public listener of the
task's Envoy has seen no new connection and no new request of the mesh for 0.5 s, and
not before 1.25 s after TERM, the time that callers may need to learn what health-sync,
which gets TERM at the same time, has written to Consul. Connections that stay open
and probes do not count. After 5 s, or a sixth of the stop timeout if that is less, TERM
is delivered in any case. In a task without a proxy it is delivered at once. Callers
that bypass the proxy are not seen: set a fixed time for them.

A fixed time does not depend on callers. A warning is logged for one that does not end
before the container's stop timeout: ECS would kill the application before it gets TERM.
The exit code is the application's, 128+n when signal n killed it, or 1 when it
could not be started.

Environment:
  ECS_CONTAINER_METADATA_URI_V4  task metadata, set by ECS

Example:
  $ consul-ecs app-entrypoint -shutdown-delay 10s /app/server --port 9090`,
		Flags: o.declare,
		Run:   o.run,
	}
}

func (o *appOptions) declare(fs *flag.FlagSet) {
	logLevelFlag(fs, &o.level)
	fs.Var(&o.delay, "shutdown-delay",
		"how long the first TERM is held back: auto, or a `time` such as 10s; 0 delivers it at once")
	fs.StringVar(&o.admin, "envoy-admin-addr", bootstrap.DefaultAdminBind,
		"Envoy's admin `address`, for -shutdown-delay auto")
	stopTimeoutFlag(fs, &o.stop)
	fs.Func("stop-signal",
		"the image's STOPSIGNAL, a `name` such as QUIT, which is held back as TERM is (default TERM alone)",
		func(s string) (err error) {
			o.stopSignal, err = parseStopSignal(s)
			return err
		})
	fs.StringVar(&o.proxy, "await-proxy", "",
		"before the start, wait until these `addresses` of the proxy, separated by commas, accept connections, "+
			"<host>:<port>, or answer 200, http://<host>:<port>/<path>; usually 127.0.0.1:20000, without an agent http://127.0.0.1:22000/ready")
	fs.StringVar(&o.dir, "dir", defaultDir,
		"the shared volume's `directory`, where -await-proxy finds out that mesh-init has failed")
	startTimeoutFlag(fs, &o.limit)
	fs.BoolVar(&o.compat, "compat", false,
		"without -shutdown-delay, or with 0, never deliver the first TERM, as v0.6 did")
}

func (o *appOptions) run(ctx context.Context, inv *cli.Invocation) error {
	if err := checkTimeouts(o.stop, o.limit); err != nil {
		return err
	}
	control := func(child *supervise.Process, signals <-chan os.Signal) int {
		delay, budget := o.delay.ShutdownDelay, workload.NewStopBudget(o.stop)
		if o.compat && !o.delay.given {
			delay = workload.ShutdownDelay{} // never delivered
		}
		app := entrypoint.App{Child: child, Signals: signals, StopSignal: o.stopSignal, Delay: budget.Delay(delay),
			Compat: o.compat, Log: inv.Log}
		if delay.Auto {
			app.Callers = callers(inv, o.admin, budget.MinDelay)
		}
		if app.Delay >= o.stop {
			// No refusal: version 0.6 started, and does not have -stop-timeout.
			inv.Log.Warn("-shutdown-delay does not fit into -stop-timeout: ECS kills the application before it gets TERM, unless the container's stopTimeout is longer; then set -stop-timeout to it",
				logkey.Delay, app.Delay, logkey.StopTimeout, o.stop)
		}
		return entrypoint.RunApp(ctx, app)
	}
	return childCommand{
		level:   o.level,
		gate:    appGate(inv, o.dir, o.proxy, o.limit),
		stop:    o.stopSignal,
		before:  func() (func(), error) { return func() {}, nameUpstreams(o.dir) },
		control: control,
	}.run(inv)
}

// parseStopSignal reads the value of -stop-signal, as a Dockerfile has it.
func parseStopSignal(text string) (syscall.Signal, error) {
	name, ok := workload.ParseStopSignal(text)
	if !ok {
		return 0, fmt.Errorf("want one of %s, with or without SIG", strings.Join(workload.StopSignals, ", "))
	}
	return unix.SignalNum("SIG" + name), nil
}

// callers returns those of the Envoy with that admin address.
func callers(inv *cli.Invocation, admin string, minDelay time.Duration) *entrypoint.Callers {
	c := &entrypoint.Callers{Calls: entrypoint.Calls(envoy.Proxy{Admin: admin}), MinDelay: minDelay}
	if uri := inv.Getenv(awsutil.MetadataEnvVar); uri != "" {
		c.Proxied = entrypoint.Proxied(awsutil.NewMetadataClient(uri))
	}
	return c
}

// shutdownDelay is the value of -shutdown-delay, and whether the flag was given.
type shutdownDelay struct {
	workload.ShutdownDelay
	given bool
}

// Set implements flag.Value.
func (d *shutdownDelay) Set(s string) error {
	parsed, err := workload.ParseShutdownDelay(s)
	if err == nil {
		*d = shutdownDelay{ShutdownDelay: parsed, given: true}
	}
	return err
}
