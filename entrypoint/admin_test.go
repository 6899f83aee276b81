package entrypoint

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/envoy"
)

func TestConfigPath(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		command, want string
		ok            bool
	}{
		{"envoy --config-path /consul/envoy-bootstrap.json", "/consul/envoy-bootstrap.json", true},
		{"envoy -c b.json -l debug", "b.json", true},
		{"envoy --config-path=b.json", "b.json", true},
		{"envoy -c=b.json", "b.json", true},
		{"envoy -c a.json -c b.json", "b.json", true},
		{"envoy --config-path", "", false},
		{"envoy --config-yaml {}", "", false},
		{"consul-dataplane -config-file /consul/consul-dataplane.json", "/consul/consul-dataplane.json", true},
		{"consul-dataplane --config-file=d.json -log-level debug", "d.json", true},
		{"consul-dataplane -config-file", "", false},
		{"", "", false},
	} {
		got, ok := ConfigPath(strings.Fields(c.command))
		if got != c.want || ok != c.ok {
			t.Errorf("ConfigPath(%q) = %q, %v, want %q, %v", c.command, got, ok, c.want, c.ok)
		}
	}
}

func TestReadBootstrapNamesMissingFields(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "b.json")
	for _, c := range []struct {
		command []string
		want    string
	}{
		{[]string{"envoy"}, "the command has no --config-path and no -config-file"},
		{[]string{"envoy", "-c", path + ".none"}, "no such file"},
		{[]string{"envoy", "-c", path}, "find envoy's admin address: " + path},
	} {
		if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadBootstrap(c.command); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want %q", c.command, err, c.want)
		}
	}
}

func TestDrainer(t *testing.T) {
	t.Parallel()
	var asked []string
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.String())
		w.WriteHeader(status)
		w.Write([]byte("said envoy\n"))
	}))
	defer s.Close()
	proxy := envoy.Proxy{Admin: s.Listener.Addr().String()}
	drain := Drainer(proxy)
	if err := drain(t.Context()); err != nil {
		t.Error(err)
	}
	proxy.Gateway = true
	if err := Drainer(proxy)(t.Context()); err != nil {
		t.Error(err)
	}
	if got, want := strings.Join(asked, ";"),
		"POST /drain_listeners?inboundonly&graceful&skip_exit;POST /drain_listeners?graceful&skip_exit"; got != want {
		t.Errorf("asked %q, want %q", got, want)
	}
	status = http.StatusBadRequest
	if err := drain(t.Context()); err == nil ||
		err.Error() != "drain inbound listeners: envoy answered 400 Bad Request: said envoy" {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := drain(ctx); err == nil {
		t.Error("no error after the context's end")
	}
}
