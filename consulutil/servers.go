package consulutil

import (
	"context"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/logkey"
)

// A request that has 10 s tries other servers after these.
const (
	dialLimit      = 2 * time.Second // a lost packet is sent again after 1 s
	handshakeLimit = 3 * time.Second
)

// discoverPause is the least time between two discoveries while there are addresses:
// each may be a process or a call of a cloud's API.
const discoverPause = 5 * time.Second

// ServersOptions configure how a task without an agent reaches the Consul servers.
type ServersOptions struct {
	Config config.ConsulServers
	// HTTPSCAPEM and GRPCCAPEM are the texts of CONSUL_HTTPS_CACERT_PEM and
	// CONSUL_GRPC_CACERT_PEM, which win over the files of Config.
	HTTPSCAPEM, GRPCCAPEM string
	// DialContext is as in Options.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
	Log         hclog.Logger
}

// Servers are the Consul servers as a task without an agent sees them: their
// addresses, which of them is in use, and how connections to them are secured. It is
// safe for concurrent use. All of it is HTTP: grpc-go would add 5.9 MB to the program
// and 5 MB to its memory, connect-go 3.7 MB and 3 MB.
type Servers struct {
	config      config.ConsulServers
	https, grpc ServerTLS
	dial        func(ctx context.Context, network, address string) (net.Conn, error)
	log         hclog.Logger
	lookup      func(ctx context.Context, network, host string) ([]netip.Addr, error)
	turn        chan struct{} // full while a discovery runs
	stale       chan struct{} // full when Run is to refresh

	mu        sync.Mutex
	transport http.RoundTripper // nil until the CA file is there
	// set has the current server first, and those that failed last at the end.
	set        []netip.Addr
	serving    netip.Addr // answered last
	lost       bool       // since then no server could be reached
	failure    error      // the last one
	discovered time.Time
	changed    chan struct{} // closed by the next change
}

// NewServers neither resolves nor connects: the first request does. Its error is a
// mistake in the configuration.
func NewServers(o ServersOptions) (*Servers, error) {
	if args, command := execCommand(o.Config.Hosts); o.Config.Hosts == "" || command && len(args) == 0 {
		return nil, usage("consulServers.hosts: want an IP address, a DNS name, or exec= and a command")
	}
	s := &Servers{
		config:  o.Config,
		https:   httpTLS(o.Config, o.HTTPSCAPEM),
		grpc:    grpcTLS(o.Config, o.GRPCCAPEM),
		dial:    o.DialContext,
		log:     o.Log,
		lookup:  net.DefaultResolver.LookupNetIP,
		turn:    make(chan struct{}, 1),
		stale:   make(chan struct{}, 1),
		changed: make(chan struct{}),
	}
	if s.dial == nil {
		s.dial = new(net.Dialer).DialContext
	}
	return s, nil
}

// GRPCTLS is how connections to the servers' gRPC port are secured.
func (s *Servers) GRPCTLS() ServerTLS { return s.grpc }

// IPv6 reports whether the server that answered last was reached by IPv6.
func (s *Servers) IPv6() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.serving.Is6()
}

// GRPCAddresses are the host:port of every known server for gRPC, the current one
// first. It discovers them when there are none yet.
func (s *Servers) GRPCAddresses(ctx context.Context) ([]string, error) {
	discovered, err := s.await(ctx)
	if err != nil {
		return nil, err
	}
	if discovered { // the peers are needed before this server is lost
		s.refreshSoon()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, a := range s.set {
		all = append(all, hostPort(a, s.config.GRPC.Port))
	}
	return all, nil
}

// GRPCFailed makes the server with that gRPC address the last one to be tried, and has
// Run refresh the set: it may be that of a server that was replaced.
func (s *Servers) GRPCFailed(address string, err error) {
	if a, parseErr := netip.ParseAddrPort(address); parseErr == nil {
		s.failed(a.Addr(), err)
	}
	s.refreshSoon()
}

// refreshSoon asks Run for a refresh.
func (s *Servers) refreshSoon() {
	select {
	case s.stale <- struct{}{}:
	default:
	}
}

// Changed returns a channel that is closed when other servers are known, or another
// one serves. Take the channel first and GRPCAddresses then, so that no change is
// missed.
func (s *Servers) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// url stands for all servers in the errors of a client.
func (s *Servers) url() string {
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(s.config.Hosts, strconv.Itoa(s.config.HTTP.Port))}
	if s.https.Enabled {
		u.Scheme = "https"
	}
	if _, command := execCommand(s.config.Hosts); command {
		u.Host = "consul-servers"
	}
	return u.String()
}

