package consulutil

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// reachLimit is how long after the replacement of all servers a request may reach one of the
// new ones.
const reachLimit = 10 * time.Second

// sizes runs a test for clusters of some sizes, with and without skipServerWatch.
func sizes(t *testing.T, sizes []int, test func(t *testing.T, n int, skip bool)) {
	t.Parallel()
	for _, n := range sizes {
		for _, skip := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d servers, skipServerWatch %v", n, skip), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { test(t, n, skip) })
			})
		}
	}
}

func TestAllServersAreReplaced(t *testing.T) {
	sizes(t, []int{1, 2, 3, 5, 7}, func(t *testing.T, n int, skip bool) {
		c := newCloud(t, skip, group(0, n))
		c.replace(group(1, n))
		c.find(group(1, n))
		c.wantReached(t, group(1, n), reachLimit)
		// The next request goes to a new server at once, and the old ones are forgotten.
		start := time.Now()
		if err := c.read(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("the next request took %s", took)
		}
		<-time.After(time.Minute)
		for _, a := range c.known() {
			if !slices.Contains(group(1, n), a) {
				t.Errorf("%s is still known", a)
			}
		}
	})
}

func TestAllServersAreReplacedWhileTheTaskReads(t *testing.T) {
	sizes(t, []int{1, 2, 3, 5, 7}, func(t *testing.T, n int, skip bool) {
		c := newCloud(t, skip, group(0, n))
		<-time.After(2 * time.Minute) // no connection is open any more
		c.replace(group(1, n))
		c.find(group(1, n))
		if took := c.reach(t, group(1, n), time.Hour, c.read); took > reachLimit {
			t.Errorf("a request reached a server after %s", took)
		}
	})
}

func TestAllServersAreReplacedInTheMiddleOfRequests(t *testing.T) {
	sizes(t, []int{1, 2, 3, 5, 7}, func(t *testing.T, n int, skip bool) {
		c := newCloud(t, skip, group(0, n))
		var running sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		for range 3 {
			running.Go(func() {
				for ctx.Err() == nil {
					if c.read(ctx) != nil {
						<-time.After(time.Second)
					}
					<-time.After(100 * time.Millisecond)
				}
			})
		}
		<-time.After(10*time.Second + 50*time.Millisecond)
		c.replace(group(1, n))
		c.find(group(1, n))
		c.wantReached(t, group(1, n), reachLimit)
		cancel()
		running.Wait()
	})
}

