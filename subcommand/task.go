package subcommand

import (
	"context"
	"errors"
	"net/url"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/volume"
	"github.com/meshtask/consul-ecs/meshinit"
	"github.com/meshtask/consul-ecs/redirect"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

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
	logWarnings(inv.Log, slices.DeleteFunc(warnings,
		func(w config.Finding) bool { return slices.Contains(unused, w.Path) }))
	return cfg, nil
}

// readConfig does what parseConfig does for the containers of a task, with an address for each named
// upstream. It also returns how the task reaches Consul.
func readConfig(inv *cli.Invocation) (*config.Config, consulAccess, error) {
	cfg, err := parseConfig(inv)
	if err != nil {
		return nil, consulAccess{}, err
	}
	inv.Log.Info("read the configuration", logkey.GenerationName, cfg.GenerationName())
	a, err := newConsulAccess(inv, cfg)
	if err == nil && cfg.Proxy.NamedUpstreams {
		cfg.Proxy.Upstreams, a.hosts, err = redirect.NameUpstreams(cfg.Proxy.Upstreams)
	}
	return cfg, a, err
}

func logWarnings(log hclog.Logger, warnings []config.Finding) {
	for _, w := range warnings {
		log.Warn("configuration warning", logkey.Path, w.Path, logkey.Reason, w.Message)
	}
}

