package subcommand

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// TestAgentIsVerifiedByItsChain and not by its name, as in Envoy's own bootstrap.
func TestAgentIsVerifiedByItsChain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := testkit.WriteCertificates(dir, "another.example"); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	own, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		ca       string
		verifies bool
	}{"its CA": {string(own), true}, "another CA": {testkit.OtherCA, false}} {
		config, err := chainTLS(tt.ca)
		if err != nil {
			t.Fatal(err)
		}
		c, err := config()
		if err != nil {
			t.Fatal(err)
		}
		conn, err := tls.Dial("tcp", srv.Listener.Addr().String(), c)
		if err == nil {
			conn.Close()
		}
		if verifies := err == nil; verifies != tt.verifies {
			t.Errorf("%s verifies: %v, %v", name, verifies, err)
		}
	}
	if _, err := chainTLS("no certificate"); err == nil {
		t.Error("no error without a certificate")
	}
}
