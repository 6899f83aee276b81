package consulutil

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
)

const (
	// discoverPause is the least time between two discoveries while there are addresses, and
	// discoverMax the most while servers fail: each may be a process or a call of a cloud's API.
	discoverPause, discoverMax = 5 * time.Second, time.Minute
	// discoverLimit bounds a discovery.
	discoverLimit = 15 * time.Second
	// discoverWait is how long a request that has tried all servers waits for a discovery that
	// runs. Longer, and it would not notice that a server is back.
	discoverWait = 2 * time.Second
	// execLimit bounds the command of consulServers.hosts.
	execLimit = 10 * time.Second
	// nameServerLimit is how long one name server may take. The first one of a task may be that
	// of a proxy that has lost its servers.
	nameServerLimit = 2 * time.Second
)

// outputDelay is how long output is awaited after the command's exit: a process that the
// command left behind may hold it.
const outputDelay = 3 * time.Second

// execCommand returns the command of a hosts value with exec=. Blanks separate its words,
// and nothing quotes them.
func execCommand(hosts string) (args []string, ok bool) {
	command, ok := strings.CutPrefix(hosts, "exec=")
	return strings.Fields(command), ok
}

// lookupFunc resolves a DNS name, as net.Resolver.LookupNetIP does.
type lookupFunc func(ctx context.Context, network, host string) ([]netip.Addr, error)

// discovery is a discovery of hosts. It runs beside the requests, since it may take longer than
// one, in a goroutine that ends by itself, at the latest with Run.
type discovery struct {
	starts time.Time
	cancel context.CancelFunc
	done   chan struct{}
	err    error // valid when done is closed
}

// rediscover returns the discovery that waits or runs, or begins one, which waits for the
// pause after the one before. The lock is held.
func (s *Servers) rediscover() *discovery {
	if s.discovery != nil {
		return s.discovery
	}
	pause := time.Duration(0)
	if len(s.set.addresses) > 0 {
		pause = max(0, time.Until(s.earliest))
	}
	ctx, cancel := context.WithTimeout(context.Background(), pause+discoverLimit)
	d := &discovery{starts: time.Now().Add(pause), cancel: cancel, done: make(chan struct{})}
	s.discovery = d
	go func() {
		defer cancel()
		var found []netip.Addr
		err := retry.Sleep(ctx, pause)
		if err == nil {
			found, err = discover(ctx, s.config.Hosts, s.lookup)
		}
		s.finish(d, found, err)
	}()
	return d
}

// finish ends a discovery. What is known stays, unless the servers are not asked for their
// peers: hosts may be one address of a server that is gone.
func (s *Servers) finish(d *discovery, found []netip.Addr, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(d.done)
	s.discovery, d.err = nil, err
	now := time.Now()
	if now.Before(d.starts) { // it was not needed any more
		return
	}
	pause := discoverPause
	if len(s.set.failing) > 0 {
		pause = min(discoverMax, max(pause, now.Sub(s.set.outage)/8))
	}
	s.earliest = now.Add(retry.Around(pause))
	switch {
	case err == nil && s.config.SkipServerWatch:
		s.set.adopt(found, nil)
	case err == nil:
		s.set.adopt(found, s.set.addresses)
	case len(s.set.addresses) > 0 && !errors.Is(err, context.Canceled): // otherwise a request fails with it
		s.log.Log(s.causes.Level(err), "discovery of Consul servers failed", logkey.Error, err)
	}
}

// await returns when there are addresses, and reports whether there were none before.
func (s *Servers) await(ctx context.Context) (discovered bool, err error) {
	s.mu.Lock()
	if len(s.set.addresses) > 0 {
		s.mu.Unlock()
		return false, nil
	}
	d := s.rediscover()
	s.mu.Unlock()
	select {
	case <-d.done:
		return true, d.err
	case <-ctx.Done():
		return true, fmt.Errorf("consulServers.hosts: %s gave no addresses in time: %w", s.config.Hosts, ctx.Err())
	}
}

// untried returns the first server that is not among tried. When all are, it waits a moment for
// a discovery that runs.
func (s *Servers) untried(ctx context.Context, tried []netip.Addr) (netip.Addr, bool) {
	a, ok := s.first(tried)
	if ok {
		return a, true
	}
	s.mu.Lock()
	d := s.discovery
	s.mu.Unlock()
	if d == nil || time.Now().Before(d.starts) {
		return s.first(tried)
	}
	limit := time.NewTimer(discoverWait)
	defer limit.Stop()
	select {
	case <-d.done:
	case <-limit.C:
	case <-ctx.Done():
	}
	return s.first(tried)
}

