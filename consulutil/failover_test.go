package consulutil

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// breakOff ends the connection after it has read the request.
func breakOff(_ http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	panic(http.ErrAbortHandler)
}

func logIn(c *api.Client) error {
	_, err := Login(context.Background(), c, LoginParams{Method: "iam", Bearer: "b"})
	return err
}

func registerNode(c *api.Client) error {
	_, err := c.Catalog().Register(&api.CatalogRegistration{Node: "n", Address: "192.0.2.1"}, nil)
	return err
}

func createSession(c *api.Client) error {
	_, _, err := c.Session().Create(&api.SessionEntry{}, nil)
	return err
}

func TestRequestsFailOver(t *testing.T) {
	t.Parallel()
	good := answer(200, `{"SecretID":"s"}`)
	for name, tt := range map[string]struct {
		servers []http.HandlerFunc
		do      func(*api.Client) error
		asked   []string
		class   retry.Class // of the error of a request that does not
		fails   bool
	}{
		"a read, unconnected": {
			[]http.HandlerFunc{nil, nil, good}, readToken,
			[]string{"3 GET /v1/acl/token/self"}, 0, false,
		},
		"a login, unconnected": {[]http.HandlerFunc{nil, good}, logIn, []string{"2 POST /v1/acl/login"}, 0, false},
		"a read, broken": {
			[]http.HandlerFunc{breakOff, good}, readToken,
			[]string{"1 GET /v1/acl/token/self", "2 GET /v1/acl/token/self"}, 0, false,
		},
		"a registration, broken": {
			[]http.HandlerFunc{breakOff, good}, registerNode,
			[]string{"1 PUT /v1/catalog/register", "2 PUT /v1/catalog/register"}, 0, false,
		},
		"a login, broken": {
			[]http.HandlerFunc{breakOff, good}, logIn,
			[]string{"1 POST /v1/acl/login"}, retry.NotYet, true,
		},
		"a session, broken": {
			[]http.HandlerFunc{breakOff, good}, createSession,
			[]string{"1 PUT /v1/session/create"}, retry.NotYet, true,
		},
		"no server is there": {[]http.HandlerFunc{nil, nil}, readToken, nil, retry.NotYet, true},
		"an unconnected, then refusal": {[]http.HandlerFunc{nil, answer(403, "Permission denied")}, readToken,
			[]string{"2 GET /v1/acl/token/self"}, retry.Permanent, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, false, tt.servers...)
			err := tt.do(newClient(t, Options{Servers: f.inOrder(t, ServersOptions{})}))
			if (err != nil) != tt.fails || tt.fails && Classify(err) != tt.class {
				t.Errorf("error %v, class %v", err, Classify(err))
			}
			if asked := f.requests(); !slices.Equal(asked, tt.asked) {
				t.Errorf("asked %q, want %q", asked, tt.asked)
			}
		})
	}
}

func readToken(c *api.Client) error {
	_, _, err := c.ACL().TokenReadSelf(nil)
	return err
}

// A login that may have made a token is reported as such, one that met only servers
// that were not there is not.
func TestUnansweredLoginOfServers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		servers []http.HandlerFunc
		want    bool
	}{
		{[]http.HandlerFunc{nil, nil}, false},
		{[]http.HandlerFunc{nil, breakOff}, true},
	} {
		f := newFleet(t, false, tt.servers...)
		if err := logIn(newClient(t, Options{Servers: f.inOrder(t, ServersOptions{})})); isUnanswered(err) != tt.want {
			t.Errorf("Unanswered = %v: %v", !tt.want, err)
		}
	}
}

// The end of an idle connection is not the end of a connection that had the request.
func TestLoginRetriesOnADeadIdleConnection(t *testing.T) {
	t.Parallel()
	s := (&fleet{port: 8500, servers: make([]*httptest.Server, 2)}).inOrder(t, ServersOptions{})
	s.transport = &failover{servers: s, scheme: "http",
		next: testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "127.0.0.2:8500" {
				return &http.Response{StatusCode: 200, Header: http.Header{},
					Body: io.NopCloser(strings.NewReader(`{"SecretID":"s"}`))}, nil
			}
			trace := httptrace.ContextClientTrace(r.Context())
			trace.GetConn(r.URL.Host)
			trace.GotConn(httptrace.GotConnInfo{})
			trace.GetConn(r.URL.Host) // nothing could be written
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("refused")}
		})}
	if err := logIn(newClient(t, Options{Servers: s})); err != nil {
		t.Error(err)
	}
}

