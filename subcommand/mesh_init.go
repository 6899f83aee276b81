package subcommand

import (
	"context"
	"errors"
	"flag"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/volume"
	"github.com/meshtask/consul-ecs/meshinit"
	"github.com/meshtask/consul-ecs/workload"
)

func meshInitCommand() cli.Command {
	var f meshInitFlags
	return cli.Command{
		Synopsis: "Register this task and prepare its proxy",
		Usage:    "mesh-init [flags]",
		Help: `
Runs once at the start of a task: logs in to Consul (if consulLogin is enabled),
registers the service and its proxy, and writes service-token, a copy of this program
and what the proxy starts from to bootstrapDir.

Without consulServers in the configuration, the task is registered with its Consul
client agent, and Envoy starts from envoy-bootstrap.json. With it, the task has no
agent: it is registered in the catalog of the Consul servers, on the node of its ECS
cluster, which "consul-ecs controller" creates. Then consul-dataplane starts from
consul-dataplane.json or, with proxy.mode direct, Envoy below envoy-entrypoint from
envoy-bootstrap.json and xds-relay.json. With transparentProxy, which is on unless it
is disabled, the traffic of the task's containers is redirected to the proxy: that needs
root and NET_ADMIN.

mesh-init.json there reports progress, success or failure of this task's mesh-init to
envoy-entrypoint, health-sync and app-entrypoint -await-proxy, which wait for it.

A failure or TERM leaves no token and no other file behind. Exit codes: 1 for a wrong
configuration or volume, 2 when Consul or AWS refuses, 3 after a timeout.

Environment:
  CONSUL_ECS_CONFIG_JSON         the configuration
  ECS_CONTAINER_METADATA_URI_V4  set by ECS
  CONSUL_ECS_GENERATION          agent or agentless, to refuse a configuration of the
                                 other generation
  AWS_REGION and the rest        the AWS SDK's; also the region of the service's locality,
                                 which is that of the task ARN when it is not set
With an agent:
  CONSUL_HTTP_ADDR and the rest  the local agent; 127.0.0.1:8500
  CONSUL_GRPC_ADDR               where Envoy reaches the agent; localhost:8502
Without an agent:
  CONSUL_HTTP_TOKEN              the token, in place of consulLogin
  CONSUL_HTTPS_CACERT_PEM        CA certificates of the servers' HTTPS
  CONSUL_GRPC_CACERT_PEM         CA certificates of the servers' gRPC

Example:
  $ consul-ecs mesh-init`,
		Flags: f.declare,
		Run:   untilSignal(f.run),
	}
}

type meshInitFlags struct {
	compat       bool
	fileGroup    string
	limit        time.Duration
	readyAddress string
	readyPort    int
}

func (f *meshInitFlags) declare(fs *flag.FlagSet) {
	fs.BoolVar(&f.compat, "compat", false, "give files the modes of version 0.6: token 0644, bootstrap 0444")
	fs.StringVar(&f.fileGroup, "file-group", "",
		"`group` name or ID of files that hold a token (default the group of bootstrapDir)")
	fs.DurationVar(&f.limit, "start-timeout", retry.StartLimit, "give up after this `duration` at one step")
	fs.StringVar(&f.readyAddress, "envoy-ready-bind-address", "",
		"IP `address` where Envoy answers /ready, for health checks; needs the port, and an agent")
	fs.IntVar(&f.readyPort, "envoy-ready-bind-port", 0, "`port` where Envoy answers /ready; needs the address")
}

// readyBind returns the readiness listener's IP:port, empty when none is wanted.
func (f *meshInitFlags) readyBind() (string, error) {
	if f.readyAddress == "" && f.readyPort == 0 {
		return "", nil
	}
	if net.ParseIP(f.readyAddress) == nil {
		return "", exit.Usagef("-envoy-ready-bind-address %q: want an IP address, with -envoy-ready-bind-port",
			f.readyAddress)
	}
	if f.readyPort < 1 || f.readyPort > 65535 {
		return "", exit.Usagef("-envoy-ready-bind-port %d: want 1 to 65535, with -envoy-ready-bind-address",
			f.readyPort)
	}
	return net.JoinHostPort(f.readyAddress, strconv.Itoa(f.readyPort)), nil
}

func (f *meshInitFlags) run(ctx context.Context, inv *cli.Invocation) error {
	if err := errors.Join(cli.NoArgs(inv), usageErrorIf(f.limit <= 0, "-start-timeout %s: want more than 0",
		f.limit)); err != nil {
		return err
	}
	cfg, consul, err := readConfig(inv)
	if err != nil {
		return err
	}
	if consul.static && cfg.ConsulLogin.Enabled {
		inv.Log.Info("using the token of " + api.HTTPTokenEnvName + " in place of a login")
		cfg.ConsulLogin.Enabled = false
	}
	group, err := groupID(f.fileGroup)
	if err != nil {
		return err
	}
	ready, err := f.readyBind()
	if err != nil {
		return err
	}
	if ready != "" && cfg.Agentless() {
		return exit.Usagef("-envoy-ready-bind-address: a task without an agent has proxy.healthCheckPort or gateway.healthCheckPort in its configuration; use that")
	}
	metadata, err := metadataClient(inv)
	if err != nil {
		return err
	}
	defer consul.watchServers(ctx)()
	err = meshinit.Run(ctx, meshinit.Options{
		Config:    cfg,
		Compat:    f.compat,
		FileGroup: group,
		Proxy: consul.proxyFiles(inv, cfg, meshinit.AgentProxy{Dir: cfg.BootstrapDir, GRPC: grpcFromEnv(inv.Getenv),
			ReadyBind: ready, Env: environ()}),
		Endpoint: consul.endpoint,
		Region:   inv.Getenv(regionEnv),
		Version:  cli.Version(),
		Limit:    f.limit,
	}, meshinit.Deps{
		Metadata: metadata,
		Consul:   func() (meshinit.Consul, error) { return consul.consul(cfg) },
		Session: func(t workload.Task, log hclog.Logger) *consulutil.Session {
			return loginSession(cfg, t, consul.loginClient, f.limit, log)
		},
		SetDefaults:      consul.setDefaults(cfg, inv.Log),
		UnknownUpstreams: consul.unknownUpstreams(cfg),
		Redirect:         consul.redirection(cfg, inv.Log),
		CopyProgram:      volume.CopySelf,
		Log:              inv.Log,
	})
	(&patient{inv: inv, cfg: cfg, consul: consul, dir: cfg.BootstrapDir}).afterStart(ctx, err)
	return err
}

func grpcFromEnv(getenv func(string) string) meshinit.GRPC {
	return meshinit.GRPC{
		Address:    getenv(api.GRPCAddrEnvName),
		CAFile:     getenv(api.GRPCCAFileEnvName),
		CAPath:     getenv(api.GRPCCAPathEnvName),
		HTTPCAFile: getenv(api.HTTPCAFile),
		HTTPCAPath: getenv(api.HTTPCAPath),
	}
}

// environ returns the whole environment: proxy configurations may refer to any
// variable.
func environ() map[string]string {
	env := map[string]string{}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	return env
}
