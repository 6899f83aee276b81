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

// tokenNeeded is why the service token stays until its users have stopped: Envoy receives
// changes upstream by it.
const tokenNeeded = "their last requests need the service token"

// await waits until the users have stopped, or until end.
func (s *syncer) await(ctx context.Context, end time.Time, why string, users func(workload.Task) []workload.Container) {
	limit := time.Until(end)
	if limit <= 0 || !s.reloadToken() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	running, err := awsutil.AwaitStopped(ctx, s.Log.With(logkey.Reason, why), s.fetch, awsutil.AwaitPause, users)
	if err != nil {
		s.Log.Warn("cannot confirm that the applications have stopped, leaving the mesh anyway", logkey.Container, running, logkey.Elapsed, limit)
	}
}

// agentOwned reports whether a client-entrypoint holds the agent for us. It takes its
// marker away when the agent is gone, at any time, so the answer is not kept. One that was
// killed leaves the marker, and its token to us.
func (s *syncer) agentOwned() bool {
	_, err := os.Stat(filepath.Join(s.Config.BootstrapDir, workload.FileClientTokenOwner))
	return !errors.Is(err, fs.ErrNotExist)
}