// An answer that was on its way when the server failed another request.
func TestLateAnswerDoesNotBringAServerBack(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	f := newFleet(t, false, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/status/leader" {
			w.WriteHeader(503)
			return
		}
		close(arrived)
		<-release
		w.Write([]byte("{}"))
	}, answer(200, `"x"`))
	s := f.inOrder(t, ServersOptions{})
	c := newClient(t, Options{Servers: s})
	late := make(chan error)
	go func() { late <- readToken(c) }()
	<-arrived
	if err := leader(c); Status(err) != 503 {
		t.Error(err)
	}
	if err := leader(c); err != nil {
		t.Error(err)
	}
	changed := s.Changed()
	close(release)
	if err := <-late; err != nil {
		t.Error(err)
	}
	select {
	case <-changed:
		t.Error("the late answer was reported as a change")
	default:
	}
	if got, err := s.GRPCAddresses(t.Context()); err != nil ||
		!slices.Equal(got, []string{"127.0.0.2:8503", "127.0.0.1:8503"}) {
		t.Errorf("addresses %q, %v", got, err)
	}
}

func TestBodyIsSentInFullToTheNextServer(t *testing.T) {
	t.Parallel()
	var body string
	f := newFleet(t, false, breakOff, func(w http.ResponseWriter, r *http.Request) {
		all, _ := io.ReadAll(r.Body)
		body = string(all)
		w.Write([]byte("true"))
	})
	if err := registerNode(newClient(t, Options{Servers: f.inOrder(t, ServersOptions{})})); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(body, `{"ID":"","Node":"n","Address":"192.0.2.1"`) {
		t.Errorf("body %q", body)
	}
}

// The server that serves stays, and one that has failed is the last to be asked again.
func TestTheServerThatAnsweredStays(t *testing.T) {
	t.Parallel()
	f := newFleet(t, false, answer(200, `"x"`), answer(200, `"x"`), answer(200, `"x"`))
	c := newClient(t, Options{Servers: f.inOrder(t, ServersOptions{})})
	for range 2 {
		if err := leader(c); err != nil {
			t.Fatal(err)
		}
	}
	f.servers[0].Close()
	for range 2 {
		if err := leader(c); err != nil {
			t.Fatal(err)
		}
	}
	f.servers[1].Close()
	if err := leader(c); err != nil {
		t.Fatal(err)
	}
	const path = " GET /v1/status/leader"
	if got, want := f.requests(),
		[]string{"1" + path, "1" + path, "2" + path, "2" + path, "3" + path}; !slices.Equal(got, want) {
		t.Errorf("asked %q, want %q", got, want)
	}
}

func TestAnswerOfAFaultMovesTheNextRequest(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		reason string
		moves  bool
	}{
		{429, "Your IP is issuing too many concurrent connections", true},
		{503, "", true},
		{500, "No cluster leader", true},
		{500, "rpc error getting client: failed to get conn: dial tcp 10.0.0.1:8300: connect: connection refused",
			true},
		{500, "rpc error making call: EOF", true},
		{500, "leadership lost while committing log", true},
		{500, "rpc error making call: Unknown service ID \"web-1\"", false},
		{500, "rpc error making call: Invalid Session TTL '15000000000', must be between [1m0s=24h0m0s]", false},
		{500, "", false},
		{403, "Permission denied", false},
		{404, "No cluster leader", false},
		{400, "", false},
	} {
		f := newFleet(t, false, answer(tt.status, tt.reason), answer(200, `"x"`))
		c := newClient(t, Options{Servers: f.inOrder(t, ServersOptions{})})
		if err := leader(c); Status(err) != tt.status || strings.TrimSpace(Reason(err)) != tt.reason {
			t.Errorf("%d %s: got %v, want the answer", tt.status, tt.reason, err)
		}
		if err := leader(c); (err == nil) != tt.moves {
			t.Errorf("%d %s: the next request: %v", tt.status, tt.reason, err)
		}
	}
}

func TestUnresponsiveServerIsTriedLast(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	f := newFleet(t, false, func(http.ResponseWriter, *http.Request) { <-release }, answer(200, `"x"`))
	t.Cleanup(func() { close(release) })
	s := f.inOrder(t, ServersOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err := newClient(t, Options{Servers: s}).Status().LeaderWithQueryOptions((&api.QueryOptions{}).WithContext(ctx))
	if !errors.Is(err, context.Canceled) || s.set.addresses[0] != address(1) {
		t.Errorf("a caller that ends its request: %v, current server %v", err, s.set.addresses[0])
	}
	// A limit that ends before the request is sent is no evidence about the server.
	for limit := 50 * time.Millisecond; s.set.addresses[0] == address(1) && limit < testkit.Patience; limit *= 10 {
		var timeout net.Error
		if err := leader(newClient(t, Options{Servers: s, Timeout: limit})); !errors.As(err, &timeout) ||
			!timeout.Timeout() {
			t.Fatalf("got %v, want a timeout", err)
		}
	}
	if s.set.addresses[0] != address(2) {
		t.Errorf("current server %v", s.set.addresses[0])
	}
	if err := leader(newClient(t, Options{Servers: s})); err != nil {
		t.Errorf("the next request: %v", err)
	}
}

func TestServerThatDropsPacketsDelaysTwoSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServers(t, ServersOptions{
			Config: config.ConsulServers{Hosts: "127.0.0.1", HTTP: config.ServerHTTP{Port: 8500}},
			DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
				if address == "127.0.0.1:8500" {
					<-ctx.Done()
					return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
				}
				ours, theirs := net.Pipe()
				go func() {
					defer theirs.Close()
					if _, err := http.ReadRequest(bufio.NewReader(theirs)); err != nil {
						t.Error(err)
					}
					io.WriteString(theirs, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\n\"x\"")
				}()
				return ours, nil
			},
		})
		s.set.addresses = []netip.Addr{address(1), address(2)}
		start := time.Now()
		err := leader(newClient(t, Options{Servers: s}))
		if d := time.Since(start); err != nil || d != 2*time.Second {
			t.Errorf("took %s: %v", d, err)
		}
	})
}

