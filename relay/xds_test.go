package relay

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestMessagesPassBothWaysBeforeTheStreamEnds(t *testing.T) {
	t.Parallel()
	srv := startServer(t, echoing("one"))
	r := startXDS(t, XDSConfig{Servers: newServers(address(srv))})
	c := r.open(t, deltaPath)
	if got := c.receive(11); got != "one secret\n" {
		t.Errorf("first message %q, want the server's name and the token", got)
	}
	for _, message := range []string{"first", "second"} {
		io.WriteString(c.send, message)
		if got := c.receive(len(message)); got != message {
			t.Errorf("got %q, want %q", got, message)
		}
	}
	c.send.Close()
	if got := c.status(); got != (status{"0", "all sent"}) || c.resp.Trailer.Get("X-Other") != "value" {
		t.Errorf("status %+v, trailer %v; want 0, all sent, X-Other", got, c.resp.Trailer)
	}
	if got := c.resp.Header.Get("Content-Type"); got != "application/grpc" {
		t.Errorf("content type %q", got)
	}
}

func TestTokenOfTheRelayReplacesTheClients(t *testing.T) {
	t.Parallel()
	srv := startServer(t, func(w http.ResponseWriter, req *http.Request) {
		refusing(status{"0", strings.Join(req.Header["X-Consul-Token"], ",") + " " + req.Header.Get("Te")})(w, req)
	})
	for secret, want := range map[string]string{"secret": "secret trailers", "": " trailers"} {
		r := startXDS(t, XDSConfig{Servers: newServers(address(srv)), Token: (&tokenFile{secret: secret}).read})
		if got := r.open(t, deltaPath).status().message; got != want {
			t.Errorf("the server got %q, want %q", got, want)
		}
	}
}

func TestOtherMethodsAreUnimplemented(t *testing.T) {
	t.Parallel()
	srv := startServer(t, echoing("one"))
	r := startXDS(t, XDSConfig{Servers: newServers(address(srv))})
	for _, path := range []string{
		"/", "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
		"/hashicorp.consul.acl.ACLService/Login", "/envoy.service.secret.v3.SecretDiscoveryService/DeltaSecrets",
	} {
		if got := r.open(t, path).status(); got != (status{
			"12", "only aggregated delta discovery is relayed, as Consul serves no other: set api_type DELTA_GRPC",
		}) {
			t.Errorf("%s: status %+v, want 12", path, got)
		}
	}
}

// Consul's limit for one message is 50 MiB.
func TestLargestMessagePassesWithoutBeingHeld(t *testing.T) {
	t.Parallel()
	const size = 50 << 20
	srv := startServer(t, echoing("one"))
	r := startXDS(t, XDSConfig{Servers: newServers(address(srv))})
	c := r.open(t, deltaPath)
	c.receive(11)
	part := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	want, got := sha256.New(), sha256.New()
	go func() {
		defer c.send.Close()
		for range size / len(part) {
			want.Write(part)
			c.send.Write(part)
		}
	}()
	n, err := io.Copy(got, c.resp.Body)
	if err != nil || n != size {
		t.Errorf("%d bytes came back, %v; want %d", n, err, size)
	}
	if got, want := got.Sum(nil), want.Sum(nil); !bytes.Equal(got, want) {
		t.Errorf("the bytes that came back have the hash %x, want %x", got, want)
	}
}

func TestRefusalMovesTheNextStreamToAnotherServer(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status status
		moves  bool
		log    string
	}{
		"too many streams": {
			status{"8", "this server has too many xDS streams open, please try another"}, true,
			`[INFO]  xDS stream ended: address=ADDRESS reason="status 8: this server has too many`,
		},
		"unavailable": {
			status{"14", "no leader"}, true, `[WARN]  xDS stream ended: address=ADDRESS reason="status 14: no leader"`,
		},
		"internal": {
			status{"13", "fault"}, true, `[WARN]  xDS stream ended: address=ADDRESS reason="status 13: fault"`,
		},
		"unknown token": {
			status{"16", "unauthenticated: ACL not found"}, true,
			`status 16: unauthenticated: ACL not found: the task's token must exist in Consul and grant service:write`,
		},
		"permission denied": {
			status{"7", "Permission denied"}, false,
			`status 7: Permission denied: the task's token must exist in Consul and grant service:write`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := startServer(t, refusing(tc.status)), startServer(t, echoing("two"))
			set := newServers(address(first), address(second))
			r := startXDS(t, XDSConfig{Servers: set})
			if got := r.open(t, deltaPath).status(); got != tc.status {
				t.Errorf("status %+v, want %+v", got, tc.status)
			}
			r.logged(t, strings.ReplaceAll(tc.log, "ADDRESS", address(first)))
			if !tc.moves {
				if got := set.failures(); len(got) != 0 {
					t.Errorf("failed %v, want none", got)
				}
				return
			}
			c := r.open(t, deltaPath)
			if got := c.receive(3); got != "two" {
				t.Errorf("the next stream got %q, want the second server", got)
			}
			r.logged(t, "[INFO]  xDS stream established: address="+address(second))
		})
	}
}

