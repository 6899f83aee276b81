package registrar

import (
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/workload"
)

// LoginParams are those of the login of a task's service or gateway.
func LoginParams(cfg *config.Config, w workload.Workload, t workload.Task) consulutil.LoginParams {
	return consulutil.LoginParams{
		Method:     cfg.ConsulLogin.Method,
		Partition:  w.Partition,
		Datacenter: cfg.ConsulLogin.Datacenter,
		Meta:       workload.LoginMeta(cfg, t),
	}
}
