package healthsync

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	// startupTick takes the place of tick while a container has neither a first
	// result of ECS nor a port that serves: each tick is start-up time.
	startupTick = 200 * time.Millisecond
	// servesTimeout bounds one look at a port of loopback.
	servesTimeout = 500 * time.Millisecond
	// servesPause is how long a container that serves is not asked again: where ECS
	// never has a result, that is a connection each time, as long as the task lives.
	servesPause = time.Second
)

// startup are the containers for which serving counts as passing until ECS has its
// first result: those of healthSync.startup at the service's port, and without an agent
// the proxy by its readiness listener. That result ends it for the rest of this
// process, whatever ECS reports later: a check that lost its result is critical.
type startup struct {
	serves func(ctx context.Context, port int, path string) error
	// pending are the containers without a result.
	pending map[string]*probe
	// waiting reports that one of them runs and did not serve at the last look.
	waiting bool
}

// probe is how a container is asked.
type probe struct {
	port int
	path string // empty for a connection alone
	// tolerated failures in a row do not count after a success: where ECS never has a
	// result, one late answer must not take the task out of traffic.
	tolerated, failures int
	served              bool
	asked               time.Time
}

// readyPath is where Envoy's readiness listener answers.
const readyPath = "/ready"

// readyTolerance is how often the proxy may fail to answer in time.
const readyTolerance = 2

func newStartup(cfg *config.Config, serves func(context.Context, int, string) error) startup {
	s := startup{serves: serves, pending: map[string]*probe{}}
	for container, how := range cfg.HealthSync.Startup {
		if !slices.Contains(cfg.HealthSyncContainers, container) || cfg.Service == nil {
			continue
		}
		s.pending[container] = &probe{port: cfg.Service.Port}
		if strings.HasPrefix(how, "/") {
			s.pending[container].path = how
		}
	}
	if cfg.Agentless() {
		for _, name := range workload.ProxyContainers() {
			s.pending[name] = &probe{port: cfg.ReadyPort(), path: readyPath, tolerated: readyTolerance}
		}
	}
	return s
}

// serving returns of the pending containers whether they run and serve now, by a valid
// metadata answer, and drops those with a result.
func (s *startup) serving(ctx context.Context, containers []workload.Container) map[string]bool {
	s.waiting = false
	if len(s.pending) == 0 {
		return nil
	}
	serving := map[string]bool{}
	for _, c := range containers {
		p, pending := s.pending[c.Name]
		switch {
		case !pending:
		case c.HealthStatus() != "":
			delete(s.pending, c.Name)
		case c.KnownStatus != workload.StatusRunning || c.DesiredStatus != workload.StatusRunning:
			serving[c.Name] = false
		default:
			serving[c.Name] = s.serve(ctx, p)
			s.waiting = s.waiting || !serving[c.Name]
		}
	}
	return serving
}

// serve asks a container, and reports whether it counts as serving.
func (s *startup) serve(ctx context.Context, p *probe) bool {
	// Half a tick early, as in diff.
	if p.counts() && time.Since(p.asked) < servesPause-tick/2 {
		return true
	}
	p.asked = time.Now()
	ctx, cancel := context.WithTimeout(ctx, servesTimeout)
	defer cancel()
	if s.serves(ctx, p.port, p.path) == nil {
		p.served, p.failures = true, 0
		return true
	}
	p.failures++
	return p.counts()
}

func (p *probe) counts() bool { return p.served && p.failures <= p.tolerated }

// pause returns the time until the next look.
func (s *startup) pause() time.Duration {
	if s.waiting {
		return startupTick
	}
	return tick
}
