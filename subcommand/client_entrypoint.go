package subcommand

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/clientagent"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/supervise"
	"github.com/meshtask/consul-ecs/workload"
)

// defaultDir is where every task definition of version 0.6 mounts its volume.
const defaultDir = "/consul"

func clientEntrypointCommand() cli.Command {
	var f clientFlags
	return cli.Command{
		Synopsis: "Run the task's Consul client agent and end it last",
		Usage:    "client-entrypoint [flags]",
		Help: `
Runs in the container consul-client, in Consul's own image: consul-ecs-install
puts this program on the shared volume first. It logs in to the Consul servers
with the task's IAM role (-acls), writes client-token, client-token.owner, the
CA certificates and the agent's configuration to the volume, and runs
"consul agent" as its child.

A token that expires is replaced after 60 to 70 % of its TTL: the agent reads its
configuration again (SIGHUP), and the old token is logged out 15 s later.

On TERM or INT the agent stays until all other containers have stopped, at most
until 10 s before the stop timeout ends. Then it leaves, and ends as soon as the
servers at -consul-http-addr have removed its node, after 3 to 4 s when they cannot be
queried. The token is logged out last, and service-token if health-sync has not done so.
Every other exit logs out the token too and removes client-token and
client-token.owner; the CA certificates stay.

An agent that dies is taken out of the catalog with its services, unless it has
run for a minute and its container has a restartPolicy: when ECS starts it again
it finds them on the volume.

The exit code is the agent's, 128+n when signal n killed it; without an agent 1
for a wrong configuration or volume, 2 when Consul or AWS refuses, 3 when time
ran out or a signal came first.

Environment (a flag wins):
  CONSUL_DATACENTER              as -datacenter
  CONSUL_PRIMARY_DATACENTER      as -primary-datacenter
  CONSUL_RETRY_JOIN              as -retry-join, separated by commas
  CONSUL_PARTITION               as -partition
  CONSUL_HTTP_ADDR               as -consul-http-addr; consulHTTPAddr takes precedence
  CONSUL_CACERT_PEM              CA certificate of the servers' RPC; turns TLS on
  CONSUL_HTTPS_CACERT_PEM        CA certificate of -consul-http-addr
  CONSUL_GOSSIP_ENCRYPTION_KEY   key of the gossip encryption
  CONSUL_AGENT_CONFIGURATION     HCL that comes last in the agent's configuration
  CONSUL_ECS_IGNORE_CONTAINERS   as -ignore-containers; both apply
  CONSUL_ECS_CONFIG_JSON         mesh-init's configuration, optional, for
                                 bootstrapDir, consulHTTPAddr, consulCACertFile,
                                 consulLogin (not its method), partition, logs
  CONSUL_ECS_GENERATION          agent or agentless, to refuse a configuration of the
                                 other generation
  ECS_CONTAINER_METADATA_URI_V4  set by ECS
  AWS_REGION and the rest        the AWS SDK's

Example:
  $ consul-ecs client-entrypoint -acls -consul-http-addr https://10.0.0.4:8501 \
      -retry-join 10.0.0.4`,
		Flags: f.declare,
		Run:   f.run,
	}
}

type clientFlags struct {
	options clientagent.Options
	// acls is empty when the flag is not given.
	acls                                   string
	method, address, dir, fileGroup, level string
}

