package healthsync

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/workload"
)

// awaitApplications keeps the service token for the last requests of the applications,
// or of a gateway's callers, at most for limit: Envoy receives changes upstream by it.
// That needs an agent that outlives them, which only client-entrypoint promises. Without
// an agent the registration stays, too, and until the proxy has stopped, unless it is that
// of a mesh gateway, which is deregistered before. It reports whether the Consul client's
// container has stopped meanwhile.
func (s *syncer) awaitApplications(ctx context.Context, limit time.Duration) (clientEnded bool) {
	if limit <= 0 || !s.reloadToken() || !s.AtServers && (!s.login || !s.agentOwned()) {
		return false
	}
	why := "their last requests need the service token"
	if s.AtServers && !leavesEarly(s.Config.Gateway) {
		why = "they are deregistered after their last requests"
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	log := s.Log.With(logkey.Reason, why)
	running, err := awsutil.AwaitStopped(ctx, log, s.fetch, awsutil.AwaitPause, func(t workload.Task) []workload.Container {
		clientEnded = t.Ended(workload.ContainerConsulClient)
		if !s.AtServers && (clientEnded || !s.agentOwned()) {
			return nil
		}
		users := t.Applications(s.Ignore)
		if s.Config.Gateway != nil || s.AtServers {
			users = append(users, t.Proxies()...)
		}
		return users
	})
	if err != nil {
		s.Log.Warn("cannot confirm that the applications have stopped, leaving the mesh anyway", logkey.Container, running, logkey.Elapsed, limit)
	}
	return clientEnded
}

// agentOwned reports whether a client-entrypoint holds the agent for us. It takes its
// marker away when the agent is gone, at any time, so the answer is not kept. One that was
// killed leaves the marker, and its token to us.
func (s *syncer) agentOwned() bool {
	_, err := os.Stat(filepath.Join(s.Config.BootstrapDir, workload.FileClientTokenOwner))
	return !errors.Is(err, fs.ErrNotExist)
}
