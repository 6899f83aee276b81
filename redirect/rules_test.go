package redirect_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/redirect"
)

func lines(tables []redirect.Table) [][]string {
	var out [][]string
	for _, t := range tables {
		out = append(out, t.Lines())
	}
	return out
}

func TestDefaultsRedirectAllTCPOfIPv4(t *testing.T) {
	t.Parallel()
	settings, err := redirect.NewSettings(config.TransparentProxy{Enabled: true}, bootstrap.Proxy{}, 20000, 22000)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{
		":PREROUTING",
		"-A PREROUTING -p tcp -j CONSUL_PROXY_INBOUND",
		":OUTPUT",
		"-A OUTPUT -p tcp -j CONSUL_PROXY_OUTPUT",
		":POSTROUTING",
		":CONSUL_PROXY_INBOUND",
		"-A CONSUL_PROXY_INBOUND -p tcp --dport 22000 -j RETURN",
		"-A CONSUL_PROXY_INBOUND -p tcp -j CONSUL_PROXY_IN_REDIRECT",
		":CONSUL_PROXY_IN_REDIRECT",
		"-A CONSUL_PROXY_IN_REDIRECT -p tcp -j REDIRECT --to-ports 20000",
		":CONSUL_PROXY_OUTPUT",
		"-A CONSUL_PROXY_OUTPUT -m owner --uid-owner 5995 -j RETURN",
		"-A CONSUL_PROXY_OUTPUT -d 127.0.0.0/8 -j RETURN",
		"-A CONSUL_PROXY_OUTPUT -d 169.254.170.2/32 -j RETURN",
		"-A CONSUL_PROXY_OUTPUT -m owner --uid-owner 5996 -j RETURN",
		"-A CONSUL_PROXY_OUTPUT -j CONSUL_PROXY_REDIRECT",
		":CONSUL_PROXY_REDIRECT",
		"-A CONSUL_PROXY_REDIRECT -p tcp -j REDIRECT --to-ports 15001",
		":CONSUL_DNS_REDIRECT",
	}}
	if diff := cmp.Diff(want, lines(redirect.Tables(settings))); diff != "" {
		t.Error(diff)
	}
}