func TestRepeatedRefusalIsLoggedOnce(t *testing.T) {
	t.Parallel()
	srv := startServer(t, refusing(status{"16", "ACL not found"}))
	r := startXDS(t, XDSConfig{Servers: newServers(address(srv))})
	start := time.Now()
	for range 5 {
		r.open(t, deltaPath).status()
	}
	most := 1 + int(time.Since(start)/repeatAfter)
	r.stop()
	<-r.ended
	if got := strings.Count(r.log.String(), "xDS stream ended"); got < 1 || got > most {
		t.Errorf("%d lines, want 1 to %d", got, most)
	}
}

func TestLostServerEndsTheStreamAndTheNextServerServes(t *testing.T) {
	t.Parallel()
	first, second := startServer(t, echoing("one")), startServer(t, echoing("two"))
	set := newServers(address(first), address(second))
	r := startXDS(t, XDSConfig{Servers: set})
	c := r.open(t, deltaPath)
	c.receive(3)
	first.CloseClientConnections()
	if got := c.status().code; got != "14" {
		t.Errorf("status %s, want 14", got)
	}
	r.logged(t, "[WARN]  xDS stream ended: address="+address(first))
	if got := set.failures(); !slices.Equal(got, []string{address(first)}) {
		t.Errorf("failed %v, want the first server", got)
	}
	if got := r.open(t, deltaPath).receive(3); got != "two" {
		t.Errorf("the next stream got %q, want the second server", got)
	}
}

func TestStreamWaitsForAServerThatCanBeReached(t *testing.T) {
	t.Parallel()
	srv := startServer(t, echoing("one"))
	set := newServers(testkit.ClosedAddress(t), address(srv))
	r := startXDS(t, XDSConfig{Servers: set})
	if got := r.open(t, deltaPath).receive(3); got != "one" {
		t.Errorf("got %q, want the second server", got)
	}
	r.logged(t, "[WARN]  moving to another Consul server: address="+address(srv)+` reason="connect to Consul server `)
}

func TestStreamWaitsForTheFirstAddressAndTheToken(t *testing.T) {
	t.Parallel()
	srv := startServer(t, echoing("one"))
	set, file := newServers(), &tokenFile{err: fs.ErrNotExist}
	r := startXDS(t, XDSConfig{Servers: set, Token: file.read})
	opened := make(chan string, 1)
	go func() { opened <- r.open(t, deltaPath).receive(10) }()
	r.logged(t, "read the task's token: file does not exist")
	file.set("", fs.ErrPermission)
	r.logged(t, "read the task's token: permission denied: run this container as user 5995")
	file.set("secret", nil)
	r.logged(t, "no address of a Consul server is known")
	set.set(address(srv))
	if got := <-opened; got != "one secret" {
		t.Errorf("got %q", got)
	}
}

func TestNonGRPCResponseNamesThePort(t *testing.T) {
	t.Parallel()
	srv := startServer(t, http.NotFound)
	r := startXDS(t, XDSConfig{Servers: newServers(address(srv))})
	if got := r.open(t, deltaPath).status(); got.code != "14" ||
		!strings.Contains(got.message, "HTTP status 404 Not Found: consulServers.grpc.port is not that of gRPC") {
		t.Errorf("status %+v", got)
	}
}

func TestServeEndsWithAnOpenStream(t *testing.T) {
	t.Parallel()
	srv := startServer(t, echoing("one"))
	r := startXDS(t, XDSConfig{Servers: newServers(address(srv))})
	streaming := r.open(t, deltaPath)
	streaming.receive(3)
	r.stop()
	select {
	case err := <-r.ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(testkit.Patience):
		t.Fatal("the stream holds the end up")
	}
}

func TestServeReportsAListenerThatFails(t *testing.T) {
	t.Parallel()
	l := testkit.ReservePort(t).Listen()
	l.Close()
	err := NewXDS(XDSConfig{Servers: newServers(), Log: hclog.NewNullLogger()}).Serve(t.Context(), l)
	if err == nil || !strings.HasPrefix(err.Error(), "accept xDS connections on 127.0.0.1:") {
		t.Errorf("got %v", err)
	}
}

