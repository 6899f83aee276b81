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
// of a mesh gateway, which is deregistered before.
func (s *syncer) awaitApplications(ctx context.Context, limit time.Duration) {
	if limit <= 0 || !s.reloadToken() || !s.AtServers && (!s.login || !s.agentStays()) {
		return
	}
	why := "their last requests need the service token"
	if s.AtServers && !leavesEarly(s.Config.Gateway) {
		why = "they are deregistered after their last requests"
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	log := s.Log.With(logkey.Reason, why)
	running, err := awsutil.AwaitStopped(ctx, log, s.fetch, awsutil.AwaitPause, func(t workload.Task) []workload.Container {
		s.clientEnded = t.Ended(workload.ContainerConsulClient)
		if !s.AtServers && !s.agentStays() {
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
}

// agentStays reports whether a client-entrypoint holds the agent for us. It takes
// its marker away when the agent is gone; one that was killed left the marker,
// and its token to us.
func (s *syncer) agentStays() bool {
	_, err := os.Stat(filepath.Join(s.Config.BootstrapDir, workload.FileClientTokenOwner))
	return !s.clientEnded && !errors.Is(err, fs.ErrNotExist)
}
