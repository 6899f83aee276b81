package relay

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// server has ACLs and serves gRPC over TLS, too, with a certificate of roots. It starts with
// the first test that wants it: fuzzing does not.
var (
	server = sync.OnceValues(start)
	roots  = x509.NewCertPool()
	stop   = func() {}
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m, func() { stop() })) }

func start() (*testkit.Consul, error) {
	dir, err := os.MkdirTemp("", "envoy-test-")
	if err != nil {
		return nil, err
	}
	stop = func() { os.RemoveAll(dir) }
	hcl, err := testkit.ServeGRPCOverTLS(dir)
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		return nil, err
	}
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("no CA certificate")
	}
	consul, err := testkit.StartConsul(testkit.ConsulOptions{ACL: true, HCL: hcl})
	stop = func() {
		consul.Stop()
		os.RemoveAll(dir)
	}
	return consul, err
}

// requireServer returns the server, or ends the test.
func requireServer(t testing.TB) *testkit.Consul {
	t.Helper()
	consul, err := server()
	if err != nil {
		t.Fatal(err)
	}
	return consul.Require(t)
}

// serverTLS verifies the server by the name in its certificate.
func serverTLS() *tls.Config { return &tls.Config{RootCAs: roots, ServerName: "server.dc1.consul"} }
