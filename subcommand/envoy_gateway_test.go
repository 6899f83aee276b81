package subcommand

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestEnvoyEntrypointWaitsForAGatewaysCallers: the task has no application that runs.
func TestEnvoyEntrypointWaitsForAGatewaysCallers(t *testing.T) {
	t.Parallel()
	m := newMetadata(t)
	m.says(200, stopped)
	asked := make(chan struct{}, 1000)
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/stats") {
			asked <- struct{}{}
			fmt.Fprintln(w, "tcp.mesh_gateway_local.default.downstream_cx_total: 7")
		}
	}))
	defer admin.Close()
	path := filepath.Join(t.TempDir(), "bootstrap.json")
	text := fmt.Sprintf(`{"node":{"cluster":"mesh-gateway"},"admin":{"address":{"socket_address":{"address":"127.0.0.1","port_value":%s}}}}`,
		admin.URL[strings.LastIndexByte(admin.URL, ':')+1:])
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := wrapEnvoy(t, m.env(), []string{"-stop-timeout", "60s"}, worker("--config-path", path)...)
	p.Expect("ready")
	start := time.Now()
	p.Signal(syscall.SIGTERM)
	p.Expect("got terminated")
	if waited := time.Since(start); waited < 1250*time.Millisecond || len(asked) < 2 {
		t.Errorf("TERM after %s and %d looks at Envoy", waited, len(asked))
	}
	exits(t, p, 55)
}
