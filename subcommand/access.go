package subcommand

import (
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/meshinit"
	"github.com/meshtask/consul-ecs/registrar"
)

// Environment variables with the CA certificates of the servers, for tasks without an
// agent.
const (
	httpsCAPEMEnv = "CONSUL_HTTPS_CACERT_PEM"
	grpcCAPEMEnv  = "CONSUL_GRPC_CACERT_PEM"
)

// access is how the tasks of a configuration reach Consul. Besides registrar.New, only
// accessOf tells a task with an agent from one without.
type access struct {
	meshinit.Place
	registrar registrar.Factory
	// clients lead to where tasks register, logins to where they log in and out.
	clients, logins consulutil.Options
	// servers is nil in a task with an agent.
	servers *consulutil.Servers
}

func accessOf(inv *cli.Invocation, cfg *config.Config, registrars registrar.Factory) (access, error) {
	if cfg.ConsulServers == nil {
		return access{
			Place:     meshinit.InTask(),
			registrar: registrars,
			logins:    consulutil.Options{Address: cfg.ConsulHTTPAddr, CAFile: cfg.ConsulCACertFile},
		}, nil
	}
	servers, err := newServers(*cfg.ConsulServers, inv.Getenv(httpsCAPEMEnv), inv.Getenv(grpcCAPEMEnv), inv.Log)
	o := consulutil.Options{Servers: servers}
	return access{Place: meshinit.AtServers(), registrar: registrars, clients: o, logins: o, servers: servers}, err
}

func newServers(c config.ConsulServers, httpsPEM, grpcPEM string, log hclog.Logger) (*consulutil.Servers, error) {
	servers, err := consulutil.NewServers(consulutil.ServersOptions{Config: c, HTTPSCAPEM: httpsPEM, GRPCCAPEM: grpcPEM, Log: log.Named("servers")})
	if err != nil {
		return nil, &exit.UsageError{Err: err}
	}
	return servers, nil
}

// consul is where the task registers, by the Consul environment.
func (a access) consul() (meshinit.Consul, error) {
	client, err := consulutil.NewClient(a.clients)
	if err != nil {
		return meshinit.Consul{}, err
	}
	token, err := consulutil.EffectiveToken(a.clients)
	return meshinit.Consul{Registrar: a.registrar(client), Token: token}, err
}

// proxyFiles are what the proxy starts from. agent is for a task with an agent.
func (a access) proxyFiles(inv *cli.Invocation, cfg *config.Config, agent meshinit.AgentProxy) meshinit.ProxyFiles {
	if a.servers == nil {
		return agent
	}
	return meshinit.ServersProxy{Config: cfg, HTTPSCAPEM: inv.Getenv(httpsCAPEMEnv), GRPC: a.servers.GRPCTLS(), Env: agent.Env}
}