// another reports whether there is a server that is not among tried. When there is none, it
// has hosts discovered, and waits for that until ctx ends.
func (s *Servers) another(ctx context.Context, tried []netip.Addr) bool {
	if _, ok := s.first(tried); ok {
		return true
	}
	s.mu.Lock()
	d := s.rediscover()
	s.mu.Unlock()
	select {
	case <-d.done:
	case <-ctx.Done():
	}
	_, ok := s.first(tried)
	return ok
}

// stopDiscovery ends the one that waits or runs.
func (s *Servers) stopDiscovery() {
	s.mu.Lock()
	d := s.discovery
	s.mu.Unlock()
	if d != nil {
		d.cancel()
		<-d.done
	}
}

// newResolver returns a resolver that asks the next name server after nameServerLimit. Go's
// waits 5 s, or what resolv.conf has.
func newResolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if udp, ok := conn.(*net.UDPConn); ok {
			return impatientConn{udp}, nil
		}
		return conn, err
	}}
}

// impatientConn is a connection with a name server whose deadline is at most nameServerLimit
// away.
type impatientConn struct{ *net.UDPConn }

// SetDeadline sets the deadline of the connection, or an earlier one.
func (c impatientConn) SetDeadline(t time.Time) error {
	if limit := time.Now().Add(nameServerLimit); limit.Before(t) {
		t = limit
	}
	return c.UDPConn.SetDeadline(t)
}

// discover returns the addresses that hosts, the value of consulServers.hosts, stands for, each once.
func discover(ctx context.Context, hosts string, lookup lookupFunc) ([]netip.Addr, error) {
	if args, ok := execCommand(hosts); ok {
		return printedAddresses(ctx, args)
	}
	if a, err := netip.ParseAddr(hosts); err == nil {
		return []netip.Addr{a.Unmap()}, nil
	}
	found, err := lookup(ctx, "ip", hosts)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("lookup %s: no address", hosts)
	}
	if err != nil {
		return nil, fmt.Errorf("consulServers.hosts: %w", err)
	}
	return distinct(found), nil
}

// printedAddresses runs a command that prints IP addresses.
func printedAddresses(ctx context.Context, args []string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, execLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.WaitDelay = outputDelay
	out, err := cmd.Output()
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, syscall.ECHILD):
		// A process that supervises others takes the status of every child; then the
		// output alone counts.
	case ctx.Err() != nil:
		return nil, fmt.Errorf("consulServers.hosts: %s did not exit in time: %w", args[0], ctx.Err())
	case errors.Is(err, exec.ErrWaitDelay):
		// Its output before the exit is used.
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return nil, usage("consulServers.hosts: %w: the container's image needs the program of exec=", err)
	case errors.As(err, &exit):
		return nil, fmt.Errorf("consulServers.hosts: %s: %w: %s", args[0], err, strings.TrimSpace(string(exit.Stderr)))
	default:
		return nil, fmt.Errorf("consulServers.hosts: %s: %w", args[0], err)
	}
	addresses, err := parseAddresses(string(out))
	if err != nil {
		return nil, fmt.Errorf("consulServers.hosts: output of %s: %w", args[0], err)
	}
	return addresses, nil
}

// parseAddresses reads IP addresses between blanks, each with or without quotes.
func parseAddresses(text string) ([]netip.Addr, error) {
	var all []netip.Addr
	for _, word := range strings.Fields(text) {
		a, err := netip.ParseAddr(strings.Trim(word, `"'`))
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	if len(all) == 0 {
		return nil, errors.New("there is no address")
	}
	return distinct(all), nil
}

// parsePeers returns the addresses of the answer of /v1/status/peers, which has the
// ports of another protocol.
func parsePeers(peers []string) ([]netip.Addr, error) {
	var all []netip.Addr
	for _, p := range peers {
		a, err := netip.ParseAddrPort(p)
		if err != nil {
			return nil, fmt.Errorf("peers of the Consul servers: %w", err)
		}
		all = append(all, a.Addr())
	}
	if len(all) == 0 {
		return nil, errors.New("peers of the Consul servers: there are none")
	}
	return distinct(all), nil
}

// distinct returns each address once, an IPv4 address in its usual form.
func distinct(all []netip.Addr) []netip.Addr {
	var once []netip.Addr
	for _, a := range all {
		if a = a.Unmap(); !slices.Contains(once, a) {
			once = append(once, a)
		}
	}
	return once
}
