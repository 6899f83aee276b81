package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// deltaPath is the method that Envoy calls.
const deltaPath = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"

// servers is a set of servers of which the failed one goes to the end.
type servers struct {
	mu        sync.Mutex
	addresses []string
	failed    []string
	changed   chan struct{}
	// leaders answers HasLeader; nil when each server has one.
	leaders func(address string) error
	looks   []string // addresses that were asked
}

func newServers(addresses ...string) *servers {
	return &servers{addresses: addresses, changed: make(chan struct{})}
}

func (s *servers) GRPCAddresses(context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.addresses) == 0 {
		return nil, errors.New("no address of a Consul server is known")
	}
	return slices.Clone(s.addresses), nil
}

func (s *servers) GRPCFailed(address string, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = append(s.failed, address)
	if i := slices.Index(s.addresses, address); i >= 0 {
		s.addresses = append(slices.Delete(s.addresses, i, i+1), address)
	}
}

func (s *servers) GRPCServed(string) {}

func (s *servers) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *servers) HasLeader(_ context.Context, address string) error {
	s.mu.Lock()
	s.looks = append(s.looks, address)
	leaders := s.leaders
	s.mu.Unlock()
	if leaders == nil {
		return nil
	}
	return leaders(address)
}

func (s *servers) set(addresses ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addresses = addresses
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *servers) failures() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.failed)
}

// tokenFile is what a token file has.
type tokenFile struct {
	mu     sync.Mutex
	secret string
	err    error
}

func (f *tokenFile) read() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.secret, f.err
}

func (f *tokenFile) set(secret string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.secret, f.err = secret, err
}

// fixed returns a configuration that does not change.
func fixed(config *tls.Config) func() (*tls.Config, error) {
	return func() (*tls.Config, error) { return config, nil }
}

// relay is an XDS that serves.
type relay struct {
	address string
	log     *testkit.Log
	stop    context.CancelFunc
	ended   chan error
}

// startXDS runs an XDS until the end of the test.
func startXDS(t *testing.T, c XDSConfig) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, c, l)
}

func serve(t *testing.T, c XDSConfig, l net.Listener) *relay {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r := &relay{address: l.Addr().String(), log: &testkit.Log{}, stop: stop, ended: make(chan error, 1)}
	c.Log = hclog.New(&hclog.LoggerOptions{Level: hclog.Info, Output: io.MultiWriter(r.log, t.Output())})
	if c.Token == nil {
		c.Token = (&tokenFile{secret: "secret"}).read
	}
	go func() {
		defer close(r.ended)
		r.ended <- NewXDS(c).Serve(ctx, l)
	}()
	t.Cleanup(func() {
		stop()
		<-r.ended
	})
	return r
}

// startServer runs a server of plaintext HTTP/2.
func startServer(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(handler)
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	t.Cleanup(srv.Close)
	return srv
}

// call is a stream of a client, which ends with the test.
type call struct {
	t    *testing.T
	send *io.PipeWriter
	resp *http.Response
}

// open opens a stream and waits for the answer's header.
func (r *relay) open(t *testing.T, path string) *call {
	t.Helper()
	body, send := io.Pipe()
	resp, err := r.request(t, path, body)()
	if err != nil {
		t.Fatal(err)
	}
	return &call{t: t, send: send, resp: resp}
}

// try opens a stream that need not succeed.
func (r *relay) try(t *testing.T) {
	request := r.request(t, deltaPath, http.NoBody)
	go request()
}

// request returns a function that opens a stream, over a separate connection.
func (r *relay) request(t *testing.T, path string, body io.Reader) func() (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.address+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("Te", "trailers")
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return func() (*http.Response, error) { return transport.RoundTrip(req) }
}

// receive reads n bytes.
func (c *call) receive(n int) string {
	c.t.Helper()
	buf := make([]byte, n)
	if _, err := io.ReadFull(c.resp.Body, buf); err != nil {
		c.t.Fatal(err)
	}
	return string(buf)
}

// status reads to the end of the answer.
func (c *call) status() status {
	c.t.Helper()
	if got, ok := readStatus(c.resp.Header); ok {
		return got
	}
	if _, err := io.Copy(io.Discard, c.resp.Body); err != nil {
		c.t.Fatal(err)
	}
	got, ok := readStatus(c.resp.Trailer)
	if !ok {
		c.t.Fatal("no status")
	}
	return got
}

// refusing answers each stream with a status at once.
func refusing(got status) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set(statusHeader, got.code)
		w.Header().Set(messageHeader, got.message)
	}
}

// echoing begins with the name and the token, sends back what it gets, and ends with OK.
func echoing(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		control := http.NewResponseController(w)
		io.WriteString(w, name+" "+req.Header.Get("X-Consul-Token")+"\n")
		control.Flush()
		buf := make([]byte, 64<<10)
		for {
			n, err := req.Body.Read(buf)
			w.Write(buf[:n])
			control.Flush()
			if err != nil {
				break
			}
		}
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
		w.Header().Set(http.TrailerPrefix+"Grpc-Message", "all%20sent")
		w.Header().Set(http.TrailerPrefix+"X-Other", "value")
	}
}

func address(srv *httptest.Server) string { return srv.Listener.Addr().String() }

// logged waits for a line of the log.
func (r *relay) logged(t *testing.T, text string) {
	t.Helper()
	testkit.Eventually(t, "logged "+text, func() bool { return strings.Count(r.log.String(), text) > 0 })
}
