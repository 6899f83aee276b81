package consulutil

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// Pauses of Run. One request every 5 min is little for servers that replace each
// other within hours, and a request that fails over brings the next one forward.
const (
	refreshPeriod = 5 * time.Minute
	refreshRetry  = 30 * time.Second // doubled for each failure
	refreshPause  = 10 * time.Second // the least time between two
	// returnAfter is how long a server must not have failed before this process returns to it.
	returnAfter = time.Minute
)

// Run keeps the known servers up to date until ctx ends: it asks the server that
// serves for its peers, when it serves its first request, when a request has failed
// over to it, and every 5 min. With skipServerWatch it instead discovers hosts again
// after a request that has failed over. Every 5 min it also returns to the server that
// this process prefers. Hosts are discovered without Run, too, when servers are lost;
// the end of Run ends a discovery.
func (s *Servers) Run(ctx context.Context) {
	defer s.stopDiscovery()
	var periodic <-chan time.Time
	again := refreshRetry
	for {
		var found []netip.Addr
		var err error
		timed := false
		select {
		case <-ctx.Done():
			return
		case <-s.stale:
			found, err = s.refresh(ctx)
		case <-periodic:
			timed = true
			if s.config.SkipServerWatch {
				found = s.known()
			} else {
				found, err = s.refresh(ctx)
			}
		}
		if ctx.Err() != nil {
			return
		}
		pause := refreshPeriod
		if err != nil {
			s.log.Log(s.causes.Level(err), "list of Consul servers was not refreshed", logkey.Error, err)
			pause, again = again, min(2*again, refreshPeriod)
		} else {
			again = refreshRetry
		}
		if timed && err == nil {
			s.settle(ctx, found)
		}
		periodic = time.After(retry.Around(pause))
		select {
		case <-s.stale: // by our own request
		default:
		}
		if retry.Sleep(ctx, refreshPause) != nil {
			return
		}
	}
}

// known returns the set.
func (s *Servers) known() []netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.set.addresses)
}

// refresh replaces the known servers, and returns what it found.
func (s *Servers) refresh(ctx context.Context) ([]netip.Addr, error) {
	if s.config.SkipServerWatch {
		return nil, s.discoverAgain(ctx)
	}
	client, err := NewClient(Options{Servers: s})
	if err != nil {
		return nil, err
	}
	peers, err := client.Status().PeersWithQueryOptions((&api.QueryOptions{}).WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("list the peers of the Consul servers: %w", err)
	}
	found, err := parsePeers(peers)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// The server that has just answered may be a load balancer, whose address is no
	// peer's.
	s.set.adopt(found, s.set.addresses[:min(1, len(s.set.addresses))])
	return found, nil
}

// discoverAgain waits for a discovery, unless the last one was a moment ago.
func (s *Servers) discoverAgain(ctx context.Context) error {
	s.mu.Lock()
	if s.discovery == nil && time.Now().Before(s.earliest) {
		s.mu.Unlock()
		return nil
	}
	d := s.rediscover()
	s.mu.Unlock()
	select {
	case <-d.done: // finish has logged its error
	case <-ctx.Done():
	}
	return nil
}

// settle returns to the server that this process prefers among found, if it serves: after a
// restart of all servers, one after the other, the last one would have no clients.
func (s *Servers) settle(ctx context.Context, found []netip.Addr) {
	s.mu.Lock()
	preferred := s.set.preferred(found)
	s.mu.Unlock()
	for _, a := range preferred {
		_, err := s.askLeader(ctx, a)
		if err == nil {
			s.mu.Lock()
			s.set.prefer(a)
			s.mu.Unlock()
			return
		}
		s.log.Debug("preferred Consul server does not serve", logkey.Address, a, logkey.Error, err)
	}
}
