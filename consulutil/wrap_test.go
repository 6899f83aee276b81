package consulutil

import (
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// TestNewClientWrap: every request goes through the wrapper, which may let it
// pass or hold it back.
func TestNewClientWrap(t *testing.T) {
	t.Parallel()
	address, token := record(t)
	held := errors.New("held back")
	var seen []string
	c := newClient(t, Options{Address: address, Token: "x", Wrap: func(next http.RoundTripper) http.RoundTripper {
		return testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
			seen = append(seen, r.Method)
			if r.Method != http.MethodGet {
				return nil, held
			}
			return next.RoundTrip(r)
		})
	}})
	if _, _, err := c.ACL().TokenReadSelf(nil); err != nil || token() != "x" {
		t.Fatal(err)
	}
	err := c.Agent().CheckDeregister("x")
	if !errors.Is(err, held) || Classify(err) != retry.NotYet {
		t.Errorf("got %v, want what the wrapper said", err)
	}
	if len(seen) != 2 {
		t.Errorf("seen %q", seen)
	}
}

// TestNewClientCAPEM: the text goes before a file of the environment.
func TestNewClientCAPEM(t *testing.T) {
	t.Setenv("CONSUL_CACERT", "/nonexistent/ca.pem")
	server := httptest.NewTLSServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("{}")) }))
	t.Cleanup(server.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	if _, _, err := newClient(t, Options{Address: server.URL, CAPEM: ca}).ACL().TokenReadSelf(nil); err != nil {
		t.Error(err)
	}
	_, _, err := newClient(t, Options{Address: server.URL, CAPEM: testkit.OtherCA}).ACL().TokenReadSelf(nil)
	if Classify(err) != retry.Permanent {
		t.Errorf("with another CA: %v", err)
	}
}
