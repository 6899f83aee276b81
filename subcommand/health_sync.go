package subcommand

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/envoy"
	"github.com/meshtask/consul-ecs/healthsync"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/meshinit"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/traffic"
	"github.com/meshtask/consul-ecs/workload"
)

// healthSyncGCPercent halves the heap that garbage may fill: over five minutes
// 14.0 MB of memory instead of 16.3, for 0.01 s of processor time a minute.
const healthSyncGCPercent = 50

const healthSyncHelp = `
Waits until mesh-init of the same task has registered it, then reads the task metadata
twice a second and writes the ECS health of each container in healthSyncContainers to its
Consul check: passing for HEALTHY, critical for everything else. Only changes are
written, and a refresh every 10 s; without an update a check turns critical after 30 s.
Without an agent this takes a session: Consul 1.21 or later, and a token with
session:write on the cluster's node. health-sync also works without one, and logs that.

While the metadata cannot be read, checks keep their status as long as the task's ports
accept connections; without a port they expire after five minutes.

With healthSync.startup, a container that serves at service.port is passing, too,
until its ECS health check has its first result.

On TERM or INT all checks become critical and stay so, then the task's tokens
are logged out: service-token, and client-token unless client-token.owner
exists. With that file client-entrypoint runs the agent: Envoy uses service-token
until the application containers have stopped, and health-sync logs it out after
them, or 12 s before the stop timeout ends. When the container consul-client stops
before them, both tokens are logged out at once.

A mesh gateway is deregistered on TERM or INT, while it still has callers, because
Consul sends them to it whatever its health is. A later run of the container registers
it again; with login, once mesh-init has written a new token. Its token is logged out
when Envoy has stopped, after 6 s at most.

When the agent refuses connections for 5 s after TERM, the services are taken out
of the servers' catalog at consulHTTPAddr: an agent that died has not done so.

In a task without an agent the checks are in the servers' catalog, and all that changed is
in one write. After TERM or INT the task is deregistered there when applications and proxy
have stopped, 7 s before the stop timeout ends at the latest.

A service-token that expires is replaced after 60 to 70 % of its TTL, and an agent is
given the new one; the old one is logged out 15 s later. That needs write access to
bootstrapDir. consul-dataplane cannot change its token: there, a warning is logged, and
health-sync logs in for itself, as it does if there is no file. With CONSUL_HTTP_TOKEN
without an agent, here and in mesh-init, nothing logs in or out.

Every 5 s it reads counters of the task's Envoy at its admin address, and logs what fails in
the traffic, once when it begins, every ten minutes while it lasts and once when it has ended:
callers that intentions deny, upstreams without a healthy instance, connections, TLS handshakes
and requests that fail, an application that does not listen.

The exit code is 0 when every check was left critical, also when a logout
failed; 1 for wrong usage or configuration; 3 when mesh-init failed,
with its message, when -start-timeout has passed, when the task metadata could not
be read in 3 minutes or when a check may still be passing.

Environment:
  CONSUL_ECS_CONFIG_JSON         configuration
  CONSUL_ECS_GENERATION          agent or agentless, to refuse a configuration of the
                                 other generation
  ECS_CONTAINER_METADATA_URI_V4  task metadata, set by ECS
  CONSUL_HTTP_ADDR and others    the local agent
  CONSUL_HTTPS_CACERT_PEM        without an agent: CA certificates of the servers' HTTPS
  CONSUL_HTTP_TOKEN              without an agent: in place of consulLogin
  AWS_REGION                     the region of the service's locality, when the task is
                                 registered again; that of the task ARN when it is not set
  AWS_REGION and the rest        the AWS SDK's, for another login
  CONSUL_ECS_IGNORE_CONTAINERS   as -ignore-containers; both apply

Example:
  $ consul-ecs health-sync -stop-timeout 60s`

func healthSyncCommand() cli.Command {
	var f healthSyncFlags
	return cli.Command{
		Synopsis: "Copy the ECS health of containers into Consul checks",
		Usage:    "health-sync [flags]",
		Help:     healthSyncHelp,
		Flags:    f.declare,
		Run:      untilSignal(f.run),
	}
}

type healthSyncFlags struct {
	stop, limit time.Duration
	ignore      workload.Ignored
}

func (f *healthSyncFlags) declare(fs *flag.FlagSet) {
	stopTimeoutFlag(fs, &f.stop)
	startTimeoutFlag(fs, &f.limit)
	ignoreContainersFlag(fs, &f.ignore,
		"`names` of containers that are not applications, such as log routers, as for envoy-entrypoint")
}