func TestCertificateOfOneServerIsNoReasonToStop(t *testing.T) {
	t.Parallel()
	options := func(f *fleet, ca string) ServersOptions {
		c := f.config("consul.example.com")
		c.HTTP.HTTPS, c.HTTP.TLSServerName = true, "example.com"
		return ServersOptions{Config: c, HTTPSCAPEM: ca}
	}
	good := answer(200, `"x"`)
	f := newFleet(t, true, good)
	ca := f.caPEM(t)
	if err := leader(newClient(t, Options{Servers: f.inOrder(t, options(f, ca))})); err != nil {
		t.Error(err)
	}
	plain := newFleet(t, false, good)
	err := leader(newClient(t, Options{Servers: plain.inOrder(t, options(plain, ca))}))
	if !errors.Is(err, http.ErrSchemeMismatch) || Classify(err) != retry.Permanent {
		t.Errorf("HTTP at the port of HTTPS: %v, class %v", err, Classify(err))
	}
	all := newFleet(t, true, good, good)
	err = leader(newClient(t, Options{Servers: all.inOrder(t, options(all, testkit.OtherCA))}))
	if Classify(err) != retry.Permanent || !strings.Contains(err.Error(), "certificate signed by unknown authority") {
		t.Errorf("all refused: %v, class %v", err, Classify(err))
	}
	one := newFleet(t, true, good, nil)
	err = leader(newClient(t, Options{Servers: one.inOrder(t, options(one, testkit.OtherCA))}))
	if !Unreachable(err) {
		t.Errorf("one refused, the other not there: %v, class %v", err, Classify(err))
	}
}

// Two servers of the same CA, of which one has another name's certificate.
func TestServerWithAnotherNameIsPassedOver(t *testing.T) {
	t.Parallel()
	f := newFleet(t, true, answer(200, `"x"`), answer(200, `"x"`))
	c := f.config("exec=false") // so that the address is the name
	c.HTTP.HTTPS = true
	s := f.inOrder(t, ServersOptions{Config: c, HTTPSCAPEM: f.caPEM(t)})
	s.set.addresses = []netip.Addr{address(2), address(1)} // httptest's certificate has 127.0.0.1
	if err := leader(newClient(t, Options{Servers: s})); err != nil {
		t.Fatal(err)
	}
	if got := f.requests(); !slices.Equal(got, []string{"1 GET /v1/status/leader"}) {
		t.Errorf("asked %q", got)
	}
}

// Without skipServerWatch hosts may be one address, of a server that is gone: the
// others stay known.
func TestServersAreDiscoveredAgainWhenNoneIsThere(t *testing.T) {
	t.Parallel()
	for skip, want := range map[bool][]string{
		true:  {"127.0.0.3:8503"},
		false: {"127.0.0.3:8503", "127.0.0.1:8503", "127.0.0.2:8503"},
	} {
		f := newFleet(t, false, nil, nil, answer(200, `"x"`))
		c := f.config("consul.example.com")
		c.SkipServerWatch = skip
		s := f.inOrder(t, ServersOptions{Config: c})
		s.set.addresses = s.set.addresses[:2]
		s.lookup = func(context.Context, string, string) ([]netip.Addr, error) { return []netip.Addr{address(3)}, nil }
		if err := leader(newClient(t, Options{Servers: s})); err != nil {
			t.Fatal(err)
		}
		if got, err := s.GRPCAddresses(t.Context()); err != nil || !slices.Equal(got, want) {
			t.Errorf("skipServerWatch %v: addresses %q, %v, want %q", skip, got, err, want)
		}
	}
}

// A discovery may be a process or a call of a cloud's API.
func TestDiscoveriesArePausedWhileNoServerIsThere(t *testing.T) {
	t.Parallel()
	f := newFleet(t, false, nil)
	s := f.inOrder(t, ServersOptions{})
	discoveries := 0
	s.lookup = func(context.Context, string, string) ([]netip.Addr, error) {
		discoveries++
		return nil, &net.DNSError{Err: "no such host"}
	}
	c := newClient(t, Options{Servers: s})
	start := time.Now()
	for range 5 {
		if err := leader(c); !Unreachable(err) {
			t.Errorf("got %v", err)
		}
	}
	if took := time.Since(start); discoveries > 1+int(took/discoverPause) {
		t.Errorf("%d discoveries in %s, want one for each %s", discoveries, took, discoverPause)
	}
}
