package consulutil

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// rotated returns a CA with the certificate of a server at 127.0.0.1.
func rotated(t *testing.T) (ca []byte, server tls.Certificate) {
	t.Helper()
	dir := t.TempDir()
	err := testkit.WriteCertificates(dir, "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	if ca, err = os.ReadFile(filepath.Join(dir, "ca.pem")); err != nil {
		t.Fatal(err)
	}
	server, err = tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	return ca, server
}

// The servers and the file change to another CA while the task runs.
func TestCAFileIsReadForEachConnection(t *testing.T) {
	t.Parallel()
	oldCA, oldServer := rotated(t)
	newCA, newServer := rotated(t)
	f := newFleet(t, false, nil)
	serve := func(certificate tls.Certificate) *httptest.Server {
		s := httptest.NewUnstartedServer(answer(200, `"x"`))
		s.Listener.Close()
		s.Listener = listenAt(t, hostPort(address(1), f.port))
		s.EnableHTTP2 = true
		s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
		s.StartTLS()
		t.Cleanup(s.Close)
		return s
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	write := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(oldCA)
	c := f.config("exec=false") // so that the address is the name
	c.HTTP.HTTPS, c.HTTP.CACertFile = true, file
	servers := f.inOrder(t, ServersOptions{Config: c})
	client := newClient(t, Options{Servers: servers})
	server := serve(oldServer)
	try := func(when string, want retry.Class, fails bool) {
		t.Helper()
		err := leader(client)
		if (err != nil) != fails {
			t.Errorf("%s: %v", when, err)
		}
		if fails && Classify(err) != want {
			t.Errorf("%s: class %v of %v", when, Classify(err), err)
		}
	}
	try("before", 0, false)
	server.Close()
	servers.transport.next.(*http.Transport).CloseIdleConnections()
	serve(newServer)
	try("with the old CA", retry.Permanent, true)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	try("while the file is replaced", retry.Permanent, true)
	write([]byte("-----BEGIN CERTIFICATE-----\nhalf"))
	try("while the file is written", retry.Permanent, true)
	write(newCA)
	try("with the new CA", 0, false)
}

// listenAt listens at an address that another listener had a moment ago.
func listenAt(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