// metadataClient returns the task metadata client of this container.
func metadataClient(inv *cli.Invocation) (*awsutil.MetadataClient, error) {
	uri := inv.Getenv(awsutil.MetadataEnvVar)
	if uri == "" {
		return nil,
			exit.Usagef("%s is not set: this command runs in an ECS task (Fargate platform 1.4.0, ECS agent 1.39.0 or later)", awsutil.MetadataEnvVar)
	}
	if u, err := url.Parse(uri); err != nil || u.Scheme != "http" || u.Host == "" {
		return nil,
			exit.Usagef("%s is %q: want the http:// address that ECS sets; remove the variable from the container definition", awsutil.MetadataEnvVar, uri)
	}
	return awsutil.NewMetadataClient(uri), nil
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

// loginSession logs a container of the task in, by signatures of that time.
func loginSession(
	cfg *config.Config, t workload.Task, servers func() (*api.Client, error), limit time.Duration, log hclog.Logger,
) *consulutil.Session {
	return &consulutil.Session{
		Servers: servers,
		Bearer:  func(ctx context.Context) (string, error) { return bearer(ctx, cfg.ConsulLogin, t) },
		Limit:   limit,
		Log:     log,
	}
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

// regionEnv is where ECS and the user name the task's region.
const regionEnv = "AWS_REGION"

// Environment variables with the CA certificates of the servers, for tasks without an
// agent.
const (
	httpsCAPEMEnv = "CONSUL_HTTPS_CACERT_PEM"
	grpcCAPEMEnv  = "CONSUL_GRPC_CACERT_PEM"
)

// consulAccess is how the tasks of a configuration reach Consul: through the agent of the task or,
// with consulServers, at the servers.
type consulAccess struct {
	endpoint meshinit.ConsulEndpoint
	// clients lead to where tasks register, logins to where they log in and out.
	clients, logins consulutil.Options
	// servers is nil in a task with an agent.
	servers *consulutil.Servers
	// static reports that a token of the Consul environment takes the place of a login, which
	// it does in a task without an agent, as in hashicorp/consul-ecs 0.10.
	static bool
	// hosts are the lines for hosts files that name the upstreams.
	hosts []string
}

func newConsulAccess(inv *cli.Invocation, cfg *config.Config) (consulAccess, error) {
	if !cfg.Agentless() {
		return consulAccess{
			endpoint: meshinit.AgentEndpoint(),
			logins:   consulutil.Options{Address: cfg.ConsulHTTPAddr, CAFile: cfg.ConsulCACertFile},
		}, nil
	}
	servers, err := newServers(*cfg.ConsulServers, inv.Getenv(httpsCAPEMEnv), inv.Getenv(grpcCAPEMEnv), inv.Log)
	if err != nil {
		return consulAccess{}, err
	}
	o := consulutil.Options{Servers: servers}
	static := strings.TrimSpace(inv.Getenv(api.HTTPTokenEnvName)) != ""
	return consulAccess{endpoint: meshinit.ServersEndpoint(), clients: o, logins: o, servers: servers, static: static},
		nil
}

func newServers(c config.ConsulServers, httpsPEM, grpcPEM string, log hclog.Logger) (*consulutil.Servers, error) {
	servers, err := consulutil.NewServers(consulutil.ServersOptions{Config: c, HTTPSCAPEM: httpsPEM, GRPCCAPEM: grpcPEM,
		Log: log.Named("servers")})
	if err != nil {
		return nil, &exit.UsageError{Err: err}
	}
	return servers, nil
}

// setDefaults merges the passive health check of the configuration into the service's
// defaults; nil when it has none.
func (a consulAccess) setDefaults(
	cfg *config.Config, log hclog.Logger,
) func(context.Context, string, workload.Workload) error {
	if cfg.Gateway != nil || cfg.Service == nil || cfg.Service.NetworkResilience == nil ||
		!cfg.Service.NetworkResilience.Enabled {
		return nil
	}
	return func(ctx context.Context, token string, w workload.Workload) error {
		client, err := consulutil.NewClient(a.clients)
		if err != nil {
			return err
		}
		unsupported, err := registrar.EnsureResilience(ctx, client, token, w, *cfg.Service.NetworkResilience)
		if err == nil && len(unsupported) > 0 {
			log.Warn("the Consul servers do not know settings of networkResilienceConfig, which are left out",
				logkey.Fields, unsupported)
		}
		return err
	}
}

// unknownUpstreams returns what looks for the services of the upstreams; nil when there are none.
func (a consulAccess) unknownUpstreams(
	cfg *config.Config,
) func(context.Context, string, workload.Workload) ([]registrar.UnknownUpstream, error) {
	if cfg.Gateway != nil || cfg.Proxy == nil || len(cfg.Proxy.Upstreams) == 0 {
		return nil
	}
	return func(ctx context.Context, token string, w workload.Workload) ([]registrar.UnknownUpstream, error) {
		client, err := consulutil.NewClient(a.clients)
		if err != nil {
			return nil, err
		}
		return registrar.UnknownUpstreams(ctx, client, token, w)
	}
}

// watchServers keeps the servers' addresses up to date until stop is called. That does
// not depend on ctx, whose end begins the last requests of a task.
func (a consulAccess) watchServers(ctx context.Context) (stop func()) {
	if a.servers == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { a.servers.Run(ctx) })
	return func() { cancel(); running.Wait() }
}

// loginClient returns a client for where the task logs in and out.
func (a consulAccess) loginClient() (*api.Client, error) { return consulutil.NewClient(a.logins) }

// logOut makes its client when it is needed: health does not depend on it.
func (a consulAccess) logOut(ctx context.Context, secret string) error {
	servers, err := a.loginClient()
	if err != nil {
		return err
	}
	return consulutil.Logout(ctx, servers, secret)
}

// awaitClient returns a client for where the task registers, by meshinit.PrepareClient.
func (a consulAccess) awaitClient(
	ctx context.Context, limit time.Duration, log hclog.Logger,
) (client *api.Client, err error) {
	err = meshinit.PrepareClient(ctx, limit, log, func() (err error) {
		client, err = consulutil.NewClient(a.clients)
		return err
	})
	return client, consulutil.Remedy(err, "prepare Consul client", a.endpoint.ClientRemedy)
}

// consul returns where the task registers, by the Consul environment.
func (a consulAccess) consul(cfg *config.Config) (meshinit.Consul, error) {
	client, err := consulutil.NewClient(a.clients)
	if err != nil {
		return meshinit.Consul{}, err
	}
	token, err := consulutil.EffectiveToken(a.clients)
	return meshinit.Consul{Registrar: registrar.New(cfg, client), Token: token}, err
}

// proxyFiles returns what the proxy starts from. agent is for a task with an agent.
func (a consulAccess) proxyFiles(
	inv *cli.Invocation, cfg *config.Config, agent meshinit.AgentProxy,
) meshinit.ProxyFiles {
	if !cfg.Agentless() {
		return agent
	}
	return meshinit.ServersProxy{Config: cfg, HTTPSCAPEM: inv.Getenv(httpsCAPEMEnv), GRPC: a.servers.GRPCTLS(),
		Env: agent.Env, Hosts: a.hosts}
}