func TestReplacedServersAreFoundByTheRelay(t *testing.T) {
	sizes(t, []int{1, 2, 3, 5, 7}, func(t *testing.T, n int, skip bool) {
		c := newCloud(t, skip, group(0, n))
		c.replace(group(1, n))
		c.find(group(1, n))
		start := time.Now()
		for range 2 * n {
			known, err := c.GRPCAddresses(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(group(1, n), netip.MustParseAddrPort(known[0]).Addr()) {
				break
			}
			<-time.After(dialLimit)
			c.GRPCFailed(known[0], context.DeadlineExceeded)
			synctest.Wait()
		}
		if took := time.Since(start); took > 2*dialLimit {
			t.Errorf("a new server came first after %s", took)
		}
	})
}

func TestHalfOfTheServersAreReplaced(t *testing.T) {
	sizes(t, []int{2, 4, 6}, func(t *testing.T, n int, skip bool) {
		c := newCloud(t, skip, group(0, n))
		alive := append(group(0, n)[:n/2], group(1, n/2)...)
		c.mu.Lock()
		clear(c.requests)
		c.mu.Unlock()
		c.replace(alive)
		c.find(alive)
		c.wantReached(t, alive, reachLimit)
	})
}

func TestServersAreReplacedTwice(t *testing.T) {
	sizes(t, []int{2, 3, 5, 7}, func(t *testing.T, n int, skip bool) {
		c := newCloud(t, skip, group(0, n))
		c.replace(group(1, n))
		c.find(group(1, n))
		c.wantReached(t, group(1, n), reachLimit)
		c.replace(group(2, n))
		c.find(group(2, n))
		c.wantReached(t, group(2, n), reachLimit)
	})
}

func TestServersComeBackAtTheirAddresses(t *testing.T) {
	sizes(t, []int{1, 2, 3, 5, 7}, func(t *testing.T, n int, skip bool) {
		c := newCloud(t, skip, group(0, n))
		c.replace(nil)
		for range 60 {
			if err := c.renew(t.Context()); err == nil {
				t.Fatal("a request succeeded without servers")
			}
			<-time.After(time.Second)
		}
		c.mu.Lock()
		clear(c.requests)
		c.mu.Unlock()
		c.replace(group(0, n))
		c.wantReached(t, group(0, n), reachLimit)
	})
}

// A discovery may be late, fail, or hang; requests do not wait for it.
func TestDiscoveryThatIsNoHelpAtFirst(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		hosts func(c *cloud, since time.Time) func(context.Context) ([]netip.Addr, error)
		limit time.Duration
	}{
		"it names the old servers for 20 s": {func(_ *cloud, since time.Time) func(context.Context) ([]netip.Addr,
			error) {
			return func(context.Context) ([]netip.Addr, error) {
				if time.Since(since) < 20*time.Second {
					return group(0, 3), nil
				}
				return group(1, 3), nil
			}
		}, 20*time.Second + reachLimit},
		"it fails for 10 s": {func(_ *cloud, since time.Time) func(context.Context) ([]netip.Addr, error) {
			return func(context.Context) ([]netip.Addr, error) {
				if time.Since(since) < 10*time.Second {
					return nil, &net.DNSError{Err: "server misbehaving", IsTemporary: true}
				}
				return group(1, 3), nil
			}
		}, 10*time.Second + reachLimit},
		"it takes 10 s": {func(*cloud, time.Time) func(context.Context) ([]netip.Addr, error) {
			return func(ctx context.Context) ([]netip.Addr, error) {
				<-time.After(10 * time.Second)
				return group(1, 3), ctx.Err()
			}
		}, 10*time.Second + reachLimit},
		"the first one hangs": {func(c *cloud, _ time.Time) func(context.Context) ([]netip.Addr, error) {
			return func(ctx context.Context) ([]netip.Addr, error) {
				c.find(group(1, 3))
				<-ctx.Done()
				return nil, ctx.Err()
			}
		}, discoverLimit + discoverPause + reachLimit},
		"it names one of the new servers": {func(*cloud, time.Time) func(context.Context) ([]netip.Addr, error) {
			return func(context.Context) ([]netip.Addr, error) { return group(1, 1), nil }
		}, reachLimit},
		"it names the old servers, too": {func(*cloud, time.Time) func(context.Context) ([]netip.Addr, error) {
			return func(context.Context) ([]netip.Addr, error) { return append(group(0, 3), group(1, 3)...), nil }
		}, reachLimit},
		"it names a server that is not there, too": {func(*cloud, time.Time) func(context.Context) ([]netip.Addr,
			error) {
			return func(context.Context) ([]netip.Addr, error) { return append(group(2, 1), group(1, 3)...), nil }
		}, reachLimit},
	} {
		for _, skip := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, skipServerWatch %v", name, skip), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					c := newCloud(t, skip, group(0, 3))
					c.replace(group(1, 3))
					hosts := tt.hosts(c, time.Now())
					c.mu.Lock()
					c.hosts = hosts
					c.mu.Unlock()
					c.wantReached(t, group(1, 3), tt.limit)
				})
			})
		}
	}
}

func TestServersOfIPv6AreReplaced(t *testing.T) {
	sizes(t, []int{3}, func(t *testing.T, n int, skip bool) {
		var old, all []netip.Addr
		for i := range n {
			old = append(old, netip.MustParseAddr(fmt.Sprintf("2001:db8::%d", i)))
			all = append(all, netip.MustParseAddr(fmt.Sprintf("2001:db8:1::%d", i)))
		}
		c := newCloud(t, skip, old)
		c.replace(all)
		c.find(all)
		c.wantReached(t, all, reachLimit)
		if !c.IPv6() {
			t.Error("the server that answered last has an address of IPv6")
		}
	})
}

// The only server that is known may be slow; it is left as soon as another one is found.
func TestSlowServerIsLeftForOneThatIsFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t, true, group(0, 1))
		c.replace(group(1, 1))
		c.mu.Lock()
		c.hosts = func(context.Context) ([]netip.Addr, error) {
			<-time.After(time.Second)
			return group(1, 1), nil
		}
		c.mu.Unlock()
		start := time.Now()
		if err := c.read(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > attemptLimit+time.Second+dialLimit {
			t.Errorf("took %s", took)
		}
	})
}