// startTLSServer runs a server with a certificate for 127.0.0.1 and example.com, and
// returns its CA.
func startTLSServer(t *testing.T) (*httptest.Server, *x509.CertPool) {
	t.Helper()
	srv := httptest.NewUnstartedServer(echoing("one"))
	srv.EnableHTTP2 = true
	srv.Config.ErrorLog = hclog.NewNullLogger().StandardLogger(nil)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	pool := x509.NewCertPool()
	pool.AddCert(srv.Certificate())
	return srv, pool
}

func TestTLSVerifiesTheServer(t *testing.T) {
	t.Parallel()
	srv, pool := startTLSServer(t)
	for _, name := range []string{"", "example.com"} {
		secured := fixed(&tls.Config{RootCAs: pool, ServerName: name})
		r := startXDS(t, XDSConfig{Servers: newServers(address(srv)), TLS: secured})
		if got := r.open(t, deltaPath).receive(10); got != "one secret" {
			t.Errorf("server name %q: got %q", name, got)
		}
	}
}

func TestRefusedCertificateNamesTheRemedy(t *testing.T) {
	t.Parallel()
	srv, pool := startTLSServer(t)
	plain := testkit.ReservePort(t)
	l := plain.Listen()
	go func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			conn.Write([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0}) // as a gRPC server does: its empty settings
		}
	}()
	tests := map[string]struct {
		address string
		config  *tls.Config
		want    string
	}{
		"other CA": {
			address(srv), &tls.Config{RootCAs: x509.NewCertPool()},
			"correct the CA certificates (CONSUL_GRPC_CACERT_PEM or caCertFile) or tlsServerName",
		},
		"other name": {
			address(srv), &tls.Config{RootCAs: pool, ServerName: "other.internal"},
			"not other.internal: correct the CA",
		},
		"no TLS": {
			plain.String(), &tls.Config{RootCAs: pool},
			"correct consulServers.grpc.port or set consulServers.grpc.tls to false",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startXDS(t, XDSConfig{Servers: newServers(tc.address), TLS: fixed(tc.config)})
			r.try(t)
			r.logged(t, tc.want)
		})
	}
}

func TestStreamIsOutdated(t *testing.T) {
	t.Parallel()
	const first, second = "10.0.0.1:8502", "10.0.0.2:8502"
	tests := map[string]struct {
		// change happens three seconds after the stream's start.
		change func(*servers, *tokenFile)
		want   error
		after  time.Duration
	}{
		"new token":        {func(_ *servers, f *tokenFile) { f.set("other", nil) }, errTokenChanged, 7 * time.Second},
		"no token":         {func(_ *servers, f *tokenFile) { f.set("", errors.New("fault")) }, nil, time.Hour},
		"server removed":   {func(s *servers, _ *tokenFile) { s.set(second) }, errServerRemoved, 3 * time.Second},
		"other server now": {func(s *servers, _ *tokenFile) { s.set(second, first) }, nil, time.Hour},
		"no server known":  {func(s *servers, _ *tokenFile) { s.set() }, nil, time.Hour},
		"nothing":          {func(*servers, *tokenFile) {}, nil, time.Hour},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				set, file := newServers(first, second), &tokenFile{secret: "secret"}
				r := NewXDS(XDSConfig{Servers: set, Token: file.read, Log: hclog.NewNullLogger()})
				ctx, stop := context.WithTimeout(t.Context(), time.Hour)
				defer stop()
				start := time.Now()
				time.AfterFunc(3*time.Second, func() { tc.change(set, file) })
				err := r.outdated(ctx, &stream{address: first, token: "secret"})
				if took := time.Since(start); !errors.Is(err, tc.want) || took != tc.after {
					t.Errorf("%v after %s, want %v after %s", err, took, tc.want, tc.after)
				}
			})
		})
	}
}

func TestRemovedServerEndsItsStream(t *testing.T) {
	t.Parallel()
	first, second := startServer(t, echoing("one")), startServer(t, echoing("two"))
	set := newServers(address(first), address(second))
	r := startXDS(t, XDSConfig{Servers: set})
	c := r.open(t, deltaPath)
	c.receive(3)
	set.set(address(second))
	if got := c.status(); got != (status{"14", "the server is no longer one of the Consul servers"}) {
		t.Errorf("status %+v", got)
	}
	if got := set.failures(); len(got) != 0 {
		t.Errorf("failed %v, want none", got)
	}
	r.logged(t, fmt.Sprintf("[INFO]  ended the xDS stream, envoy opens another: address=%s", address(first)))
}