func hostPort(a netip.Addr, port int) string {
	return net.JoinHostPort(a.String(), strconv.Itoa(port))
}

// connect returns the transport that all clients share, and makes it when the CA
// file can be read.
func (s *Servers) connect() (http.RoundTripper, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.transport != nil {
		return s.transport, nil
	}
	c := api.DefaultConfig()
	f := &failover{servers: s, next: c.Transport, scheme: "http"}
	c.Transport.TLSHandshakeTimeout = handshakeLimit
	c.Transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialLimit)
		defer cancel()
		return s.dial(ctx, network, address)
	}
	if s.https.Enabled {
		f.scheme = "https"
		err := s.https.configure(&c.TLSConfig)
		if err == nil {
			_, err = api.NewHttpClient(c.Transport, c.TLSConfig)
		}
		if err != nil {
			return nil, s.https.explain(err)
		}
	}
	s.transport = f
	return f, nil
}

// await returns when there are addresses, and reports whether there were none before.
func (s *Servers) await(ctx context.Context) (discovered bool, err error) {
	s.mu.Lock()
	known := len(s.set) > 0
	s.mu.Unlock()
	if known {
		return false, nil
	}
	return true, s.rediscover(ctx)
}

// rediscover adds what hosts stands for to the known servers, or replaces them by it
// when the servers are not asked for their peers. Concurrent calls share one discovery.
func (s *Servers) rediscover(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	recent := len(s.set) > 0 && time.Since(s.discovered) < discoverPause
	s.mu.Unlock()
	if recent {
		return nil
	}
	found, err := s.discover(ctx)
	s.mu.Lock()
	s.discovered = time.Now()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	retained := math.MaxInt // hosts may be one address of a server that is gone
	if s.config.SkipServerWatch {
		retained = 0
	}
	s.adopt(found, retained)
	return nil
}

// untried returns the first server that is not among tried. When all are, none could
// be reached: they are discovered again.
func (s *Servers) untried(ctx context.Context, tried []netip.Addr) (netip.Addr, bool) {
	if a, ok := s.first(tried); ok {
		return a, true
	}
	s.mu.Lock()
	s.lost = true // the next answer is worth a refresh
	s.mu.Unlock()
	if err := s.rediscover(ctx); err != nil {
		s.log.Debug("Consul servers were not discovered again", logkey.Error, err)
	}
	return s.first(tried)
}

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

// failed makes a server the last one to be tried.
func (s *Servers) failed(server netip.Addr, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
	if i := slices.Index(s.set, server); i >= 0 {
		s.set = append(slices.Delete(s.set, i, i+1), server)
	}
}

// served notes an answer. A server that answered after others had failed is the
// current one.
func (s *Servers) served(server netip.Addr, failedOver bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.set, server); failedOver && i > 0 {
		s.set = slices.Insert(slices.Delete(s.set, i, i+1), 0, server)
	}
	// The answer of a server that meanwhile failed another request changes nothing.
	if server == s.serving && !s.lost || len(s.set) == 0 || server != s.set[0] {
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
	s.serving, s.lost, s.failure = server, false, nil
	s.refreshSoon()
}

// adopt takes over found, beside the first retained servers of the set.
func (s *Servers) adopt(found []netip.Addr, retained int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set := merge(s.set, found, retained)
	if slices.Equal(set, s.set) {
		return
	}
	s.set = set
	s.log.Debug("Consul servers discovered", logkey.Address, set)
	s.notify()
}

func (s *Servers) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// merge returns found and the first retained servers of set. What is in set keeps its
// order; new ones come in random order, so that a fleet spreads, after the current
// server and before those that may have failed.
func merge(set, found []netip.Addr, retained int) []netip.Addr {
	var known, added []netip.Addr
	for i, a := range set {
		if i < retained || slices.Contains(found, a) {
			known = append(known, a)
		}
	}
	for _, a := range found {
		if !slices.Contains(set, a) {
			added = append(added, a)
		}
	}
	rand.Shuffle(len(added), func(i, j int) { added[i], added[j] = added[j], added[i] })
	if len(known) > 0 && known[0] == set[0] {
		return slices.Concat(known[:1], added, known[1:])
	}
	return append(added, known...)
}
