package registrar

import (
	"context"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/workload"
)

// ttl is how long a check that health-sync feeds through an agent keeps its status
// without an update; then the agent makes it critical.
const ttl = 30 * time.Second

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
	// Set gives checks of the workload their statuses, and starts their TTLs anew. It
	// registers again what Consul has lost: the checks, or the workload. There is a
	// result for each update, in their order.
	Set(ctx context.Context, token string, w workload.Workload, updates []Update) []Result
	// Refresh is how often Set has to repeat a status that stays.
	Refresh() time.Duration
}

// Update is the status that a check of a workload is to have.
type Update struct {
	Check          workload.SyncCheck
	Status, Output string
	// First is set when the caller's process has not written the check yet: another
	// version may have registered it.
	First bool
	// Refresh is set when the caller has written the same before.
	Refresh bool
	// ReadBack is set with Refresh when a write may have been applied since, which only the
	// leader knows.
	ReadBack bool
	// Last is set when the task ends: a workload that Consul has lost stays lost, which
	// is an error of the class Gone.
	Last bool
}

// Result is the outcome of an Update.
type Result struct {
	Err error
	// Restored reports that Consul had lost the check, or the workload, and that it is
	// registered again.
	Restored bool
	// Unsure reports that an attempt of the write was not answered: it may be applied later,
	// also after the next write.
	Unsure bool
	// Unbound is why the check keeps its status when no update comes any more; nil when
	// it becomes critical then, or when that is unknown.
	Unbound error
}

// SessionHolder is a Registrar whose checks may depend on a session of the caller's process.
type SessionHolder interface {
	// Hold begins to keep the session until ctx ends, and returns a channel that is closed
	// when it has ended. log gets its failures. credentials returns the
	// token to present, and false as long as nothing vouches for the task: its session is
	// not renewed then, and its checks become critical.
	Hold(
		ctx context.Context, log hclog.Logger, credentials func() (token string, vouched bool), w workload.Workload,
	) <-chan struct{}
}

// New returns the registrar of the configuration's generation. client is that of the
// local agent, or without an agent that of the servers.
func New(cfg *config.Config, client *api.Client) Registrar {
	if cfg.Agentless() {
		return newCatalog(client)
	}
	return &agent{client: client}
}
