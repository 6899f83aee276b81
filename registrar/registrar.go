package registrar

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/workload"
)

// TTL is how long a check that health-sync feeds keeps its status without an
// update; then Consul makes it critical.
const TTL = 30 * time.Second

// Registrar is a place where workloads are registered. token authorises the
// call; empty leaves it to the client's own. Every call is safe to repeat.
type Registrar interface {
	// Register writes the service (unless the workload is a gateway) and then
	// the proxy. Checks that exist keep their status, new ones are critical.
	Register(ctx context.Context, token string, w workload.Workload) error
	// Deregister removes what Register wrote. What is not there is no error.
	Deregister(ctx context.Context, token string, w workload.Workload) error
	// Proxy returns the registered proxy with Consul's mesh-wide defaults
	// merged in, for the bootstrap.
	Proxy(ctx context.Context, token string, w workload.Workload) (bootstrap.Proxy, error)
	Checks
}

// Checks is the part of a Registrar that changes what Consul makes of the health of
// a registered workload.
type Checks interface {
	// EnsureCheck creates or renews the check and its TTL and sets its status,
	// registering the workload again if Consul has lost it.
	EnsureCheck(ctx context.Context, token string, w workload.Workload, c workload.SyncCheck, status, output string) error
	// SetStatus sets the check's status and restarts its TTL. The error's
	// class is Gone when Consul does not know the check.
	SetStatus(ctx context.Context, token string, w workload.Workload, c workload.SyncCheck, status, output string) error
	// SetMaintenance makes the proxy, or the gateway, critical for that reason
	// whatever its checks report, and ends that when the reason is empty. The
	// error's class is Gone when Consul does not know the proxy.
	SetMaintenance(ctx context.Context, token string, w workload.Workload, reason string) error
}

// Factory returns a generation's registrar that works through the client of the
// local agent.
type Factory func(client *api.Client) Registrar

// New returns the factory for the configuration's generation, or an
// *UnsupportedError for one that this version does not run with.
func New(cfg *config.Config) (Factory, error) {
	switch cfg.Generation {
	case config.Agent:
		return func(client *api.Client) Registrar { return &agent{client: client} }, nil
	case config.Agentless:
		return nil, &UnsupportedError{}
	}
	return nil, fmt.Errorf("unknown generation %d", cfg.Generation)
}

// UnsupportedError reports a configuration for a later generation.
type UnsupportedError struct{}

func (*UnsupportedError) Error() string {
	return "consulServers is set, but this version runs with a Consul client agent in the task: " +
		"remove consulServers, run a consul-client container and set consulHTTPAddr, " +
		"or use an image that supports tasks without an agent"
}
