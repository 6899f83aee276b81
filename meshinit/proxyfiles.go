package meshinit

import (
	"context"

	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/workload"
)

// ProxyFiles makes the files that the container of the proxy starts from.
type ProxyFiles interface {
	// Check refuses what Files would refuse, as far as the settings alone show it. It
	// does no I/O.
	Check() error
	// Files returns the files for a proxy that presents token; empty without ACLs.
	Files(ctx context.Context, w workload.Workload, p bootstrap.Proxy, token string) ([]File, error)
}

// File is a file of the bootstrap directory.
type File struct {
	Name string
	Data []byte
	// Secret says that only the proxy's group may read it.
	Secret bool
}

// AgentProxy is for an Envoy that gets its configuration from the agent in the task.
type AgentProxy struct {
	// GRPC is how Envoy will reach the agent.
	GRPC GRPC
	// ReadyBind is IP:port of Envoy's readiness listener; none when empty.
	ReadyBind string
	// Env is what statsd addresses in the proxy configuration may refer to.
	Env map[string]string
}

// Check refuses a gRPC address that no bootstrap can hold.
func (a AgentProxy) Check() error { return a.GRPC.check() }

// Files returns Envoy's bootstrap, which holds the token.
func (a AgentProxy) Files(ctx context.Context, w workload.Workload, p bootstrap.Proxy, token string) ([]File, error) {
	grpc, err := a.GRPC.resolve(ctx)
	if err != nil {
		return nil, err
	}
	data, err := bootstrap.Generate(bootstrap.Params{
		Proxy: p, ProxyID: w.Proxy.ID, Token: token, GRPC: grpc, ReadyBind: a.ReadyBind, Env: a.Env,
	})
	return []File{{Name: workload.FileBootstrap, Data: data, Secret: token != ""}}, err
}
