package consulutil

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// bubble is Servers with a transport without sockets, under a synthetic clock.
type bubble struct {
	*Servers
	client *api.Client

	mu sync.Mutex
	// peers is the answer about them; empty for a fault.
	peers string
	// down are the hosts that cannot be reached.
	down []string
	// requests is when peers was asked for, since the start.
	requests    []time.Duration
	discoveries int
}

// change sets what the servers are from now on.
func (b *bubble) change(peers string, down ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.peers, b.down = peers, down
}

// asked returns when peers was asked for, since the start.
func (b *bubble) asked() []time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.requests)
}

// discovered returns how often hosts was resolved.
func (b *bubble) discovered() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.discoveries
}

// inBubble runs a test of Run beside it.
func inBubble(t *testing.T, skip bool, test func(t *testing.T, b *bubble)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{peers: `["10.0.0.1:8300","10.0.0.2:8300"]`}
		b.Servers = newServers(t,
			ServersOptions{Config: config.ConsulServers{Hosts: "consul.example.com",
				SkipServerWatch: skip, HTTP: config.ServerHTTP{Port: 8500}, GRPC: config.ServerGRPC{Port: 8503}}})
		b.lookup = func(context.Context, string, string) ([]netip.Addr, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.discoveries++
			return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
		}
		start := time.Now()
		b.transport = &failover{servers: b.Servers, scheme: "http",
			next: testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
				b.mu.Lock()
				defer b.mu.Unlock()
				if slices.Contains(b.down, r.URL.Hostname()) {
					return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("refused")}
				}
				status, body := http.StatusOK, `"x"`
				if r.URL.Path == "/v1/status/peers" {
					b.requests = append(b.requests, time.Since(start))
					if body = b.peers; body == "" {
						status, body = http.StatusInternalServerError, "fault"
					}
				}
				return &http.Response{StatusCode: status, Header: http.Header{},
					Body: io.NopCloser(strings.NewReader(body))}, nil
			})}
		b.client = newClient(t, Options{Servers: b.Servers})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { b.Run(ctx) })
		test(t, b)
		cancel()
		wg.Wait()
	})
}