// A load balancer has one address, and its servers are out of reach.
func TestLoadBalancerIsReplaced(t *testing.T) {
	sizes(t, []int{1}, func(t *testing.T, _ int, skip bool) {
		c := newCloud(t, skip, group(0, 1))
		c.mu.Lock()
		c.peers = group(9, 3)
		c.mu.Unlock()
		<-time.After(10 * time.Minute)
		c.replace(group(1, 1))
		c.find(group(1, 1))
		c.wantReached(t, group(1, 1), reachLimit)
	})
}

func TestServersAreFoundWithoutRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t, true, group(0, 3))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		c.Run(ended)
		c.replace(group(1, 3))
		c.find(group(1, 3))
		c.wantReached(t, group(1, 3), reachLimit)
	})
}

// A discovery may be a call of a cloud's API, and all tasks make it when servers fail.
func TestDiscoveriesSlowDownInALongOutage(t *testing.T) {
	sizes(t, []int{1, 3}, func(t *testing.T, _ int, skip bool) {
		c := newCloud(t, skip, group(0, 3))
		c.mu.Lock()
		c.refuses = true
		c.mu.Unlock()
		c.replace(nil)
		before := c.discovered()
		for start := time.Now(); time.Since(start) < time.Hour; <-time.After(time.Second) {
			c.renew(t.Context())
		}
		if n := c.discovered() - before; n < 50 || n > 120 {
			t.Errorf("%d discoveries in an hour", n)
		}
		c.replace(group(1, 3))
		c.find(group(1, 3))
		c.wantReached(t, group(1, 3), discoverMax*12/10+reachLimit)
		after := c.discovered()
		<-time.After(10 * time.Minute)
		if n := c.discovered() - after; n > 1 {
			t.Errorf("%d discoveries after the outage", n)
		}
	})
}

// The old servers still answer, but are no cluster any more.
func TestServersWithoutALeaderAreReplaced(t *testing.T) {
	sizes(t, []int{1, 3, 5}, func(t *testing.T, n int, skip bool) {
		c := newCloud(t, skip, group(0, n))
		c.mu.Lock()
		c.leaderless = group(0, n)
		c.mu.Unlock()
		before := c.discovered()
		for start := time.Now(); time.Since(start) < refusalLimit; <-time.After(time.Second) {
			c.renew(t.Context())
		}
		if n := c.discovered() - before; n > 0 {
			t.Errorf("%d discoveries in the time of an election", n)
		}
		c.replace(append(group(0, n), group(1, n)...))
		c.find(group(1, n))
		c.wantReached(t, group(1, n), reachLimit)
	})
}

// A login may have made a token: it is not sent again, and the next one goes to a new server.
func TestLoginAtAReplacedServerIsSentOnce(t *testing.T) {
	sizes(t, []int{1, 3}, func(t *testing.T, n int, skip bool) {
		c := newCloud(t, skip, group(0, n))
		if err := c.read(t.Context()); err != nil { // on the connection that the login takes
			t.Fatal(err)
		}
		c.replace(group(1, n))
		c.find(group(1, n))
		client := newClient(t, Options{Servers: c.Servers})
		if err := logIn(client); !isUnanswered(err) {
			t.Errorf("got %v, want no answer", err)
		}
		c.mu.Lock()
		for _, a := range group(1, n) {
			if len(c.requests[a]) > 0 {
				t.Errorf("the login was sent to %s, too", a)
			}
		}
		c.mu.Unlock()
		c.wantReached(t, group(1, n), reachLimit)
	})
}

// The first name server of a task may be that of a proxy that has lost its servers.
func TestNameServerThatIsSilentIsLeft(t *testing.T) {
	t.Parallel()
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	conn, err := newResolver().Dial(t.Context(), "udp", silent.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, packets := conn.(net.PacketConn); !packets {
		t.Error("the resolver would take the connection for a stream")
	}
	start := time.Now()
	if err := conn.SetDeadline(start.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	_, err = conn.Read(make([]byte, 1))
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(start); took < nameServerLimit {
		t.Errorf("ended after %s", took)
	}
}
