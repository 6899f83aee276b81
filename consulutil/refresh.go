package consulutil

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// Pauses of Run. One request every 5 min is little for servers that replace each
// other within hours, and a request that fails over brings the next one forward.
const (
	refreshPeriod = 5 * time.Minute
	refreshRetry  = 30 * time.Second
	refreshPause  = 10 * time.Second // the least time between two
)

// Run keeps the known servers up to date until ctx ends: it asks the server that
// serves for its peers, when it serves its first request, when a request has failed
// over to it, and every 5 min. With skipServerWatch it instead discovers hosts again
// after a request that has failed over. Without Run, hosts are discovered again when no
// known server can be reached.
func (s *Servers) Run(ctx context.Context) {
	var periodic <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.stale:
		case <-periodic:
		}
		pause := refreshPeriod
		if err := s.refresh(ctx); err != nil {
			s.log.Warn("list of Consul servers was not refreshed", logkey.Error, err)
			pause = refreshRetry
		}
		if !s.config.SkipServerWatch {
			periodic = time.After(retry.Policy{Base: pause, Constant: true}.Pause(1))
		}
		select {
		case <-s.stale: // by our own request
		default:
		}
		if retry.Sleep(ctx, refreshPause) != nil {
			return
		}
	}
}

// refresh replaces the known servers.
func (s *Servers) refresh(ctx context.Context) error {
	if s.config.SkipServerWatch {
		return s.rediscover(ctx)
	}
	client, err := NewClient(Options{Servers: s})
	if err != nil {
		return err
	}
	peers, err := client.Status().PeersWithQueryOptions((&api.QueryOptions{}).WithContext(ctx))
	if err != nil {
		return fmt.Errorf("list the peers of the Consul servers: %w", err)
	}
	found, err := parsePeers(peers)
	if err != nil {
		return err
	}
	// The server that has just answered may be a load balancer, whose address is no
	// peer's.
	s.adopt(found, 1)
	return nil
}
