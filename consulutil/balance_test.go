package consulutil

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// crowd is tasks that send a request every minute to servers without sockets, under a synthetic
// clock.
type crowd struct {
	mu       sync.Mutex
	down     netip.Addr // refuses connections
	requests map[netip.Addr]int
	failures int
}

// RoundTrip answers for the servers.
func (c *crowd) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	server := netip.MustParseAddrPort(r.URL.Host).Addr()
	if server == c.down {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	}
	body := []byte(`"10.0.0.1:8300"`)
	switch {
	case r.URL.Path == "/v1/status/peers":
		body, _ = json.Marshal([]string{"10.0.0.1:8300", "10.0.0.2:8300", "10.0.0.3:8300"})
	case r.Method == http.MethodPut:
		c.requests[server]++
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(body))),
	}, nil
}

// task sends requests until ctx ends.
func (c *crowd) task(ctx context.Context, t *testing.T, o config.ConsulServers, hosts []netip.Addr) {
	s, err := NewServers(ServersOptions{Config: o, Log: hclog.NewNullLogger()})
	if err != nil {
		t.Error(err)
		return
	}
	s.lookup = func(context.Context, string, string) ([]netip.Addr, error) { return hosts, nil }
	s.transport = &failover{servers: s, scheme: "http", next: c}
	client, err := NewClient(Options{Servers: s})
	if err != nil {
		t.Error(err)
		return
	}
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	defer running.Wait()
	for pause := rand.N(time.Minute); ; pause = time.Minute {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if err := renewSession(client); err != nil && ctx.Err() == nil {
			c.mu.Lock()
			c.failures++
			c.mu.Unlock()
		}
	}
}

// shares returns the percentage of requests that each server gets in that time.
func (c *crowd) shares(during time.Duration) []int {
	c.mu.Lock()
	clear(c.requests)
	c.mu.Unlock()
	<-time.After(during)
	c.mu.Lock()
	defer c.mu.Unlock()
	total := 0
	for _, n := range c.requests {
		total += n
	}
	var shares []int
	for _, a := range group(0, 3) {
		shares = append(shares, c.requests[a]*100/total)
	}
	return shares
}

// Every server has a share of the tasks again, after the last one was restarted.
func TestTasksReturnToAllServersAfterARollingRestart(t *testing.T) {
	t.Parallel()
	const tasks = 1000
	for name, tt := range map[string]struct {
		skip, long bool
		hosts      []netip.Addr
	}{
		"hosts name all servers": {false, true, group(0, 3)},
		"hosts name one server":  {false, false, group(0, 1)},
		"skipServerWatch":        {true, false, group(0, 3)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.long {
				testkit.Long(t)
			}
			synctest.Test(t, func(t *testing.T) {
				c := &crowd{requests: map[netip.Addr]int{}}
				o := config.ConsulServers{
					Hosts: "consul.example.com", SkipServerWatch: tt.skip,
					HTTP: config.ServerHTTP{Port: 8500}, GRPC: config.ServerGRPC{Port: 8502},
				}
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				for range tasks {
					running.Go(func() { c.task(ctx, t, o, tt.hosts) })
				}
				<-time.After(8 * time.Minute)
				t.Logf("before the restart %v %%", c.shares(3*time.Minute))
				for _, a := range group(0, 3) {
					c.restart(a)
				}
				t.Logf("after the restart %v %%", c.shares(time.Minute))
				<-time.After(refreshPeriod * 12 / 10)
				shares := c.shares(3 * time.Minute)
				t.Logf("one period later %v %%", shares)
				if least := slices.Min(shares); least < 25 {
					t.Errorf("a server has %d %% of the requests", least)
				}
				if most := slices.Max(shares); most > 42 {
					t.Errorf("a server has %d %% of the requests", most)
				}
				if c.failures > 0 {
					t.Errorf("%d requests failed", c.failures)
				}
				cancel()
				running.Wait()
			})
		})
	}
}

// restart takes a server away until every task has moved, and waits for half a minute.
func (c *crowd) restart(server netip.Addr) {
	c.setDown(server)
	<-time.After(time.Minute + time.Second)
	c.setDown(netip.Addr{})
	<-time.After(30 * time.Second)
}

func (c *crowd) setDown(server netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = server
}

func TestServerThatDoesNotServeIsNotReturnedTo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answers := map[string]string{}
		s := newServers(t, ServersOptions{Config: config.ConsulServers{
			Hosts: "127.0.0.1", SkipServerWatch: true, HTTP: config.ServerHTTP{Port: 8500},
		}})
		s.set.addresses = group(0, 2)
		slices.SortFunc(s.set.addresses, s.set.byRank)
		best, other := s.set.addresses[0], s.set.addresses[1]
		s.set.addresses = []netip.Addr{other, best}
		answer := func(r *http.Request) (*http.Response, error) {
			body, ok := answers[r.URL.Host]
			if !ok {
				return nil, errors.New("connection refused")
			}
			status := http.StatusOK
			if body == "" {
				status = http.StatusInternalServerError
			}
			return &http.Response{StatusCode: status, Header: http.Header{},
				Body: io.NopCloser(strings.NewReader(body))}, nil
		}
		s.transport = &failover{servers: s, scheme: "http", next: testkit.RoundTripper(answer)}
		for _, answer := range []string{"", `""`, "<html>"} {
			answers[hostPort(best, 8500)] = answer
			s.settle(t.Context(), s.known())
			if s.known()[0] != other {
				t.Errorf("returned to a server that answers %q", answer)
			}
		}
		answers[hostPort(best, 8500)] = `"10.0.0.1:8300"`
		s.failed(best, errors.New("connection refused"))
		s.served(other, false)
		s.settle(t.Context(), s.known())
		if s.known()[0] != other {
			t.Error("returned to a server that has just failed")
		}
		<-time.After(returnAfter)
		s.settle(t.Context(), s.known()[:1])
		if s.known()[0] != other {
			t.Error("returned to a server that was not found")
		}
		s.settle(t.Context(), s.known())
		if s.known()[0] != best {
			t.Error("did not return to a server that serves")
		}
	})
}
