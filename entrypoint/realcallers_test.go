package entrypoint

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/envoy"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// A public listener as Consul makes it: TLS with client certificates, and the filter of
// the service's protocol under the name public_listener.
const (
	publicText = `{
  "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": %[1]d}}},
  "static_resources": {
    "listeners": [{"name": "public_listener:127.0.0.1:%[2]d", "traffic_direction": "INBOUND",
      "address": {"socket_address": {"address": "127.0.0.1", "port_value": %[2]d}},
      "filter_chains": [{"filters": [%[3]s], "transport_socket": {"name": "tls", "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext", "require_client_certificate": true,
        "common_tls_context": {"alpn_protocols": ["h2", "http/1.1"],
          "tls_certificates": [{"certificate_chain": {"filename": %[4]q}, "private_key": {"filename": %[4]q}}],
          "validation_context": {"trusted_ca": {"filename": %[4]q}}}}}}]}],
    "clusters": [{"name": "app", "connect_timeout": "1s", %[5]s "load_assignment": {"cluster_name": "app", "endpoints": [{"lb_endpoints": [
      {"endpoint": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": %[6]d}}}}]}]}}]
  }
}`
	tcpFilter = `{"name": "tcp", "typed_config": {
    "@type": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy", "stat_prefix": "public_listener", "cluster": "app"}}`
	httpFilter = `{"name": "http", "typed_config": {
    "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", "stat_prefix": "public_listener",
    "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "app", "timeout": "0s"}}]}]},
    "http_filters": [{"name": "router", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]}}`
	http2Cluster = `"typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
    "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions", "explicit_http_config": {"http2_protocol_options": {}}}},`
)

// publicListener is a running Envoy with a public listener, and its callers' identity.
type publicListener struct {
	envoy.Proxy
	address string
	tls     *tls.Config
}

func startPublicListener(t *testing.T, filter, cluster string, app *httptest.Server) publicListener {
	t.Helper()
	bin := testkit.RequireBinary(t, "envoy")
	ports, err := testkit.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	identity := filepath.Join(dir, "identity.pem")
	certificate := writeIdentity(t, identity)
	_, appPort, _ := net.SplitHostPort(app.Listener.Addr().String())
	var port int
	fmt.Sscan(appPort, &port)
	path := filepath.Join(dir, "bootstrap.json")
	if err := os.WriteFile(path, fmt.Appendf(nil, publicText, ports[0], ports[1], filter, identity, cluster, port),
		0o600); err != nil {
		t.Fatal(err)
	}
	testkit.StartProcess(t, testkit.ProcessOptions{Quiet: true},
		bin, "--config-path", path, "--disable-hot-restart", "--concurrency", "1", "--log-level", "error")
	p := publicListener{
		Proxy:   envoy.Proxy{Admin: fmt.Sprintf("127.0.0.1:%d", ports[0])},
		address: fmt.Sprintf("127.0.0.1:%d", ports[1]),
		tls:     &tls.Config{Certificates: []tls.Certificate{certificate}, InsecureSkipVerify: true},
	}
	testkit.Eventually(t, "envoy serves", func() bool {
		_, err := Calls(p.Proxy)(t.Context())
		return err == nil
	})
	return p
}

// writeIdentity makes a certificate that signs itself, and writes it with its key.
func writeIdentity(t *testing.T, path string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"api"}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// client calls over HTTP; with the same client calls share connections.
func (p publicListener) client(http2 bool) *http.Client {
	config := p.tls.Clone()
	if http2 {
		config.NextProtos = []string{"h2"}
	}
	return &http.Client{Timeout: testkit.Patience,
		Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: http2}}
}

func (p publicListener) get(c *http.Client, wantMajor int) error {
	resp, err := c.Get("https://" + p.address + "/")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err = io.Copy(io.Discard, resp.Body); err == nil &&
		(resp.StatusCode != http.StatusOK || resp.ProtoMajor != wantMajor) {
		err = fmt.Errorf("%s %s", resp.Proto, resp.Status)
	}
	return err
}

// tcp makes a connection through TLS and has an answer: a client has finished a handshake
// of TLS 1.3 before Envoy counts it.
func (p publicListener) tcp() (net.Conn, error) {
	c, err := tls.Dial("tcp", p.address, p.tls)
	if err != nil {
		return nil, err
	}
	if _, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: api\r\n\r\n"); err == nil {
		_, err = c.Read(make([]byte, 1))
	}
	return c, err
}

// stream opens a request whose body stays open, as a gRPC stream, and sends a message
// every 50 ms.
func (p publicListener) stream(ctx context.Context) error {
	read, write := io.Pipe()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+p.address+"/stream", read)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/grpc")
	go repeat(ctx, 50*ms, func() error {
		_, err := write.Write([]byte("message"))
		return err
	})
	c := p.client(true)
	c.Timeout = 0
	resp, err := c.Do(req)
	if err == nil {
		go io.Copy(io.Discard, resp.Body)
	}
	return err
}

// repeat calls do at once and then every interval until ctx ends or do fails.
func repeat(ctx context.Context, interval time.Duration, do func() error) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for do() == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// protocol is how callers of one protocol call, and keep a connection open without
// calling.
type protocol struct {
	filter, cluster string
	open            func(context.Context, publicListener) error
	caller          func(publicListener) func() error
}

