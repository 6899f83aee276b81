package subcommand

import (
	"context"
	"strings"
	"sync"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/meshinit"
	"github.com/meshtask/consul-ecs/redirect"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

// regionEnv is where ECS and the user name the task's region.
const regionEnv = "AWS_REGION"

// Environment variables with the CA certificates of the servers, for tasks without an
// agent.
const (
	httpsCAPEMEnv = "CONSUL_HTTPS_CACERT_PEM"
	grpcCAPEMEnv  = "CONSUL_GRPC_CACERT_PEM"
)

// access is how the tasks of a configuration reach Consul. Besides registrar.New, only
// accessOf distinguishes a task with an agent from one without.
type access struct {
	meshinit.Place
	// clients lead to where tasks register, logins to where they log in and out.
	clients, logins consulutil.Options
	// servers is nil in a task with an agent.
	servers *consulutil.Servers
	// static reports that the Consul environment has a token. In a task without an agent
	// it takes the place of a login, as in hashicorp/consul-ecs 0.10.
	static bool
	// hosts are the lines for hosts files that name the upstreams.
	hosts []string
}

func accessOf(inv *cli.Invocation, cfg *config.Config) (access, error) {
	if cfg.ConsulServers == nil {
		return access{
			Place:  meshinit.InTask(),
			logins: consulutil.Options{Address: cfg.ConsulHTTPAddr, CAFile: cfg.ConsulCACertFile},
		}, nil
	}
	servers, err := newServers(*cfg.ConsulServers, inv.Getenv(httpsCAPEMEnv), inv.Getenv(grpcCAPEMEnv), inv.Log)
	if err != nil {
		return access{}, err
	}
	o := consulutil.Options{Servers: servers}
	a := access{Place: meshinit.AtServers(), clients: o, logins: o, servers: servers, static: strings.TrimSpace(inv.Getenv(api.HTTPTokenEnvName)) != ""}
	if cfg.Proxy.NamedUpstreams {
		cfg.Proxy.Upstreams, a.hosts, err = redirect.NameUpstreams(cfg.Proxy.Upstreams)
	}
	return a, err
}

func newServers(c config.ConsulServers, httpsPEM, grpcPEM string, log hclog.Logger) (*consulutil.Servers, error) {
	servers, err := consulutil.NewServers(consulutil.ServersOptions{Config: c, HTTPSCAPEM: httpsPEM, GRPCCAPEM: grpcPEM, Log: log.Named("servers")})
	if err != nil {
		return nil, &exit.UsageError{Err: err}
	}
	return servers, nil
}

// setDefaults merges the passive health check of the configuration into the service's
// defaults; nil when it has none.
func (a access) setDefaults(cfg *config.Config, log hclog.Logger) func(context.Context, string, workload.Workload) error {
	if cfg.Gateway != nil || cfg.Service == nil || cfg.Service.NetworkResilience == nil || !cfg.Service.NetworkResilience.Enabled {
		return nil
	}
	return func(ctx context.Context, token string, w workload.Workload) error {
		client, err := consulutil.NewClient(a.clients)
		if err != nil {
			return err
		}
		unsupported, err := registrar.EnsureResilience(ctx, client, token, w, *cfg.Service.NetworkResilience)
		if err == nil && len(unsupported) > 0 {
			log.Warn("the Consul servers do not know settings of networkResilienceConfig, which are left out", logkey.Fields, unsupported)
		}
		return err
	}
}

// watchServers keeps the servers' addresses up to date until stop is called. That does
// not depend on ctx, whose end begins the last requests of a task.
func (a access) watchServers(ctx context.Context) (stop func()) {
	if a.servers == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { a.servers.Run(ctx) })
	return func() { cancel(); running.Wait() }
}

// loginClient is a client for where the task logs in and out.
func (a access) loginClient() (*api.Client, error) { return consulutil.NewClient(a.logins) }

// logOut makes its client when it is needed: health does not depend on it.
func (a access) logOut(ctx context.Context, secret string) error {
	servers, err := a.loginClient()
	if err != nil {
		return err
	}
	return consulutil.Logout(ctx, servers, secret)
}

// consul is where the task registers, by the Consul environment.
func (a access) consul(cfg *config.Config) (meshinit.Consul, error) {
	client, err := consulutil.NewClient(a.clients)
	if err != nil {
		return meshinit.Consul{}, err
	}
	token, err := consulutil.EffectiveToken(a.clients)
	return meshinit.Consul{Registrar: registrar.New(cfg, client), Token: token}, err
}

// proxyFiles are what the proxy starts from. agent is for a task with an agent.
func (a access) proxyFiles(inv *cli.Invocation, cfg *config.Config, agent meshinit.AgentProxy) meshinit.ProxyFiles {
	if a.servers == nil {
		return agent
	}
	return meshinit.ServersProxy{Config: cfg, HTTPSCAPEM: inv.Getenv(httpsCAPEMEnv), GRPC: a.servers.GRPCTLS(), Env: agent.Env, Hosts: a.hosts}
}
