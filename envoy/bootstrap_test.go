package envoy

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func adminJSON(address, port string) string {
	return `{"admin":{"access_log_path":"/dev/null","address":{"socket_address":{"address":` + address +
		`,"port_value":` + port + `}}},"node":{}}`
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
			testkit.ErrorContains(t, err, c.wantErr)
			if want := (Proxy{Admin: c.want}); proxy != want {
				t.Errorf("got %+v, want %+v", proxy, want)
			}
		})
	}
}

// TestKindOfAProxy: the cluster of a gateway is its kind, which a service may be named, too.
func TestKindOfAProxy(t *testing.T) {
	t.Parallel()
	const address = `"admin":{"address":{"socket_address":{"address":"127.0.0.1","port_value":19000}}}`
	for _, c := range []struct {
		id, cluster string
		gateway     bool
	}{
		{"edge-0f9de17a", "mesh-gateway", true},
		{"mesh-gateway-0f9de17a", "mesh-gateway", true},
		{"mesh-gateway-0f9de17a-sidecar-proxy", "mesh-gateway", false},
		{"web-0f9de17a-sidecar-proxy", "web", false},
	} {
		p, err := parseBootstrap(fmt.Appendf(nil, `{"node":{"id":%q,"cluster":%q},%s}`, c.id, c.cluster, address))
		if err != nil || p.Gateway != c.gateway {
			t.Errorf("%s of %s: gateway %t, %v; want %t", c.id, c.cluster, p.Gateway, err, c.gateway)
		}
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
		if a, err := netip.ParseAddrPort(proxy.Admin); err != nil || a.Port() == 0 {
			t.Errorf("address %q is not an IP address and a port: %v", proxy.Admin, err)
		}
	})
}