func protocols() map[string]protocol {
	http1 := func(p publicListener) func() error {
		c := p.client(false)
		return func() error { return p.get(c, 1) }
	}
	http2 := func(p publicListener) func() error {
		c := p.client(true)
		return func() error { return p.get(c, 2) }
	}
	once := func(caller func(publicListener) func() error) func(context.Context, publicListener) error {
		return func(_ context.Context, p publicListener) error { return caller(p)() }
	}
	return map[string]protocol{
		"HTTP/1.1": {httpFilter, http2Cluster, once(http1), http1},
		"HTTP/2":   {httpFilter, http2Cluster, once(http2), http2},
		"gRPC": {httpFilter, http2Cluster, func(ctx context.Context, p publicListener) error { return p.stream(ctx) },
			func(p publicListener) func() error {
				return func() error { return p.stream(context.Background()) }
			}},
		"TCP": {tcpFilter, "", func(ctx context.Context, p publicListener) error {
			c, err := p.tcp()
			if err == nil {
				go repeat(ctx, 50*ms, func() error { _, err := c.Write([]byte("x")); return err })
			}
			return err
		}, func(p publicListener) func() error {
			return func() error {
				c, err := p.tcp()
				if err == nil {
					err = c.Close()
				}
				return err
			}
		}},
	}
}

// serveStreams answers requests, and streams until their callers end them.
func serveStreams(t *testing.T) *httptest.Server {
	app := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stream" {
			w.(http.Flusher).Flush()
			io.Copy(io.Discard, r.Body)
		}
	}))
	app.Config.Protocols = new(http.Protocols)
	app.Config.Protocols.SetHTTP1(true)
	app.Config.Protocols.SetUnencryptedHTTP2(true)
	app.Start()
	t.Cleanup(func() {
		app.CloseClientConnections()
		app.Close()
	})
	return app
}

// TestRealEnvoyCountersShowTheEndOfCalls: connections that stay open, busy or idle,
// probes without a certificate and scrapes of the admin endpoint go on all the time.
func TestRealEnvoyCountersShowTheEndOfCalls(t *testing.T) {
	t.Parallel()
	for name, protocol := range protocols() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startPublicListener(t, protocol.filter, protocol.cluster, serveStreams(t))
			if err := protocol.open(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			go repeat(t.Context(), 20*ms, func() error {
				if c, err := net.Dial("tcp", p.address); err == nil {
					c.Close()
				}
				return nil
			})
			go repeat(t.Context(), 30*ms, func() error {
				envoy.Ask(t.Context(), http.MethodGet, p.Admin, "/stats/prometheus")
				return nil
			})
			for seed := range uint64(3) {
				testCallersGone(t, p, protocol.caller(p), seed)
			}
			testCallersStay(t, p, protocol.caller(p))
		})
	}
}

// span is the time of a call that was answered.
type span struct{ from, to time.Time }

// awaitGone waits until callers have gone, and returns how much too early that was, by the
// calls that were answered before the last look at Envoy: it had counted them by then.
func (p publicListener) awaitGone(
	ctx context.Context, minDelay time.Duration, answered func() []span,
) (early time.Duration, err error) {
	start := time.Now()
	var look time.Time
	count := Calls(p.Proxy)
	c := Callers{MinDelay: minDelay, Proxied: func(context.Context) bool { return true },
		Calls: func(ctx context.Context) (uint64, error) {
			look = time.Now()
			return count(ctx)
		}}
	if err := c.await(ctx, hclog.NewNullLogger()); err != nil {
		return 0, err
	}
	end := time.Now()
	early = start.Add(minDelay).Sub(end)
	for _, s := range answered() {
		if s.to.Before(look) {
			early = max(early, s.from.Add(idleTime).Sub(end))
		}
	}
	return early, nil
}

// testCallersGone stops a caller after some time.
func testCallersGone(t *testing.T, p publicListener, call func() error, seed uint64) {
	t.Helper()
	random := mathrand.New(mathrand.NewPCG(seed, 0))
	calls := time.Duration(random.IntN(1200)) * ms
	start := time.Now()
	answered := make(chan []span, 1)
	go func() {
		var all []span
		defer func() { answered <- all }()
		for time.Since(start) < calls {
			from := time.Now()
			if err := call(); err != nil {
				t.Errorf("seed %d: call: %v", seed, err)
				return
			}
			all = append(all, span{from, time.Now()})
			<-time.After(time.Duration(random.IntN(150)) * ms)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	if early, err := p.awaitGone(ctx, 300*ms, func() []span { return <-answered }); err != nil || early > 0 {
		t.Errorf("seed %d: callers gone %s too early, error %v", seed, early, err)
	}
}

// testCallersStay keeps a caller calling. On a busy machine its calls may be so far apart
// that callers seem to have gone, but not each time.
func testCallersStay(t *testing.T, p publicListener, call func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	var all []span
	go repeat(ctx, 100*ms, func() error {
		from := time.Now()
		err := call()
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			all = append(all, span{from, time.Now()})
		}
		return err
	})
	testkit.Eventually(t, "callers that call ten times a second stay", func() bool {
		limited, end := context.WithTimeout(ctx, 1500*ms)
		defer end()
		early, err := p.awaitGone(limited, 0, func() []span {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(all)
		})
		if early > 0 {
			t.Fatalf("callers that call ten times a second have gone, %s too early", early)
		}
		return err != nil
	})
}
