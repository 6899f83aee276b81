package entrypoint

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
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
		{"consul-dataplane -config-file /consul/consul-dataplane.json", "", false},
		{"", "", false},
	} {
		got, ok := ConfigPath(strings.Fields(c.command))
		if got != c.want || ok != c.ok {
			t.Errorf("ConfigPath(%q) = %q, %v, want %q, %v", c.command, got, ok, c.want, c.ok)
		}
	}
}

func adminJSON(address, port string) string {
	return `{"admin":{"access_log_path":"/dev/null","address":{"socket_address":{"address":` + address + `,"port_value":` + port + `}}},"node":{}}`
}

func TestParseBootstrap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, bootstrap, want, wantErr string }{
		{"loopback", adminJSON(`"127.0.0.1"`, `19000`), "127.0.0.1:19000", ""},
		{"every address", adminJSON(`"0.0.0.0"`, `19000`), "127.0.0.1:19000", ""},
		{"IPv6", adminJSON(`"::1"`, `19001`), "[::1]:19001", ""},
		{"every IPv6 address", adminJSON(`"::"`, `19001`), "[::1]:19001", ""},
		{"own address", adminJSON(`"10.0.1.23"`, `19000`), "10.0.1.23:19000", ""},
		{"none", `{"node":{}}`, "", "want an IP address and a port"},
		{"pipe", `{"admin":{"address":{"pipe":{"path":"/tmp/x"}}}}`, "", "want an IP address and a port"},
		{"port 0", adminJSON(`"127.0.0.1"`, `0`), "", "want an IP address and a port"},
		{"port too high", adminJSON(`"127.0.0.1"`, `65536`), "", "parse bootstrap"},
		{"host name", adminJSON(`"localhost/x"`, `19000`), "", "want an IP address and a port"},
		{"YAML", "admin:\n  address: {}\n", "", "parse bootstrap"},
		{"empty", "", "", "parse bootstrap"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			proxy, err := parseBootstrap([]byte(c.bootstrap))
			if got := proxy.Admin; got != c.want || proxy.Gateway || (err == nil) != (c.wantErr == "") || (err != nil && !strings.Contains(err.Error(), c.wantErr)) {
				t.Errorf("got %+v, %v, want %q, error %q", proxy, err, c.want, c.wantErr)
			}
		})
	}
}

func FuzzParseBootstrap(f *testing.F) {
	f.Add([]byte(adminJSON(`"127.0.0.1"`, `19000`)))
	f.Add([]byte(adminJSON(`"::"`, `1`)))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, bootstrap []byte) {
		proxy, err := parseBootstrap(bootstrap)
		if err != nil {
			return
		}
		host, port, err := net.SplitHostPort(proxy.Admin)
		if n, perr := strconv.Atoi(port); err != nil || net.ParseIP(host) == nil || perr != nil || n < 1 || n > 65535 {
			t.Errorf("address %q is not an IP address and a port", proxy.Admin)
		}
	})
}

func TestReadBootstrapNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "b.json")
	for _, c := range []struct {
		command []string
		want    string
	}{
		{[]string{"envoy"}, "the command has no --config-path"},
		{[]string{"envoy", "-c", path + ".none"}, "no such file"},
		{[]string{"envoy", "-c", path}, "find envoy's admin address in " + path},
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
	drain := Drainer(s.Listener.Addr().String())
	if err := drain(t.Context()); err != nil {
		t.Error(err)
	}
	if got, want := strings.Join(asked, ";"), "POST /drain_listeners?inboundonly&graceful&skip_exit"; got != want {
		t.Errorf("asked %q, want %q", got, want)
	}
	status = http.StatusBadRequest
	if err := drain(t.Context()); err == nil || err.Error() != "drain inbound listeners: envoy answered 400 Bad Request: said envoy" {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := drain(ctx); err == nil {
		t.Error("no error after the context's end")
	}
}
