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

// place is where the tasks of a configuration register. Besides registrar.New, only
// placeOf tells a task with an agent from one without.
type place struct {
	meshinit.Place
	registrar registrar.Factory
	// clients lead to where tasks register, logins to where they log in and out.
	clients, logins consulutil.Options
	// servers is nil in a task with an agent.
	servers *consulutil.Servers
}

func placeOf(inv *cli.Invocation, cfg *config.Config, registrars registrar.Factory) (place, error) {
	if cfg.ConsulServers == nil {
		return place{
			Place:     meshinit.InTask(),
			registrar: registrars,
			logins:    consulutil.Options{Address: cfg.ConsulHTTPAddr, CAFile: cfg.ConsulCACertFile},
		}, nil
	}
	servers, err := newServers(*cfg.ConsulServers, inv.Getenv(httpsCAPEMEnv), inv.Getenv(grpcCAPEMEnv), inv.Log)
	o := consulutil.Options{Servers: servers}
	return place{Place: meshinit.AtServers(), registrar: registrars, clients: o, logins: o, servers: servers}, err
}

func newServers(c config.ConsulServers, httpsPEM, grpcPEM string, log hclog.Logger) (*consulutil.Servers, error) {
	servers, err := consulutil.NewServers(consulutil.ServersOptions{Config: c, HTTPSCAPEM: httpsPEM, GRPCCAPEM: grpcPEM, Log: log.Named("servers")})
	if err != nil {
		return nil, &exit.UsageError{Err: err}
	}
	return servers, nil
}

// consul is where the task registers, by the Consul environment.
func (p place) consul() (meshinit.Consul, error) {
	client, err := consulutil.NewClient(p.clients)
	if err != nil {
		return meshinit.Consul{}, err
	}
	token, err := consulutil.EffectiveToken(p.clients)
	return meshinit.Consul{Registrar: p.registrar(client), Token: token}, err
}

// proxyFiles are what the proxy starts from. agent is for a task with an agent.
func (p place) proxyFiles(inv *cli.Invocation, cfg *config.Config, agent meshinit.AgentProxy) meshinit.ProxyFiles {
	if p.servers == nil {
		return agent
	}
	return meshinit.ServersProxy{Config: cfg, HTTPSCAPEM: inv.Getenv(httpsCAPEMEnv), GRPC: p.servers.GRPCTLS(), Env: agent.Env}
}
