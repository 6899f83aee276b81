package consulutil

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// fleet is some servers at 127.0.0.1, 127.0.0.2 and so on, which have the same port.
type fleet struct {
	port int
	// servers are in the order of their addresses.
	servers []*httptest.Server

	mu    sync.Mutex
	asked []string // last byte of the address, method and path
	conns int
}

func address(last byte) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 0, last}) }

// newFleet starts a server for each handler; nil reserves an address that refuses
// connections.
func newFleet(t *testing.T, secure bool, handlers ...http.HandlerFunc) *fleet {
	t.Helper()
	f, listeners := listen(t, handlers)
	for i, h := range handlers {
		s := httptest.NewUnstartedServer(f.record(i+1, h))
		s.Listener.Close()
		f.servers = append(f.servers, s)
		if h == nil {
			continue
		}
		s.Listener = listeners[i]
		s.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that clients refuse
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.conns++
			}
		}
		if secure {
			s.StartTLS()
		} else {
			s.Start()
		}
		t.Cleanup(s.Close)
	}
	return f
}

// listen returns a listener for each handler. The port is one that no other server is
// given, so that those without a listener stay closed.
func listen(t *testing.T, handlers []http.HandlerFunc) (*fleet, []net.Listener) {
	t.Helper()
	for range 10 {
		ports, err := testkit.FreePorts(1)
		if err != nil {
			t.Fatal(err)
		}
		listeners := make([]net.Listener, len(handlers))
		for i, h := range handlers {
			if h == nil {
				continue
			}
			l, failed := net.Listen("tcp", hostPort(address(byte(i+1)), ports[0]))
			if failed != nil {
				err = failed
				continue
			}
			t.Cleanup(func() { l.Close() })
			listeners[i] = l
		}
		if err == nil {
			return &fleet{port: ports[0]}, listeners
		}
	}
	t.Fatal("no port is free at all addresses")
	return nil, nil
}

func (f *fleet) record(i int, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.asked = append(f.asked, fmt.Sprintf("%d %s %s", i, r.Method, r.URL.Path))
		f.mu.Unlock()
		h(w, r)
	}
}

// requests returns what was asked since the last call.
func (f *fleet) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := f.asked
	f.asked = nil
	return asked
}

// config returns a plain configuration for the fleet.
func (f *fleet) config(hosts string) config.ConsulServers {
	return config.ConsulServers{Hosts: hosts, SkipServerWatch: true, HTTP: config.ServerHTTP{Port: f.port},
		GRPC: config.ServerGRPC{Port: 8503}}
}

// caPEM returns the certificate that httptest's TLS servers share.
func (f *fleet) caPEM(t *testing.T) string {
	t.Helper()
	for _, s := range f.servers {
		if c := s.Certificate(); c != nil {
			return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
		}
	}
	t.Fatal("no server has TLS")
	return ""
}

// inOrder returns Servers that know all of the fleet, in the order of its addresses.
func (f *fleet) inOrder(t *testing.T, o ServersOptions) *Servers {
	t.Helper()
	if o.Config.Hosts == "" {
		o.Config = f.config("consul.example.com")
	}
	s := newServers(t, o)
	s.lookup = func(context.Context, string, string) ([]netip.Addr, error) {
		return nil, &net.DNSError{Err: "no such host", Name: "consul.example.com", IsNotFound: true}
	}
	for i := range f.servers {
		s.set.addresses = append(s.set.addresses, address(byte(i+1)))
	}
	return s
}

func newServers(t *testing.T, o ServersOptions) *Servers {
	t.Helper()
	if o.Log == nil {
		o.Log = hclog.NewNullLogger()
	}
	s, err := NewServers(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stopDiscovery)
	return s
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(defaultPolicyHeader, "deny")
		w.WriteHeader(status)
		w.Write([]byte(body))
	}
}

// leader asks for the leader, which is a GET without a token.
func leader(c *api.Client) error {
	_, err := c.Status().Leader()
	return err
}