func TestEverySettingHasARule(t *testing.T) {
	t.Parallel()
	settings, err := redirect.NewSettings(config.TransparentProxy{
		Enabled:              true,
		ExcludeInboundPorts:  []int{9000, 22},
		ExcludeOutboundPorts: []int{5432, 25},
		Prefixes: []netip.Prefix{
			netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.1/32"),
			netip.MustParsePrefix("2001:db8:1::/48"),
		},
		UIDs:      []config.UIDs{{First: 1000, Last: 1000}, {First: 2000, Last: 2999}},
		ConsulDNS: config.ConsulDNS{Enabled: true},
	}, bootstrap.Proxy{
		Config: map[string]any{
			"bind_port":                  float64(21000),
			"envoy_prometheus_bind_addr": "0.0.0.0:9102",
			"envoy_stats_bind_addr":      "0.0.0.0:9103",
		},
		OutboundListenerPort: 15999, ExposedPorts: []int{21500, 9000},
	}, 20000, 22000)
	if err != nil {
		t.Fatal(err)
	}
	settings.IPv6 = true
	inbound := []string{
		":CONSUL_PROXY_INBOUND",
		"-A CONSUL_PROXY_INBOUND -p tcp --dport 22 -j RETURN",
		"-A CONSUL_PROXY_INBOUND -p tcp --dport 9000 -j RETURN",
		"-A CONSUL_PROXY_INBOUND -p tcp --dport 9102 -j RETURN",
		"-A CONSUL_PROXY_INBOUND -p tcp --dport 9103 -j RETURN",
		"-A CONSUL_PROXY_INBOUND -p tcp --dport 21500 -j RETURN",
		"-A CONSUL_PROXY_INBOUND -p tcp --dport 22000 -j RETURN",
		"-A CONSUL_PROXY_INBOUND -p tcp -j CONSUL_PROXY_IN_REDIRECT",
		":CONSUL_PROXY_IN_REDIRECT",
		"-A CONSUL_PROXY_IN_REDIRECT -p tcp -j REDIRECT --to-ports 21000",
		":CONSUL_PROXY_OUTPUT",
		"-A CONSUL_PROXY_OUTPUT -m owner --uid-owner 5995 -j RETURN",
	}
	want := [][]string{
		concat([]string{
			":PREROUTING",
			"-A PREROUTING -p tcp -j CONSUL_PROXY_INBOUND",
			":OUTPUT",
			"-A OUTPUT -d 127.0.0.1/32 -p udp --dport 53 -j CONSUL_DNS_REDIRECT",
			"-A OUTPUT -d 127.0.0.1/32 -p tcp --dport 53 -j CONSUL_DNS_REDIRECT",
			"-A OUTPUT -p tcp -j CONSUL_PROXY_OUTPUT",
			":POSTROUTING",
		}, inbound, []string{
			"-A CONSUL_PROXY_OUTPUT -d 127.0.0.0/8 -j RETURN",
			"-A CONSUL_PROXY_OUTPUT -p tcp --dport 25 -j RETURN",
			"-A CONSUL_PROXY_OUTPUT -p tcp --dport 5432 -j RETURN",
			"-A CONSUL_PROXY_OUTPUT -d 169.254.170.2/32 -j RETURN",
			"-A CONSUL_PROXY_OUTPUT -d 10.0.0.0/8 -j RETURN",
			"-A CONSUL_PROXY_OUTPUT -d 192.0.2.1/32 -j RETURN",
			"-A CONSUL_PROXY_OUTPUT -m owner --uid-owner 5996 -j RETURN",
			"-A CONSUL_PROXY_OUTPUT -m owner --uid-owner 1000 -j RETURN",
			"-A CONSUL_PROXY_OUTPUT -m owner --uid-owner 2000-2999 -j RETURN",
			"-A CONSUL_PROXY_OUTPUT -j CONSUL_PROXY_REDIRECT",
			":CONSUL_PROXY_REDIRECT",
			"-A CONSUL_PROXY_REDIRECT -p tcp -j REDIRECT --to-ports 15999",
			":CONSUL_DNS_REDIRECT",
			"-A CONSUL_DNS_REDIRECT -d 127.0.0.1/32 -p udp --dport 53 -j DNAT --to-destination 127.0.0.1:8600",
			"-A CONSUL_DNS_REDIRECT -d 127.0.0.1/32 -p tcp --dport 53 -j DNAT --to-destination 127.0.0.1:8600",
		}),
		concat([]string{
			":PREROUTING",
			"-A PREROUTING -p tcp -j CONSUL_PROXY_INBOUND",
			":OUTPUT",
			"-A OUTPUT -p tcp -j CONSUL_PROXY_OUTPUT",
			":POSTROUTING",
		}, inbound, []string{
			"-A CONSUL_PROXY_OUTPUT -d ::1/128 -j RETURN",
			"-A CONSUL_PROXY_OUTPUT -p tcp --dport 25 -j RETURN",
			"-A CONSUL_PROXY_OUTPUT -p tcp --dport 5432 -j RETURN",
			"-A CONSUL_PROXY_OUTPUT -d 2001:db8:1::/48 -j RETURN",
			"-A CONSUL_PROXY_OUTPUT -m owner --uid-owner 5996 -j RETURN",
			"-A CONSUL_PROXY_OUTPUT -m owner --uid-owner 1000 -j RETURN",
			"-A CONSUL_PROXY_OUTPUT -m owner --uid-owner 2000-2999 -j RETURN",
			"-A CONSUL_PROXY_OUTPUT -j CONSUL_PROXY_REDIRECT",
			":CONSUL_PROXY_REDIRECT",
			"-A CONSUL_PROXY_REDIRECT -p tcp -j REDIRECT --to-ports 15999",
			":CONSUL_DNS_REDIRECT",
		}),
	}
	if diff := cmp.Diff(want, lines(redirect.Tables(settings))); diff != "" {
		t.Error(diff)
	}
}

