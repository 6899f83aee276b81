package subcommand

import (
	"context"
	"errors"
	"flag"
	"net"
	"net/url"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
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
  AWS_REGION and the rest        the AWS SDK's; without an agent also the region of the
                                 service's locality
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
	fs.StringVar(&f.fileGroup, "file-group", "", "`group` name or ID of files that hold a token (default the group of bootstrapDir)")
	fs.DurationVar(&f.limit, "start-timeout", retry.StartLimit, "give up after this `duration` at one step")
	fs.StringVar(&f.readyAddress, "envoy-ready-bind-address", "", "IP `address` where Envoy answers /ready, for health checks; needs the port, and an agent")
	fs.IntVar(&f.readyPort, "envoy-ready-bind-port", 0, "`port` where Envoy answers /ready; needs the address")
}

// readyBind is the readiness listener's IP:port, empty when none is wanted.
func (f *meshInitFlags) readyBind() (string, error) {
	if f.readyAddress == "" && f.readyPort == 0 {
		return "", nil
	}
	if net.ParseIP(f.readyAddress) == nil {
		return "", exit.Usagef("-envoy-ready-bind-address %q: want an IP address, with -envoy-ready-bind-port", f.readyAddress)
	}
	if f.readyPort < 1 || f.readyPort > 65535 {
		return "", exit.Usagef("-envoy-ready-bind-port %d: want 1 to 65535, with -envoy-ready-bind-address", f.readyPort)
	}
	return net.JoinHostPort(f.readyAddress, strconv.Itoa(f.readyPort)), nil
}

func (f *meshInitFlags) run(ctx context.Context, inv *cli.Invocation) error {
	if err := errors.Join(cli.NoArgs(inv), mistake(f.limit <= 0, "-start-timeout %s: want more than 0", f.limit)); err != nil {
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
	if ready != "" && consul.servers != nil {
		return exit.Usagef("-envoy-ready-bind-address: a task without an agent has proxy.healthCheckPort or gateway.healthCheckPort in its configuration; use that")
	}
	metadata, err := metadataClient(inv)
	if err != nil {
		return err
	}
	defer consul.watchServers(ctx)()
	return meshinit.Run(ctx, meshinit.Options{
		Config:    cfg,
		Compat:    f.compat,
		FileGroup: group,
		Proxy:     consul.proxyFiles(inv, cfg, meshinit.AgentProxy{GRPC: grpcFromEnv(inv.Getenv), ReadyBind: ready, Env: environ()}),
		Place:     consul.Place,
		Region:    inv.Getenv(regionEnv),
		Limit:     f.limit,
	}, meshinit.Ports{
		Metadata: metadata,
		Consul:   func() (meshinit.Consul, error) { return consul.consul(cfg) },
		Session: func(t workload.Task, log hclog.Logger) *consulutil.Session {
			return loginSession(cfg, t, consul.loginClient, f.limit, log)
		},
		SetDefaults: consul.setDefaults(cfg, inv.Log),
		Redirect:    consul.redirection(cfg, inv.Log),
		CopyProgram: volume.CopySelf,
		Log:         inv.Log,
	})
}

// parseConfig parses the configuration, sets up the logger that it asks for, and logs
// its warnings, except those of paths that the command does not use.
func parseConfig(inv *cli.Invocation, unused ...string) (*config.Config, error) {
	cfg, warnings, err := config.ParseAs([]byte(inv.Getenv(config.EnvVar)), inv.Getenv(config.GenerationEnvVar))
	if err != nil {
		logWarnings(inv.Log, warnings)
		return nil, &exit.UsageError{Err: err}
	}
	if err := inv.UseLogger(cfg.LogLevel, cfg.LogJSON); err != nil {
		return nil, err
	}
	logWarnings(inv.Log, slices.DeleteFunc(warnings, func(w config.Finding) bool { return slices.Contains(unused, w.Path) }))
	return cfg, nil
}

// readConfig is parseConfig for the containers of a task, and returns how that reaches
// Consul.
func readConfig(inv *cli.Invocation) (*config.Config, access, error) {
	cfg, err := parseConfig(inv)
	if err != nil {
		return nil, access{}, err
	}
	inv.Log.Info("read the configuration", logkey.GenerationName, cfg.GenerationName())
	a, err := accessOf(inv, cfg)
	return cfg, a, err
}

func logWarnings(log hclog.Logger, warnings []config.Finding) {
	for _, w := range warnings {
		log.Warn("configuration warning", logkey.Path, w.Path, logkey.Reason, w.Message)
	}
}

// metadataClient is the task metadata client of this container.
func metadataClient(inv *cli.Invocation) (*awsutil.MetadataClient, error) {
	uri := inv.Getenv(awsutil.MetadataEnvVar)
	if uri == "" {
		return nil, exit.Usagef("%s is not set: this command runs in an ECS task (Fargate platform 1.4.0, ECS agent 1.39.0 or later)", awsutil.MetadataEnvVar)
	}
	if u, err := url.Parse(uri); err != nil || u.Scheme != "http" || u.Host == "" {
		return nil, exit.Usagef("%s is %q: want the http:// address that ECS sets; remove the variable from the container definition", awsutil.MetadataEnvVar, uri)
	}
	return awsutil.NewMetadataClient(uri), nil
}

// loginSession logs a container of the task in, by signatures of that time.
func loginSession(cfg *config.Config, t workload.Task, servers func() (*api.Client, error), limit time.Duration, log hclog.Logger) *consulutil.Session {
	return &consulutil.Session{
		Servers: servers,
		Bearer:  func(ctx context.Context) (string, error) { return bearer(ctx, cfg.ConsulLogin, t) },
		Limit:   limit,
		Log:     log,
	}
}

// bearer signs with credentials fetched anew: a bearer is wanted once, or again
// because the last attempt failed.
func bearer(ctx context.Context, login config.ConsulLogin, t workload.Task) (string, error) {
	signer, err := awsutil.NewSigner(ctx, awsutil.LoadOptions{
		Region:        login.Region,
		DefaultRegion: t.Region(),
		UserAgent:     "consul-ecs",
		Version:       cli.Version(),
	})
	if err != nil {
		return "", err
	}
	return signer.Bearer(ctx, awsutil.BearerOptions{
		Partition:     t.Partition(),
		STSEndpoint:   login.STSEndpoint,
		ServerID:      login.ServerIDHeaderValue,
		IncludeEntity: login.IncludeEntity,
	})
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

// environ is the whole environment: proxy configurations may refer to any
// variable.
func environ() map[string]string {
	env := map[string]string{}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	return env
}

// groupID reads -file-group.
func groupID(group string) (int, error) {
	if group == "" {
		return volume.GroupOfDir, nil
	}
	if id, err := strconv.Atoi(group); err == nil && id >= 0 {
		return id, nil
	}
	g, err := user.LookupGroup(group)
	var unknown user.UnknownGroupError
	if errors.As(err, &unknown) {
		return 0, exit.Usagef("-file-group %q: no such group in this container; use the numeric ID", group)
	}
	if err != nil {
		return 0, exit.Usagef("-file-group %q: %w", group, err)
	}
	return strconv.Atoi(g.Gid)
}