func TestUnusableHostsAreRefused(t *testing.T) {
	t.Parallel()
	for hosts, want := range map[string]string{
		"":      "consulServers.hosts: want an IP address, a DNS name, or exec= and a command",
		"exec=": "consulServers.hosts: want an IP address, a DNS name, or exec= and a command",
	} {
		_, err := NewServers(ServersOptions{Config: config.ConsulServers{Hosts: hosts}})
		testkit.Equal(t, hosts+": error", fmt.Sprint(err), want)
		testkit.Equal(t, hosts+": class", Classify(err), retry.Permanent)
		testkit.Equal(t, hosts+": exit status", cli.ExitCode(err), 1)
	}
}

func TestErrorsNameHostsAndTheServer(t *testing.T) {
	t.Parallel()
	f := newFleet(t, false, nil)
	err := leader(newClient(t, Options{Servers: f.inOrder(t, ServersOptions{})}))
	want := fmt.Sprintf(`Get "http://consul.example.com:%d/v1/status/leader": server 127.0.0.1:%[1]d: dial tcp `+
		`127.0.0.1:%[1]d: connect: connection refused`, f.port)
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if !Unreachable(err) {
		t.Errorf("%v (class %v) is not Unreachable", err, Classify(err))
	}
}

func TestServersOfIPv6(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		testkit.Missing(t, "this machine has no IPv6: "+err.Error())
	}
	server := httptest.NewUnstartedServer(answer(200, `"x"`))
	server.Listener.Close()
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	number, _ := strconv.Atoi(port)
	s := newServers(t,
		ServersOptions{Config: config.ConsulServers{Hosts: "::1", HTTP: config.ServerHTTP{Port: number},
			GRPC: config.ServerGRPC{Port: 8503}}})
	if err := leader(newClient(t, Options{Servers: s})); err != nil {
		t.Error(err)
	}
	if got, err := s.GRPCAddresses(t.Context()); err != nil || !slices.Equal(got, []string{"[::1]:8503"}) {
		t.Errorf("GRPCAddresses = %q, %v", got, err)
	}
}

func TestConsulAddressOfTheEnvironmentIsIgnored(t *testing.T) {
	f := newFleet(t, false, answer(200, `"x"`))
	t.Setenv("CONSUL_HTTP_ADDR", "https://192.0.2.1:1")
	t.Setenv("CONSUL_HTTP_SSL", "true")
	t.Setenv("CONSUL_CACERT", "/nonexistent/ca.pem") // of no use without TLS
	if err := leader(newClient(t, Options{Servers: f.inOrder(t, ServersOptions{})})); err != nil {
		t.Error(err)
	}
}

func TestEnvironmentFillsTokenNamespaceAndPartition(t *testing.T) {
	got := make(chan string, 1)
	f := newFleet(t, false, func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("X-Consul-Token") + " " + r.URL.RawQuery
		w.Write([]byte("{}"))
	})
	t.Setenv("CONSUL_HTTP_TOKEN", "from-env")
	t.Setenv("CONSUL_NAMESPACE", "ns")
	t.Setenv("CONSUL_PARTITION", "pt")
	s := f.inOrder(t, ServersOptions{})
	for _, tt := range []struct {
		o    Options
		want string
	}{
		{Options{Servers: s}, "from-env ns=ns&partition=pt"},
		{Options{Servers: s, Token: "own", Partition: "other"}, "own ns=ns&partition=other"},
	} {
		if _, _, err := newClient(t, tt.o).ACL().TokenReadSelf(nil); err != nil {
			t.Fatal(err)
		}
		if text := <-got; text != tt.want {
			t.Errorf("sent %q, want %q", text, tt.want)
		}
	}
}

func TestClientsShareOneConnection(t *testing.T) {
	t.Parallel()
	f := newFleet(t, false, answer(200, `"x"`), answer(200, `"x"`))
	s := f.inOrder(t, ServersOptions{})
	for range 10 {
		if err := leader(newClient(t, Options{Servers: s, Token: "a"})); err != nil {
			t.Fatal(err)
		}
	}
	n := len(f.requests())
	f.mu.Lock()
	defer f.mu.Unlock()
	if n != 10 || f.conns != 1 {
		t.Errorf("%d requests over %d connections, want 10 over 1", n, f.conns)
	}
}

