package entrypoint

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/envoy"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

const (
	bootstrapText = `{
  "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": %d}}},
  "static_resources": {
    "listeners": [%s, %s],
    "clusters": [{"name": "app", "connect_timeout": "1s", "load_assignment": {"cluster_name": "app", "endpoints": [{"lb_endpoints": [
      {"endpoint": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": %d}}}}]}]}}]
  }
}`
	listenerText = `{"name": %[1]q, "traffic_direction": %[1]q,
      "address": {"socket_address": {"address": "127.0.0.1", "port_value": %[2]d}},
      "filter_chains": [{"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": %[1]q,
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "app"}}]}]},
        "http_filters": [{"name": "envoy.filters.http.router", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]
      }}]}]}`
)

// realEnvoy is a running Envoy in front of a test server.
type realEnvoy struct{ admin, inbound, outbound string }

// startEnvoy starts a real Envoy in front of the application, and waits until
// it serves. Its drain time is a second.
func startEnvoy(t *testing.T, app *httptest.Server) realEnvoy {
	t.Helper()
	bin := testkit.RequireBinary(t, "envoy")
	ports, err := testkit.FreePorts(3)
	if err != nil {
		t.Fatal(err)
	}
	var appPort int
	fmt.Sscanf(app.Listener.Addr().String(), "127.0.0.1:%d", &appPort)
	bootstrap := fmt.Sprintf(bootstrapText, ports[0],
		fmt.Sprintf(listenerText, "INBOUND", ports[1]), fmt.Sprintf(listenerText, "OUTBOUND", ports[2]), appPort)
	path := filepath.Join(t.TempDir(), "bootstrap.json")
	if err := os.WriteFile(path, []byte(bootstrap), 0o600); err != nil {
		t.Fatal(err)
	}
	command := []string{bin, "--config-path", path, "--disable-hot-restart",
		"--concurrency", "1", "--log-level", "error",
		"--drain-strategy", "immediate", "--drain-time-s", "1"}
	testkit.StartProcess(t, testkit.ProcessOptions{Quiet: true}, command...)
	proxy, err := ReadBootstrap(command)
	if err != nil {
		t.Fatal(err)
	}
	url := func(port int) string { return fmt.Sprintf("http://127.0.0.1:%d/", port) }
	e := realEnvoy{admin: proxy.Admin, inbound: url(ports[1]), outbound: url(ports[2])}
	testkit.Eventually(t, "envoy serves", func() bool {
		for _, u := range []string{e.inbound, e.outbound} {
			if status, _, err := get(&http.Transport{}, u); err != nil || status != http.StatusOK {
				return false
			}
		}
		return true
	})
	return e
}

// get reports whether the server wants the connection closed.
func get(tr *http.Transport, url string) (status int, closes bool, err error) {
	resp, err := (&http.Client{Transport: tr, Timeout: testkit.Patience}).Get(url)
	if err != nil {
		return 0, false, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Close, err
}

// Draining a real Envoy: it asks peers with an open connection to close it, completes
// requests under way, accepts new connections even after its drain time, and does not
// drain outbound listeners.
func TestRealEnvoyDrainsInboundOnlyAndKeepsAccepting(t *testing.T) {
	t.Parallel()
	release, arrived := make(chan struct{}), make(chan struct{})
	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "slow") {
			close(arrived)
			<-release
		}
	}))
	defer app.Close()
	e := startEnvoy(t, app)
	check := func(what string, tr *http.Transport, url string, wantClose bool) {
		t.Helper()
		if got, want := fmt.Sprint(get(tr, url)), fmt.Sprint(http.StatusOK, wantClose, nil); got != want {
			t.Errorf("%s: status, close and error %s, want %s", what, got, want)
		}
	}
	kept, keptOut := &http.Transport{}, &http.Transport{}
	check("inbound before the drain", kept, e.inbound, false)
	check("outbound before the drain", keptOut, e.outbound, false)
	slow := make(chan error, 1)
	go func() {
		status, _, err := get(&http.Transport{}, e.inbound+"slow")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d", status)
		}
		slow <- err
	}()
	<-arrived

	for range 2 { // the second request changes nothing
		if err := Drainer(envoy.Proxy{Admin: e.admin})(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	check("kept inbound connection", kept, e.inbound, true)
	check("kept outbound connection", keptOut, e.outbound, false)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for range 20 { // for twice the drain time
		in, out := &http.Transport{}, &http.Transport{}
		check("new inbound connection", in, e.inbound, true)
		check("new outbound connection", out, e.outbound, false)
		in.CloseIdleConnections()
		out.CloseIdleConnections()
		<-tick.C
	}
	close(release)
	if err := <-slow; err != nil {
		t.Errorf("request under way: %v", err)
	}
}

// Consul marks the listeners of an API gateway as outbound. Connections that are kept
// through them end, too, and new ones are accepted.
func TestRealEnvoyDrainsAllListenersOfAGateway(t *testing.T) {
	t.Parallel()
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer app.Close()
	e := startEnvoy(t, app)
	kept := &http.Transport{}
	if got, want := fmt.Sprint(get(kept, e.outbound)), fmt.Sprint(http.StatusOK, false, nil); got != want {
		t.Fatalf("before the drain: status, close and error %s, want %s", got, want)
	}
	if err := Drainer(envoy.Proxy{Admin: e.admin, Gateway: true})(t.Context()); err != nil {
		t.Fatal(err)
	}
	for what, tr := range map[string]*http.Transport{"kept connection": kept, "new connection": {}} {
		if got, want := fmt.Sprint(get(tr, e.outbound)), fmt.Sprint(http.StatusOK, true, nil); got != want {
			t.Errorf("%s: status, close and error %s, want %s", what, got, want)
		}
	}
}
