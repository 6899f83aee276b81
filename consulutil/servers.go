package consulutil

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// A request that has 10 s tries other servers after these.
const (
	dialLimit      = 2 * time.Second // a lost packet is sent again after 1 s
	handshakeLimit = 3 * time.Second
)

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
	lookup      lookupFunc
	stale       chan struct{} // full when Run is to refresh
	causes      retry.Causes  // of failed discoveries

	mu        sync.Mutex
	transport *failover // nil until the CA file is there
	set       serverSet
	// discovery is the one that waits or runs, if any; the next may begin at earliest.
	discovery *discovery
	earliest  time.Time
}

// NewServers neither resolves nor connects: the first request does. Its error is a
// mistake in the configuration.
func NewServers(o ServersOptions) (*Servers, error) {
	if args, command := execCommand(o.Config.Hosts); o.Config.Hosts == "" || command && len(args) == 0 {
		return nil, usage("consulServers.hosts: want an IP address, a DNS name, or exec= and a command")
	}
	s := &Servers{
		config: o.Config,
		https:  httpTLS(o.Config, o.HTTPSCAPEM),
		grpc:   grpcTLS(o.Config, o.GRPCCAPEM),
		dial:   o.DialContext,
		log:    o.Log,
		lookup: newResolver().LookupNetIP,
		stale:  make(chan struct{}, 1),
		set:    newServerSet(o.Log),
	}
	if s.dial == nil {
		s.dial = newDialer().DialContext
	}
	return s, nil
}

// GRPCTLS returns how connections to the servers' gRPC port are secured.
func (s *Servers) GRPCTLS() ServerTLS { return s.grpc }

// IPv6 reports whether the server that answered last was reached by IPv6.
func (s *Servers) IPv6() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.set.serving.Is6()
}

// GRPCAddresses returns the host:port of every known server for gRPC, the current one
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
	for _, a := range s.set.addresses {
		all = append(all, hostPort(a, s.config.GRPC.Port))
	}
	return all, nil
}

// CheckGRPC makes a connection to the server with that gRPC address, with its TLS handshake, and closes it.
func (s *Servers) CheckGRPC(ctx context.Context, address string) error {
	secured, err := s.grpc.Config()
	if err != nil {
		return err
	}
	dial := s.dial
	if secured != nil {
		dial = dialTLS(s.dial, func() *tls.Config { return secured })
	}
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// GRPCFailed makes the server with that gRPC address the last one to be tried, and has
// Run refresh the set: it may be that of a server that was replaced.
func (s *Servers) GRPCFailed(address string, err error) {
	if a, parseErr := netip.ParseAddrPort(address); parseErr == nil {
		s.failed(a.Addr(), err)
	}
	s.refreshSoon()
}

// GRPCServed reports that the server with that gRPC address serves.
func (s *Servers) GRPCServed(address string) {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.set.failures, a.Addr())
	s.endOutage()
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
	return s.set.changed
}

// url returns what stands for all servers in the errors of a client.
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
func (s *Servers) connect() (*failover, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.transport != nil {
		return s.transport, nil
	}
	c := api.DefaultConfig()
	f := &failover{servers: s, next: c.Transport, scheme: "http"}
	c.Transport.DialContext = s.dialServer
	if s.https.Enabled {
		f.scheme = "https"
		secured, err := reading(func() (*tls.Config, error) { return s.https.over(c.TLSConfig) })
		if err != nil {
			return nil, err
		}
		c.Transport.DialTLSContext = dialTLS(s.dialServer, secured)
		c.Transport.TLSClientConfig = secured() // for a connection through a proxy
	}
	s.transport = f
	return f, nil
}

// errOthersFound is of a connection that was abandoned.
var errOthersFound = errors.New("other servers were found")

// dialServer makes a connection, within dialLimit and only until other servers are found.
func (s *Servers) dialServer(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, end := context.WithTimeout(ctx, dialLimit)
	defer end()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.mu.Lock()
	found := s.set.found
	s.mu.Unlock()
	go func() {
		select {
		case <-found:
			cancel(errOthersFound)
		case <-ctx.Done():
		}
	}()
	conn, err := s.dial(ctx, network, address)
	if err != nil && errors.Is(context.Cause(ctx), errOthersFound) {
		err = &net.OpError{Op: "dial", Net: network, Err: errOthersFound}
	}
	return conn, err
}
