package consulutil

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/config"
)

// cloud is servers without sockets, under a synthetic clock, and one task that uses them.
type cloud struct {
	*Servers
	start time.Time

	mu sync.Mutex
	// alive are the servers. The addresses of others drop every packet, unless they refuse.
	alive   []netip.Addr
	refuses bool
	// leaderless answer that they have no leader.
	leaderless []netip.Addr
	// hosts is what a discovery finds.
	hosts func(ctx context.Context) ([]netip.Addr, error)
	// peers is what servers answer; the servers that are alive when empty.
	peers       []netip.Addr
	discoveries []time.Duration
	requests    map[netip.Addr][]time.Duration
}

// group returns n addresses of one generation of servers.
func group(generation byte, n int) []netip.Addr {
	var all []netip.Addr
	for i := range n {
		all = append(all, netip.AddrFrom4([4]byte{10, 0, generation, byte(i + 1)}))
	}
	return all
}

// newCloud runs inside a bubble. The task knows all servers, and has a connection to one.
func newCloud(t *testing.T, skip bool, alive []netip.Addr) *cloud {
	t.Helper()
	c := &cloud{start: time.Now(), alive: alive, requests: map[netip.Addr][]time.Duration{}}
	c.find(alive)
	c.Servers = newServers(t, ServersOptions{
		Config: config.ConsulServers{
			Hosts: "consul.example.com", SkipServerWatch: skip,
			HTTP: config.ServerHTTP{Port: 8500}, GRPC: config.ServerGRPC{Port: 8502},
		},
		DialContext: c.dialServer,
		Log:         hclog.New(&hclog.LoggerOptions{Output: t.Output(), Level: hclog.Debug}),
	})
	c.lookup = func(ctx context.Context, _, _ string) ([]netip.Addr, error) {
		c.mu.Lock()
		c.discoveries = append(c.discoveries, time.Since(c.start))
		hosts := c.hosts
		c.mu.Unlock()
		return hosts(ctx)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
		c.transport.next.(*http.Transport).CloseIdleConnections()
		synctest.Wait()
	})
	running.Go(func() { c.Run(ctx) })
	if err := c.renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Minute)
	return c
}

// discovered returns the number of discoveries.
func (c *cloud) discovered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.discoveries)
}

// find makes discoveries return these at once.
func (c *cloud) find(hosts []netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hosts = func(context.Context) ([]netip.Addr, error) { return hosts, nil }
}

// replace changes the servers.
func (c *cloud) replace(alive []netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alive = alive
}

func (c *cloud) up(server netip.Addr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.alive, server)
}

func (c *cloud) dialServer(ctx context.Context, _, address string) (net.Conn, error) {
	server := netip.MustParseAddrPort(address).Addr()
	if !c.up(server) {
		c.mu.Lock()
		refuses := c.refuses
		c.mu.Unlock()
		if refuses {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
		}
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
	}
	ours, theirs := net.Pipe()
	go c.serve(theirs, server)
	return ours, nil
}

// serve answers the requests of a connection, until its server is gone.
func (c *cloud) serve(conn net.Conn, server netip.Addr) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		io.Copy(io.Discard, r.Body)
		if !c.up(server) {
			io.Copy(io.Discard, conn) // until the client ends it
			return
		}
		status, body := c.answer(r.URL.Path, server)
		fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
	}
}

func (c *cloud) answer(path string, server netip.Addr) (status string, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.leaderless, server) {
		return "500 Internal Server Error", []byte("No cluster leader")
	}
	peers := c.peers
	if len(peers) == 0 {
		peers = c.alive
	}
	body = []byte(`"x"`)
	if path == "/v1/status/peers" {
		var all []string
		for _, a := range peers {
			all = append(all, hostPort(a, 8300))
		}
		body, _ = json.Marshal(all)
	} else {
		c.requests[server] = append(c.requests[server], time.Since(c.start))
	}
	return "200 OK", body
}

// renew makes the periodic request of a task with a session, in the time that a write has.
func (c *cloud) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	client, err := NewClient(Options{Servers: c.Servers})
	if err != nil {
		return err
	}
	_, err = client.Raw().Write("/v1/session/renew/s", nil, nil, (&api.WriteOptions{}).WithContext(ctx))
	return err
}

// read makes a request that has the client's time.
func (c *cloud) read(ctx context.Context) error {
	client, err := NewClient(Options{Servers: c.Servers})
	if err != nil {
		return err
	}
	_, err = client.Status().LeaderWithQueryOptions((&api.QueryOptions{}).WithContext(ctx))
	return err
}

// reach repeats a request until one of the servers has answered, and returns how long that
// took. After a failure it pauses for a second.
func (c *cloud) reach(
	t *testing.T, servers []netip.Addr, limit time.Duration, do func(context.Context) error,
) time.Duration {
	t.Helper()
	start := time.Now()
	for time.Since(start) < limit {
		err := do(t.Context())
		c.mu.Lock()
		reached := slices.ContainsFunc(servers, func(a netip.Addr) bool { return len(c.requests[a]) > 0 })
		c.mu.Unlock()
		if reached {
			return time.Since(start)
		}
		pause := time.Second
		if err == nil {
			pause = 5 * time.Second
		}
		<-time.After(pause)
	}
	return limit
}

func (c *cloud) wantReached(t *testing.T, servers []netip.Addr, limit time.Duration) {
	t.Helper()
	took := c.reach(t, servers, time.Hour, c.renew)
	t.Logf("reached after %s", took)
	if took > limit {
		t.Errorf("a request reached a server after %s, want %s", took, limit)
	}
}
