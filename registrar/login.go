package registrar

import (
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/workload"
)

// LoginParams returns the parameters of the login of a task's container by the method of the
// configuration. partition is that of the service, the gateway or the agent.
func LoginParams(cfg *config.Config, partition string, t workload.Task) consulutil.LoginParams {
	return consulutil.LoginParams{
		Method:     cfg.ConsulLogin.Method,
		Partition:  partition,
		Datacenter: cfg.ConsulLogin.Datacenter,
		Meta:       workload.LoginMeta(cfg, t),
	}
}
