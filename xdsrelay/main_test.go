package xdsrelay

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// consul has ACLs and serves gRPC over TLS, too, with a certificate of roots.
var (
	consul *testkit.Consul
	roots  = x509.NewCertPool()
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "xdsrelay-test-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = start(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return testkit.Main(m, consul.Stop)
}

func start(dir string) error {
	hcl, err := testkit.ServeGRPCOverTLS(dir)
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		return err
	}
	if !roots.AppendCertsFromPEM(ca) {
		return errors.New("no CA certificate")
	}
	consul, err = testkit.StartConsul(testkit.ConsulOptions{ACL: true, HCL: hcl})
	return err
}

// serverTLS verifies consul by the name in its certificate.
func serverTLS() *tls.Config { return &tls.Config{RootCAs: roots, ServerName: "server.dc1.consul"} }