func concat(parts ...[]string) (out []string) {
	for _, part := range parts {
		out = append(out, part...)
	}
	return out
}

func TestInvalidPortOfTheProxyIsNamed(t *testing.T) {
	t.Parallel()
	_, err := redirect.NewSettings(config.TransparentProxy{},
		bootstrap.Proxy{Config: map[string]any{"bind_port": "http"}}, 0, 0)
	testkit.WantError[*retry.PermanentError](t, err,
		"redirect traffic to the proxy: generate Envoy bootstrap: invalid values\n"+
			"  proxy.config.bind_port: must be a port, not \"http\"")
}

func TestNamesAndAddressesOfUpstreams(t *testing.T) {
	t.Parallel()
	addressed, hosts, err := redirect.NameUpstreams([]config.Upstream{
		{DestinationName: "api", LocalBindPort: 80},
		{DestinationName: "db", LocalBindPort: 5432, Datacenter: "dc2"},
		{DestinationName: "cache", LocalBindPort: 6379, LocalBindAddress: "127.0.0.1"},
		{DestinationName: "nearest", DestinationType: "prepared_query", LocalBindPort: 80},
	})
	if err != nil {
		t.Fatal(err)
	}
	var addresses []string
	for _, u := range addressed {
		addresses = append(addresses, u.LocalBindAddress)
	}
	if diff := cmp.Diff([]string{"127.65.0.1", "127.65.0.2", "127.0.0.1", "127.65.0.4"}, addresses); diff != "" {
		t.Error(diff)
	}
	want := []string{
		"127.65.0.1 api api.virtual.consul", "127.65.0.2 db", "127.0.0.1 cache cache.virtual.consul",
		"127.65.0.4 nearest",
	}
	if diff := cmp.Diff(want, hosts); diff != "" {
		t.Error(diff)
	}
}

func TestAddressesOfUpstreamsDifferBeyondOneOctet(t *testing.T) {
	t.Parallel()
	upstreams := make([]config.Upstream, 300)
	for i := range upstreams {
		upstreams[i] = config.Upstream{DestinationName: string(rune('a' + i)), LocalBindPort: 80}
	}
	addressed, _, err := redirect.NameUpstreams(upstreams)
	if err != nil {
		t.Fatal(err)
	}
	unique := map[netip.Addr]bool{}
	for _, u := range addressed {
		unique[netip.MustParseAddr(u.LocalBindAddress)] = true
	}
	if last := addressed[299].LocalBindAddress; len(unique) != 300 || last != "127.65.1.44" {
		t.Errorf("got %d addresses, the last %s; want 300, the last 127.65.1.44", len(unique), last)
	}
	if upstreams[0].LocalBindAddress != "" {
		t.Error("the caller's upstreams were changed")
	}
}

func TestUpstreamsThatCannotBeNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		upstreams []config.Upstream
		want      string
	}{
		{
			"same name", []config.Upstream{{DestinationName: "api"}, {DestinationName: "api", Datacenter: "dc2"}},
			`proxy.namedUpstreams: proxy.upstreams[1]: proxy.upstreams[0] has the same destinationName "api": only ` +
				`one of them can have the name`,
		},
		{
			"blank", []config.Upstream{{DestinationName: "a b"}},
			`proxy.namedUpstreams: proxy.upstreams[0]: destinationName "a b" cannot be a name in a hosts file`,
		},
		{
			"address", []config.Upstream{{DestinationName: "api", LocalBindAddress: "localhost"}},
			`proxy.namedUpstreams: proxy.upstreams[0]: localBindAddress "localhost" is not an IP address`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := redirect.NameUpstreams(c.upstreams)
			testkit.WantError[*exit.UsageError](t, err, c.want)
		})
	}
}