func (f *clientFlags) declare(fs *flag.FlagSet) {
	a := &f.options.Agent
	fs.StringVar(&a.Program, "consul-path", "consul", "the consul `program`, looked up in PATH when it has no slash")
	fs.StringVar(&a.Datacenter, "datacenter", "", "`name` of the datacenter (default dc1)")
	fs.StringVar(&a.PrimaryDatacenter, "primary-datacenter", "", "`name` of the primary datacenter")
	fs.StringVar(&a.Partition, "partition", "", "admin partition of agent and login (Consul Enterprise)")
	fs.Func("retry-join", "`address` of a server, or anything else that consul's retry_join takes; may be given again",
		appendTo(&a.RetryJoin))
	fs.StringVar(&a.Address, "bind-addr", "",
		"`address` of the agent, or a go-sockaddr template (default the task's, from its metadata)")
	fs.BoolVar(&a.AutoEncrypt, "auto-encrypt", true,
		"with CONSUL_CACERT_PEM, get the agent's certificate from the servers")
	fs.BoolVar(&a.TokenReplication, "enable-acl-token-replication", false, "set acl.enable_token_replication")
	fs.BoolVar(&a.AuditLogging, "audit-logging", false, "write audit events to standard output (Consul Enterprise)")
	fs.Func("agent-config-file",
		"`file` with more configuration of the agent, HCL or JSON; may be given again. Of settings given twice the "+
			"agent takes the last", appendTo(&a.ExtraFiles))
	fs.BoolFunc("acls", "log in to the servers and turn ACLs on (default consulLogin.enabled of the configuration)",
		func(s string) error {
			_, err := strconv.ParseBool(s)
			f.acls = s
			return err
		})
	fs.StringVar(&f.method, "auth-method", config.ClientAuthMethod, "`name` of the clients' auth method")
	fs.StringVar(&f.address, "consul-http-addr", "", "`address` of a Consul server, for login and logout")
	fs.StringVar(&f.dir, "dir", "", "the shared volume's `directory` (default bootstrapDir of the configuration, else "+
		defaultDir+")")
	fs.StringVar(&f.fileGroup, "file-group", "",
		"`group` name or ID of client-token (default the group of the directory)")
	fs.BoolVar(&f.options.Compat, "compat", false, "give client-token the mode of version 0.6, 0644")
	ignoreContainersFlag(fs, &f.options.Ignore,
		"`names` of containers that the agent does not wait for, such as log routers")
	stopTimeoutFlag(fs, &f.options.StopTimeout)
	fs.DurationVar(&f.options.Limit, "start-timeout", retry.StartLimit,
		"give up after this `duration` at one step of the start")
	fs.StringVar(&f.level, "log-level", "",
		"TRACE, DEBUG, INFO, WARN or ERROR (default logLevel of the configuration, else INFO)")
}

func (f *clientFlags) run(ctx context.Context, inv *cli.Invocation) error {
	// Queued from here on, so that no signal is lost before there is an agent.
	signals, stop := supervise.Subscribe()
	defer stop()
	limitRuntime(inv, wrapperGCPercent)
	if err := cli.NoArgs(inv); err != nil {
		return err
	}
	options, err := f.agentOptions(inv)
	if err != nil {
		return err
	}
	metadata, err := metadataClient(inv)
	if err != nil {
		return err
	}
	servers := func() (*api.Client, error) {
		return consulutil.NewClient(consulutil.Options{Address: options.Config.ConsulHTTPAddr,
			CAFile: options.ServerCAFile()})
	}
	atServers := func(do func(ctx context.Context, c *api.Client, nodeID, partition,
		secret string) error) func(context.Context, string, string) error {
		return func(ctx context.Context, nodeID, secret string) error {
			client, err := servers()
			if err != nil {
				return err
			}
			return do(ctx, client, nodeID, options.Agent.Partition, secret)
		}
	}
	return clientagent.Run(ctx, options, clientagent.Deps{
		Metadata: metadata,
		Session: func(t workload.Task, log hclog.Logger) clientagent.Session {
			return loginSession(options.Config, t, servers, options.Limit, log)
		},
		ReadToken: func(ctx context.Context, secret string) (consulutil.Token, error) {
			client, err := servers()
			if err != nil {
				return consulutil.Token{}, err
			}
			return consulutil.ReadToken(ctx, client, secret)
		},
		Deregister:  atServers(consulutil.DeregisterNode),
		NodeRemoved: atServers(consulutil.AwaitNodeRemoved),
		Start: func(args []string) (clientagent.Child, error) {
			return supervise.Start(args, inv.Log)
		},
		Signals: signals,
		Log:     inv.Log,
	})
}

