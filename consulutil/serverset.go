package consulutil

import (
	"cmp"
	"errors"
	"hash/maphash"
	"net/netip"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/internal/logkey"
)

const (
	// refusalLimit is how long servers may answer that they cannot serve before hosts are
	// discovered: an election of a leader takes less.
	refusalLimit = 15 * time.Second
	// mostRetained bounds the servers that are known although hosts name others: of those that
	// have failed, and of the rest.
	mostRetained = 8
)

// first returns the first server that is not among tried.
func (s *Servers) first(tried []netip.Addr) (netip.Addr, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.set {
		if !slices.Contains(tried, a) {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// failed notes that a server could not be reached, or gave no answer.
func (s *Servers) failed(server netip.Addr, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.demote(server, err)
	if s.lost() {
		s.rediscover()
	}
}

// refused notes that a server answered that it cannot serve.
func (s *Servers) refused(server netip.Addr, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.demote(server, err)
	if s.lost() && time.Since(s.outage) > refusalLimit {
		s.rediscover()
	}
}

// demote makes a server the last one to be tried. The lock is held.
func (s *Servers) demote(server netip.Addr, err error) {
	if !errors.Is(err, errOthersFound) {
		s.failure = err
	}
	i := slices.Index(s.set, server)
	if i < 0 {
		return
	}
	s.set = append(slices.Delete(s.set, i, i+1), server)
	s.failures[server] = time.Now()
	if len(s.failing) == 0 {
		s.outage = time.Now()
	}
	if !slices.Contains(s.failing, server) {
		s.failing = append(s.failing, server)
	}
}

// lost reports whether the servers may have been replaced: two of them, or the only one, have
// failed since the last answer. The lock is held.
func (s *Servers) lost() bool { return len(s.failing) > 0 && len(s.failing) >= min(2, len(s.set)) }

// endOutage notes that a server has answered. The lock is held.
func (s *Servers) endOutage() {
	s.failing = nil
	if d := s.discovery; d != nil && time.Now().Before(d.starts) && len(s.set) > 0 {
		d.cancel()
	}
}

// served notes an answer. A server that answered after others had failed is the
// current one.
func (s *Servers) served(server netip.Addr, failedOver bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := s.lost()
	s.endOutage()
	i := slices.Index(s.set, server)
	if failedOver && i > 0 {
		s.set, i = slices.Insert(slices.Delete(s.set, i, i+1), 0, server), 0
	}
	// The answer of a server that meanwhile failed another request changes nothing.
	if i != 0 {
		return
	}
	delete(s.failures, server)
	if server == s.serving && !lost {
		return
	}
	switch {
	case s.failure == nil:
		s.log.Debug("reached a Consul server", logkey.Address, server)
	case server == s.serving:
		s.log.Info("reached the Consul server again", logkey.Address, server, logkey.Reason, s.failure)
	default:
		s.log.Info("moved to another Consul server", logkey.Address, server, logkey.Reason, s.failure)
	}
	if server != s.serving {
		s.notify()
	}
	s.serving, s.failure = server, nil
	s.refreshSoon()
}

// prefer makes a server that serves the current one.
func (s *Servers) prefer(server netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.set, server)
	if i <= 0 {
		return
	}
	s.set = slices.Insert(slices.Delete(s.set, i, i+1), 0, server)
	delete(s.failures, server)
	s.serving = server
	s.log.Info("moved to another Consul server", logkey.Address, server,
		logkey.Reason, "this process prefers it, and it serves again")
	s.notify()
}

// adopt makes found and kept the known servers. The lock is held.
func (s *Servers) adopt(found, kept []netip.Addr) {
	set := s.merge(found, kept)
	if slices.Equal(set, s.set) {
		return
	}
	for a := range s.failures {
		if !slices.Contains(set, a) {
			delete(s.failures, a)
		}
	}
	lost := s.lost()
	others := slices.ContainsFunc(set, func(a netip.Addr) bool { return !slices.Contains(s.set, a) })
	s.set = set
	if lost && others {
		s.log.Info("discovered other Consul servers", logkey.Address, set, logkey.Reason, s.failure)
		close(s.found)
		s.found = make(chan struct{})
	} else {
		s.log.Debug("Consul servers discovered", logkey.Address, set)
	}
	s.notify()
}

func (s *Servers) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// byRank compares two servers by this process's order of preference, which is another one in
// every process: so a fleet spreads.
func (s *Servers) byRank(a, b netip.Addr) int {
	return cmp.Compare(maphash.Comparable(s.seed, a), maphash.Comparable(s.seed, b))
}

// merge returns found, and of set what is in kept, too, in the order in which they are to be
// tried: the current server while it serves, those that were found and have not failed, new
// ones by rank, and last those that have failed or were not found. Otherwise what is in set
// keeps its order. The lock is held.
func (s *Servers) merge(found, kept []netip.Addr) []netip.Addr {
	var current, known, added, retained, failed, failedRetained []netip.Addr
	for _, a := range s.set {
		named := slices.Contains(found, a)
		_, fails := s.failures[a]
		switch {
		case !named && !slices.Contains(kept, a):
		case fails && named:
			failed = append(failed, a)
		case fails:
			failedRetained = append(failedRetained, a)
		case a == s.serving && a == s.set[0]:
			current = append(current, a)
		case named:
			known = append(known, a)
		default:
			retained = append(retained, a)
		}
	}
	for _, a := range found {
		if !slices.Contains(s.set, a) {
			added = append(added, a)
		}
	}
	slices.SortFunc(added, s.byRank)
	retained = retained[:min(len(retained), mostRetained)]
	failedRetained = failedRetained[max(0, len(failedRetained)-mostRetained):]
	return slices.Concat(current, known, added, retained, failed, failedRetained)
}