func (f *healthSyncFlags) run(ctx context.Context, inv *cli.Invocation) error {
	if err := errors.Join(cli.NoArgs(inv), checkTimeouts(f.stop, f.limit),
		addIgnoredContainers(inv, &f.ignore)); err != nil {
		return err
	}
	limitRuntime(inv, healthSyncGCPercent)
	cfg, consul, err := readConfig(inv)
	if err != nil {
		return err
	}
	metadata, err := metadataClient(inv)
	if err != nil {
		return err
	}
	client, err := consul.awaitClient(ctx, cmp.Or(f.limit, retry.StartLimit), inv.Log)
	switch {
	case err != nil && ctx.Err() != nil:
		inv.Log.Info("stopped before there was a Consul client", logkey.Reason, context.Cause(ctx))
		return nil
	case err != nil:
		return err
	}
	defer consul.watchServers(ctx)()
	return healthsync.Run(ctx, healthsync.Options{
		Config: cfg, Region: inv.Getenv(regionEnv), Version: cli.Version(), StaticToken: consul.static,
		StopTimeout: f.stop, Ignore: f.ignore,
	}, healthsync.Deps{
		Metadata:  metadata,
		Registrar: registrar.New(cfg, client),
		Publish:   registrar.Publisher(client),
		AwaitStart: func(ctx context.Context) error {
			if f.limit == 0 {
				return nil
			}
			return meshinit.Gate{Dir: cfg.BootstrapDir, Metadata: metadata, Limit: f.limit, Log: inv.Log}.Wait(ctx)
		},
		Serves:    serves,
		Accepts:   accepts,
		LogOut:    consul.logOut,
		ReadToken: consul.readToken,
		LogIn:     consul.loginAgain(cfg, inv.Log),
		DeregisterAtServers: func(ctx context.Context, token string, w workload.Workload) error {
			servers, err := consul.loginClient()
			if err != nil {
				return err
			}
			return registrar.DeregisterAtServers(ctx, servers, w, token)
		},
		WatchTraffic: watchTraffic(cfg),
		Log:          inv.Log,
	})
}

// watchTraffic returns what logs the faults that the task's Envoy counts.
func watchTraffic(cfg *config.Config) func(context.Context, workload.Workload, hclog.Logger) {
	return func(ctx context.Context, w workload.Workload, log hclog.Logger) {
		o := traffic.Options{Service: w.Name}
		if !w.IsGateway() {
			host := cmp.Or(w.Proxy.LocalServiceAddress, "127.0.0.1")
			o.Application = net.JoinHostPort(host, strconv.Itoa(w.Port))
		}
		for _, u := range w.Proxy.Upstreams {
			o.Upstreams = append(o.Upstreams, u.DestinationName)
		}
		admin := bootstrap.DefaultAdminBind
		// Without the file, such as without the volume of consul-dataplane, there is the default.
		if p, err := envoy.ReadBootstrap(filepath.Join(cfg.BootstrapDir, workload.FileBootstrap)); err == nil {
			admin = p.Admin
		}
		traffic.Watch(ctx, o, traffic.Deps{Ask: envoy.Asker(admin), Log: log})
	}
}

// renewalLimit bounds the retries of one renewal; health-sync begins another.
const renewalLimit = time.Minute

// readToken reads the life of a token.
func (a consulAccess) readToken(ctx context.Context, secret string) (consulutil.Token, error) {
	servers, err := a.loginClient()
	if err != nil {
		return consulutil.Token{}, err
	}
	return consulutil.ReadToken(ctx, servers, secret)
}

// loginAgain returns what logs in for another service token.
func (a consulAccess) loginAgain(
	cfg *config.Config, log hclog.Logger,
) func(context.Context, workload.Workload, workload.Task) (consulutil.Token, error) {
	limit := renewalLimit
	if !cfg.Direct() {
		limit = retry.StartLimit
	}
	return func(ctx context.Context, w workload.Workload, t workload.Task) (consulutil.Token, error) {
		token, err := loginSession(cfg, t, a.loginClient, limit, log).Login(ctx, registrar.LoginParams(cfg, w.Partition,
			t))
		if token.Secret == "" {
			return token, err
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("new service token may be unknown to some of the Consul servers", logkey.Accessor, token.Accessor,
				logkey.Error, err)
		}
		return token, nil
	}
}

// accepts connects to an address.
func accepts(ctx context.Context, address string) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// serves looks at a port of loopback, with a path by HTTP.
func serves(ctx context.Context, port int, path string) error {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if path == "" {
		return accepts(ctx, address)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return err
	}
	// Not the default transport: a proxy from the environment must not come between,
	// nor an idle connection stay open. A redirect is no 2xx status.
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("GET %s: status %d", req.URL, resp.StatusCode)
	}
	return nil
}
