package consulutil

import (
	"cmp"
	"errors"
	"hash/maphash"
	"net/netip"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
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

// serverSet is the order in which the servers are tried. A lock of Servers guards it.
type serverSet struct {
	log  hclog.Logger
	seed maphash.Seed // of the order in which this process prefers servers
	// addresses has the current server first, and those that failed last at the end.
	addresses []netip.Addr
	// failures has the last failure of each server of the set that has not answered since.
	failures map[netip.Addr]time.Time
	// failing are the servers that failed since the last answer of any, and outage is when
	// the first of them did.
	failing []netip.Addr
	outage  time.Time
	failure error         // the last one
	serving netip.Addr    // answered last
	changed chan struct{} // closed by the next change
	// found is closed when a discovery has found others than those that were lost:
	// connections that are being made are abandoned.
	found chan struct{}
}

func newServerSet(log hclog.Logger) serverSet {
	return serverSet{
		log: log, seed: maphash.MakeSeed(), failures: map[netip.Addr]time.Time{},
		changed: make(chan struct{}), found: make(chan struct{}),
	}
}

// first returns the first server that is not among tried.
func (s *Servers) first(tried []netip.Addr) (netip.Addr, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.set.addresses {
		if !slices.Contains(tried, a) {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// failed records that a server could not be reached, or gave no answer.
func (s *Servers) failed(server netip.Addr, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set.demote(server, err)
	if s.set.unreachable() {
		s.rediscover()
	}
}

// refused records that a server answered that it cannot serve.
func (s *Servers) refused(server netip.Addr, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set.demote(server, err)
	if s.set.unreachable() && time.Since(s.set.outage) > refusalLimit {
		s.rediscover()
	}
}

// demote makes a server the last one to be tried.
func (s *serverSet) demote(server netip.Addr, err error) {
	if !errors.Is(err, errOthersFound) {
		s.failure = err
	}
	i := slices.Index(s.addresses, server)
	if i < 0 {
		return
	}
	s.addresses = append(slices.Delete(s.addresses, i, i+1), server)
	s.failures[server] = time.Now()
	if len(s.failing) == 0 {
		s.outage = time.Now()
	}
	if !slices.Contains(s.failing, server) {
		s.failing = append(s.failing, server)
	}
}

// unreachable reports whether the servers may have been replaced: two of them, or the only one, have
// failed since the last answer.
func (s *serverSet) unreachable() bool {
	return len(s.failing) > 0 && len(s.failing) >= min(2, len(s.addresses))
}

// endOutage records that a server has answered. The lock is held.
func (s *Servers) endOutage() {
	s.set.failing = nil
	if d := s.discovery; d != nil && time.Now().Before(d.starts) && len(s.set.addresses) > 0 {
		d.cancel()
	}
}

// served records an answer. A server that answered after others had failed is the
// current one.
func (s *Servers) served(server netip.Addr, failedOver bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wasUnreachable := s.set.unreachable()
	s.endOutage()
	if s.set.answered(server, failedOver, wasUnreachable) {
		s.refreshSoon()
	}
}

// answered records an answer, and reports whether the current server has changed or serves again.
func (s *serverSet) answered(server netip.Addr, failedOver, wasUnreachable bool) bool {
	i := slices.Index(s.addresses, server)
	if failedOver && i > 0 {
		s.addresses, i = slices.Insert(slices.Delete(s.addresses, i, i+1), 0, server), 0
	}
	// The answer of a server that meanwhile failed another request changes nothing.
	if i != 0 {
		return false
	}
	delete(s.failures, server)
	if server == s.serving && !wasUnreachable {
		return false
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
	return true
}

// prefer makes a server that serves the current one.
func (s *serverSet) prefer(server netip.Addr) {
	i := slices.Index(s.addresses, server)
	if i <= 0 {
		return
	}
	s.addresses = slices.Insert(slices.Delete(s.addresses, i, i+1), 0, server)
	delete(s.failures, server)
	s.serving = server
	s.log.Info("moved to another Consul server", logkey.Address, server,
		logkey.Reason, "this process prefers it, and it serves again")
	s.notify()
}

// adopt makes found and retained the known servers.
func (s *serverSet) adopt(found, retained []netip.Addr) {
	set := s.merge(found, retained)
	if slices.Equal(set, s.addresses) {
		return
	}
	for a := range s.failures {
		if !slices.Contains(set, a) {
			delete(s.failures, a)
		}
	}
	wasUnreachable := s.unreachable()
	others := slices.ContainsFunc(set, func(a netip.Addr) bool { return !slices.Contains(s.addresses, a) })
	s.addresses = set
	if wasUnreachable && others {
		s.log.Info("discovered other Consul servers", logkey.Address, set, logkey.Reason, s.failure)
		close(s.found)
		s.found = make(chan struct{})
	} else {
		s.log.Debug("Consul servers discovered", logkey.Address, set)
	}
	s.notify()
}

func (s *serverSet) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// byRank compares two servers by this process's order of preference, which is another one in
// every process: so a fleet spreads.
func (s *serverSet) byRank(a, b netip.Addr) int {
	return cmp.Compare(maphash.Comparable(s.seed, a), maphash.Comparable(s.seed, b))
}

// merge returns found, and of the known servers those in keep, too, in the order in which they are to be
// tried: the current server while it serves, those that were found and have not failed, new
// ones by rank, and last those that have failed or were not found. Otherwise what is known
// keeps its order.
func (s *serverSet) merge(found, keep []netip.Addr) []netip.Addr {
	var current, known, added, retained, failed, failedRetained []netip.Addr
	for _, a := range s.addresses {
		named := slices.Contains(found, a)
		_, fails := s.failures[a]
		switch {
		case !named && !slices.Contains(keep, a):
		case fails && named:
			failed = append(failed, a)
		case fails:
			failedRetained = append(failedRetained, a)
		case a == s.serving && a == s.addresses[0]:
			current = append(current, a)
		case named:
			known = append(known, a)
		default:
			retained = append(retained, a)
		}
	}
	for _, a := range found {
		if !slices.Contains(s.addresses, a) {
			added = append(added, a)
		}
	}
	slices.SortFunc(added, s.byRank)
	retained = retained[:min(len(retained), mostRetained)]
	failedRetained = failedRetained[max(0, len(failedRetained)-mostRetained):]
	return slices.Concat(current, known, added, retained, failed, failedRetained)
}

// preferred returns the servers among found that this process prefers to the current one, best
// first. There are none while the current one fails, and when it was not found: it may be a
// load balancer.
func (s *serverSet) preferred(found []netip.Addr) []netip.Addr {
	if len(s.addresses) == 0 || len(s.failing) > 0 || !slices.Contains(found, s.addresses[0]) {
		return nil
	}
	now := time.Now()
	better := slices.DeleteFunc(slices.Clone(found), func(a netip.Addr) bool {
		return s.byRank(a, s.addresses[0]) >= 0 || now.Sub(s.failures[a]) < returnAfter
	})
	slices.SortFunc(better, s.byRank)
	return better
}