// request sends one, and waits until Run has done what follows.
func (b *bubble) request(t *testing.T) {
	t.Helper()
	if err := leader(b.client); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func (b *bubble) wantSet(t *testing.T, want ...string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	var got []string
	for _, a := range b.set.addresses {
		got = append(got, a.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("servers %q, want %q", got, want)
	}
}

func TestRunAsksForPeersAfterTheFirstRequestAndThenRarely(t *testing.T) {
	inBubble(t, false, func(t *testing.T, b *bubble) {
		<-time.After(time.Hour)
		if len(b.asked()) > 0 {
			t.Errorf("asked after %s, before any request", b.asked())
		}
		for range 100 {
			b.request(t)
		}
		b.wantSet(t, "10.0.0.1", "10.0.0.2")
		if len(b.asked()) != 1 {
			t.Fatalf("asked %d times, want once", len(b.asked()))
		}
		<-time.After(time.Hour)
		synctest.Wait()
		if n := len(b.asked()); n < 10 || n > 16 {
			t.Errorf("asked %d times within an hour", n)
		}
		if b.discovered() != 1 {
			t.Errorf("%d discoveries of hosts, want 1", b.discovered())
		}
	})
}

// Envoy's relay sends no HTTP requests, and must not be left with a server that
// is gone.
func TestAddressesForGRPCAreRefreshedWithoutRequests(t *testing.T) {
	inBubble(t, false, func(t *testing.T, b *bubble) {
		if _, err := b.GRPCAddresses(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		b.wantSet(t, "10.0.0.1", "10.0.0.2")
		<-time.After(time.Minute)
		b.change(`["10.0.0.2:8300","10.0.0.3:8300"]`, "10.0.0.1")
		b.GRPCFailed("10.0.0.1:8502", errors.New("connection refused"))
		synctest.Wait()
		b.wantSet(t, "10.0.0.2", "10.0.0.3")
	})
}

func TestRequestThatFailsOverBringsTheRefreshForward(t *testing.T) {
	inBubble(t, false, func(t *testing.T, b *bubble) {
		b.request(t)
		<-time.After(time.Minute)
		const peers = `["10.0.0.2:8300","10.0.0.3:8300"]`
		b.change(peers, "10.0.0.1")
		b.request(t)
		b.wantSet(t, "10.0.0.2", "10.0.0.3")
		if len(b.asked()) != 2 || b.asked()[1] != time.Minute {
			t.Errorf("asked after %s, want 0s and 1m", b.asked())
		}
		b.change(peers, "10.0.0.1", "10.0.0.2") // at once: the next refresh comes after a pause
		b.request(t)
		if len(b.asked()) != 2 {
			t.Errorf("asked after %s, without a pause", b.asked())
		}
		<-time.After(10 * time.Second)
		synctest.Wait()
		if len(b.asked()) != 3 || b.asked()[2] != 70*time.Second {
			t.Errorf("asked after %s, want 70s at last", b.asked())
		}
	})
}

func TestFailedRefreshIsRepeatedAndChangesNothing(t *testing.T) {
	inBubble(t, false, func(t *testing.T, b *bubble) {
		for _, fault := range []string{"", "[]", `["server-1:8300"]`} {
			b.change(fault)
			b.request(t)
			<-time.After(time.Minute)
		}
		synctest.Wait()
		b.wantSet(t, "10.0.0.1")
		if n := len(b.asked()); n < 3 {
			t.Errorf("asked %d times within 3 min", n)
		}
	})
}

// Behind a load balancer the peers' addresses may be out of reach.
func TestServerThatAnswersStaysThoughItIsNoPeer(t *testing.T) {
	inBubble(t, false, func(t *testing.T, b *bubble) {
		const peers = `["172.16.0.1:8300"]`
		b.change(peers, "172.16.0.1")
		b.request(t)
		b.wantSet(t, "10.0.0.1", "172.16.0.1")
		b.request(t)
		b.change(peers, "172.16.0.1", "10.0.0.1")
		if err := leader(b.client); !Unreachable(err) {
			t.Errorf("got %v", err)
		}
		b.change(peers, "172.16.0.1")
		b.request(t)
		<-time.After(10 * time.Second)
		synctest.Wait()
		b.wantSet(t, "10.0.0.1", "172.16.0.1")
		if len(b.asked()) != 2 {
			t.Errorf("asked after %s, want again after the outage", b.asked())
		}
	})
}

func TestSkipServerWatchNeverAsksForPeers(t *testing.T) {
	inBubble(t, true, func(t *testing.T, b *bubble) {
		b.request(t)
		<-time.After(time.Hour)
		b.request(t)
		if len(b.asked()) != 0 || b.discovered() != 1 {
			t.Errorf("asked after %s, %d discoveries", b.asked(), b.discovered())
		}
		b.lookup = func(context.Context, string, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("10.0.0.8"), netip.MustParseAddr("10.0.0.9")}, nil
		}
		b.change("", "10.0.0.1")
		b.request(t)
		addresses, err := b.GRPCAddresses(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(addresses)
		testkit.Equal(t, "times asked", len(b.asked()), 0)
		testkit.Equal(t, "servers", strings.Join(addresses, " "), "10.0.0.8:8503 10.0.0.9:8503")
	})
}

// One address of hosts leads to no server. The real server knows its peer: itself.
func TestServersWithARealConsul(t *testing.T) {
	t.Parallel()
	secured.Require(t)
	_, number, _ := net.SplitHostPort(secured.HTTPAddr)
	port, _ := strconv.Atoi(number)
	s := newServers(t,
		ServersOptions{Log: hclog.New(&hclog.LoggerOptions{Output: t.Output(), Level: hclog.Debug}),
			Config: config.ConsulServers{
				Hosts: "exec=echo 127.0.0.2 127.0.0.1", HTTP: config.ServerHTTP{Port: port},
				GRPC: config.ServerGRPC{Port: 8503},
			}})
	s.set.addresses = []netip.Addr{address(2), address(1)}
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	wg.Go(func() { s.Run(t.Context()) })
	c := newClient(t, Options{Servers: s, Token: secured.Token})
	_, err := c.Catalog().Register(&api.CatalogRegistration{Node: "servers-test", Address: "192.0.2.1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	node, _, err := c.Catalog().Node("servers-test", nil)
	if err != nil || node == nil {
		t.Fatalf("node %+v, %v", node, err)
	}
	testkit.Equal(t, "address", node.Node.Address, "192.0.2.1")
	testkit.Eventually(t, "the list of servers is the server's", func() bool {
		addresses, err := s.GRPCAddresses(t.Context())
		return err == nil && slices.Equal(addresses, []string{"127.0.0.1:8503"})
	})
	refused := newClient(t, Options{Servers: s, Token: "00000000-0000-0000-0000-000000000000"})
	if _, err := ReadToken(t.Context(), refused, "00000000-0000-0000-0000-000000000000"); !UnknownToken(err) ||
		Classify(err) != retry.Permanent {
		t.Errorf("got %v, want an unknown token", err)
	}
}
