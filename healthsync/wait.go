package healthsync

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/workload"
)

// waitPause lies between two metadata reads after the signal.
const waitPause = 250 * time.Millisecond

// awaitApplications keeps the service token for the applications' last
// requests, at most for limit: Envoy hears of changes upstream by it. That
// needs an agent that outlives them, which only client-entrypoint promises.
func (s *syncer) awaitApplications(ctx context.Context, limit time.Duration) {
	if limit <= 0 || !s.cfg.ConsulLogin.Enabled || !s.reloadToken() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var waiting []string
	for blind := false; s.agentStays(); {
		task, err := s.fetch(ctx)
		running := workload.Running(task.Applications(s.ignore))
		switch {
		case err != nil && ctx.Err() == nil && !blind: // which says nothing about the applications
			s.Log.Warn("task metadata unreadable, keeping the service token", logkey.Error, err)
			blind = true
		case err == nil && len(running) == 0:
			return
		case err == nil && !slices.Equal(waiting, running):
			s.Log.Info("keeping the service token until the applications have stopped", logkey.Container, running)
			waiting = running
		}
		select {
		case <-time.After(waitPause):
		case <-ctx.Done():
			s.Log.Warn("applications are not known to have stopped, logging out all the same", logkey.Container, waiting, logkey.Elapsed, limit)
			return
		}
	}
}

// agentStays says whether a client-entrypoint holds the agent for us. It takes
// its marker away when the agent is gone.
func (s *syncer) agentStays() bool {
	_, err := os.Stat(filepath.Join(s.cfg.BootstrapDir, workload.FileClientTokenOwner))
	return !errors.Is(err, fs.ErrNotExist)
}