func TestChangedReportsAnotherServerAndNoRepeatedAnswer(t *testing.T) {
	t.Parallel()
	f := newFleet(t, false, answer(200, `"x"`), answer(200, `"x"`))
	s := f.inOrder(t, ServersOptions{})
	c := newClient(t, Options{Servers: s})
	closed := func(ch <-chan struct{}) bool {
		select {
		case <-ch:
			return true
		default:
			return false
		}
	}
	for i, step := range []struct {
		before func()
		want   bool
		first  string
	}{
		{func() {}, true, "127.0.0.1:8503"},
		{func() {}, false, "127.0.0.1:8503"},
		{f.servers[0].Close, true, "127.0.0.2:8503"},
		{func() {}, false, "127.0.0.2:8503"},
	} {
		changed := s.Changed()
		step.before()
		if err := leader(c); err != nil {
			t.Fatal(err)
		}
		addresses, err := s.GRPCAddresses(t.Context())
		if err != nil || len(addresses) != 2 {
			t.Fatalf("step %d: addresses %q, %v; want two", i, addresses, err)
		}
		testkit.Equal(t, fmt.Sprintf("first address of step %d", i), addresses[0], step.first)
		testkit.Equal(t, fmt.Sprintf("change in step %d", i), closed(changed), step.want)
	}
}

func TestMergeOrdersWhatIsTriedNext(t *testing.T) {
	t.Parallel()
	a, b, c, d := address(1), address(2), address(3), address(4)
	for name, tt := range map[string]struct {
		set, failed, found, kept []netip.Addr
		serving                  netip.Addr
		want                     []netip.Addr
	}{
		"first":   {found: []netip.Addr{a}, want: []netip.Addr{a}},
		"same":    {set: []netip.Addr{b, a}, found: []netip.Addr{a, b}, want: []netip.Addr{b, a}},
		"new one": {set: []netip.Addr{b, a}, found: []netip.Addr{a, b, c}, want: []netip.Addr{b, a, c}},
		"new one before failed": {
			set: []netip.Addr{b, a}, failed: []netip.Addr{b, a}, found: []netip.Addr{a, b, c},
			want: []netip.Addr{c, b, a},
		},
		"current is gone": {set: []netip.Addr{b, a}, serving: b, found: []netip.Addr{a}, want: []netip.Addr{a}},
		"current is kept": {
			set: []netip.Addr{b, a}, serving: b, found: []netip.Addr{c}, kept: []netip.Addr{b},
			want: []netip.Addr{b, c},
		},
		"untried are kept": {
			set: []netip.Addr{b, a}, serving: d, found: []netip.Addr{c}, kept: []netip.Addr{b, a},
			want: []netip.Addr{c, b, a},
		},
		"failed and named before": {
			set: []netip.Addr{a, b}, failed: []netip.Addr{a, b}, found: []netip.Addr{b}, kept: []netip.Addr{a, b},
			want: []netip.Addr{b, a},
		},
		"none of the known": {set: []netip.Addr{b, a}, found: []netip.Addr{d}, want: []netip.Addr{d}},
	} {
		s := newServers(t, ServersOptions{Config: config.ConsulServers{Hosts: "127.0.0.1"}})
		s.set.addresses, s.set.serving = tt.set, tt.serving
		for _, failed := range tt.failed {
			s.set.failures[failed] = time.Now()
		}
		if got := s.set.merge(tt.found, tt.kept); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

func TestRetainedServersAreBounded(t *testing.T) {
	t.Parallel()
	s := newServers(t, ServersOptions{Config: config.ConsulServers{Hosts: "127.0.0.1"}})
	for i := range 100 {
		s.set.addresses = append(s.set.addresses, address(byte(i)))
		if i%2 == 0 {
			s.set.failures[address(byte(i))] = time.Now()
		}
	}
	if got := len(s.set.merge([]netip.Addr{address(200)}, s.set.addresses)); got != 1+2*mostRetained {
		t.Errorf("%d servers, want %d", got, 1+2*mostRetained)
	}
}

func TestAFleetSpreadsOverTheServers(t *testing.T) {
	t.Parallel()
	first := map[netip.Addr]bool{}
	for range 200 {
		s := newServers(t, ServersOptions{Config: config.ConsulServers{Hosts: "127.0.0.1"}})
		first[s.set.merge([]netip.Addr{address(1), address(2), address(3)}, nil)[0]] = true
	}
	if len(first) != 3 {
		t.Errorf("200 tasks start with %v only", first)
	}
}