// agentOptions returns the flags, over the environment, over mesh-init's configuration.
func (f *clientFlags) agentOptions(inv *cli.Invocation) (clientagent.Options, error) {
	if err := errors.Join(checkStopTimeout(f.options.StopTimeout),
		usageErrorIf(f.options.Limit <= 0, "-start-timeout %s: want more than 0", f.options.Limit),
		addIgnoredContainers(inv, &f.options.Ignore)); err != nil {
		return clientagent.Options{}, err
	}
	cfg, err := f.config(inv)
	if err != nil {
		return clientagent.Options{}, err
	}
	o := f.options
	o.Config = cfg
	if o.FileGroup, err = groupID(f.fileGroup); err != nil {
		return clientagent.Options{}, err
	}
	env := func(name string) string { return strings.TrimSpace(inv.Getenv(name)) }
	o.HTTPSCACertPEM = env("CONSUL_HTTPS_CACERT_PEM")
	a := &o.Agent
	a.Datacenter = cmp.Or(a.Datacenter, env("CONSUL_DATACENTER"), "dc1")
	a.PrimaryDatacenter = cmp.Or(a.PrimaryDatacenter, env("CONSUL_PRIMARY_DATACENTER"))
	a.Partition = cmp.Or(a.Partition, env(api.HTTPPartitionEnvName), partitionOf(cfg))
	if len(a.RetryJoin) == 0 {
		a.RetryJoin = splitJoin(env("CONSUL_RETRY_JOIN"))
	}
	a.CACertPEM = env("CONSUL_CACERT_PEM")
	a.GossipKey = env("CONSUL_GOSSIP_ENCRYPTION_KEY")
	a.ExtraHCL = inv.Getenv("CONSUL_AGENT_CONFIGURATION")
	return o, nil
}

// config returns mesh-init's configuration as far as it is ours too; there may be
// none. Its auth method is the services'.
func (f *clientFlags) config(inv *cli.Invocation) (*config.Config, error) {
	cfg := &config.Config{BootstrapDir: defaultDir, ConsulLogin: config.ConsulLogin{IncludeEntity: true}}
	var err error
	if strings.TrimSpace(inv.Getenv(config.EnvVar)) != "" {
		if cfg, err = parseConfig(inv); err != nil {
			return nil, err
		}
		if cfg.Agentless() {
			return nil,
				exit.Usagef("consulServers is set: a task without a Consul client agent has no container %s, remove it from the task definition", workload.ContainerConsulClient)
		}
	}
	if f.level != "" || cfg.LogLevel == "" {
		if err := inv.UseLogger(f.level, cfg.LogJSON); err != nil {
			return nil, err
		}
	}
	cfg.BootstrapDir = filepath.Clean(cmp.Or(f.dir, cfg.BootstrapDir))
	cfg.ConsulHTTPAddr = cmp.Or(f.address, cfg.ConsulHTTPAddr, strings.TrimSpace(inv.Getenv(api.HTTPAddrEnvName)))
	cfg.ConsulLogin.Method = f.method
	if f.acls != "" {
		cfg.ConsulLogin.Enabled, _ = strconv.ParseBool(f.acls) // declare refused others
	}
	return cfg, nil
}

// partitionOf returns the admin partition of mesh-init's configuration.
func partitionOf(cfg *config.Config) string {
	switch {
	case cfg.Gateway != nil:
		return cfg.Gateway.Partition
	case cfg.Service != nil:
		return cfg.Service.Partition
	}
	return ""
}

// splitJoin splits at commas; a value with commas needs the flag.
func splitJoin(s string) []string {
	var addresses []string
	for _, a := range strings.Split(s, ",") {
		if a = strings.TrimSpace(a); a != "" {
			addresses = append(addresses, a)
		}
	}
	return addresses
}
