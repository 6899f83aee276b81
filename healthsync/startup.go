package healthsync

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	// startupTick takes the place of Tick while a container has neither a first
	// result of ECS nor a port that serves: each tick is start-up time.
	startupTick = 200 * time.Millisecond
	// servesTimeout bounds one look at a port of loopback.
	servesTimeout = 500 * time.Millisecond
)

// startup are the containers for which serving at the service's port counts as
// passing until ECS has its first result. That result ends it for the rest of this
// process, whatever ECS reports later: a check that lost its result is critical.
type startup struct {
	port   int
	serves func(ctx context.Context, port int, path string) error
	// pending are the paths, or config.StartupTCP, of containers without a result.
	pending map[string]string
	// waiting reports that one of them runs and did not serve at the last look.
	waiting bool
}

func newStartup(cfg *config.Config, serves func(context.Context, int, string) error) startup {
	s := startup{serves: serves, pending: maps.Clone(cfg.HealthSync.Startup)}
	maps.DeleteFunc(s.pending, func(container, _ string) bool { return !slices.Contains(cfg.HealthSyncContainers, container) })
	if cfg.Service != nil {
		s.port = cfg.Service.Port
	}
	return s
}

// serving returns the pending containers that run and serve now, by a valid
// metadata answer, and drops those with a result.
func (s *startup) serving(ctx context.Context, containers []workload.Container) []string {
	s.waiting = false
	if len(s.pending) == 0 {
		return nil
	}
	var found []string
	for _, c := range containers {
		how, pending := s.pending[c.Name]
		switch {
		case !pending:
		case c.Health.Status != "":
			delete(s.pending, c.Name)
		case c.KnownStatus != workload.StatusRunning || c.DesiredStatus != workload.StatusRunning:
		case s.serve(ctx, how):
			found = append(found, c.Name)
		default:
			s.waiting = true
		}
	}
	return found
}

func (s *startup) serve(ctx context.Context, how string) bool {
	ctx, cancel := context.WithTimeout(ctx, servesTimeout)
	defer cancel()
	path := ""
	if strings.HasPrefix(how, "/") {
		path = how
	}
	return s.serves(ctx, s.port, path) == nil
}

// pause is the time until the next look.
func (s *startup) pause() time.Duration {
	if s.waiting {
		return startupTick
	}
	return Tick
}
