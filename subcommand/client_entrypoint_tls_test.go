package subcommand

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// certificates makes a CA and a server's certificate, as consul makes them.
func certificates(t *testing.T) (dir, ca string) {
	t.Helper()
	dir = t.TempDir()
	for _, args := range [][]string{{"tls", "ca", "create"}, {"tls", "cert", "create", "-server"}} {
		cmd := exec.Command(testkit.RequireBinary(t, "consul"), args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "consul-agent-ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	return dir, string(text)
}

// https returns the servers' HTTP address behind TLS, and the certificate.
func (w *clientWorld) https(t *testing.T) (address, certificate string) {
	t.Helper()
	target, err := url.Parse("http://" + w.HTTPAddr)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(target))
	t.Cleanup(front.Close)
	return front.URL, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw}))
}

// TestClientWithTLS: the server takes no RPC without a certificate, and the
// agent has none before auto-encrypt; login and logout go to HTTPS.
func TestClientWithTLS(t *testing.T) {
	t.Parallel()
	dir, ca := certificates(t)
	w := newClientWorld(t, fmt.Sprintf(`
		tls {
			defaults { ca_file = "%[1]s/consul-agent-ca.pem" cert_file = "%[1]s/dc1-server-consul-0.pem" key_file = "%[1]s/dc1-server-consul-0-key.pem" verify_outgoing = true }
			internal_rpc { verify_incoming = true verify_server_hostname = true }
		}
		auto_encrypt { allow_tls = true }
	`, dir))
	address, httpsCA := w.https(t)
	s := w.task(t, "tls")
	// The environment of mesh-init names the file that this container writes.
	s.env = append(s.env, "CONSUL_CACERT="+filepath.Join(s.dir, "consul-ca-cert.pem"), "CONSUL_CACERT_PEM="+ca,
		"CONSUL_HTTPS_CACERT_PEM="+httpsCA)
	p := s.start(t, "-consul-http-addr", address)
	s.joined(t)
	for name, want := range map[string]string{"consul-ca-cert.pem": ca, "consul-https-ca-cert.pem": httpsCA} {
		if got, err := os.ReadFile(filepath.Join(s.dir, name)); err != nil || string(got) != strings.TrimSpace(want) {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
	s.m.says(http.StatusOK, allStopped)
	p.Signal(syscall.SIGTERM)
	exits(t, p, 0)
	s.wantNothing(t)
}

// TestClientThatDoesNotTrustTheServers: a refusal, and no agent.
func TestClientThatDoesNotTrustTheServers(t *testing.T) {
	t.Parallel()
	w := newClientWorld(t, "")
	address, _ := w.https(t)
	s := w.task(t, "distrust")
	s.env = append(s.env, "CONSUL_HTTPS_CACERT_PEM="+testkit.OtherCA)
	exits(t, s.start(t, "-consul-http-addr", address), 2)
	s.wantNothing(t)
}
