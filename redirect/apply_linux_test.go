package redirect_test

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/redirect"
)

// An ordinary user of a container.
const application = 1000

// tables returns the rules of a task with exclusions of each kind.
func tables(t *testing.T) []redirect.Table {
	t.Helper()
	settings, err := redirect.NewSettings(config.TransparentProxy{
		Enabled:              true,
		ExcludeInboundPorts:  []int{9090},
		ExcludeOutboundPorts: []int{5432},
		Prefixes: []netip.Prefix{
			netip.MustParsePrefix("10.9.1.0/24"), netip.MustParsePrefix("fd09:1::/64"),
		},
		UIDs:      []config.UIDs{{First: 1400, Last: 1499}, {First: 1600, Last: 1600}},
		ConsulDNS: config.ConsulDNS{Enabled: true},
	}, bootstrap.Proxy{}, 20000, 22000)
	check(t, err)
	settings.IPv6, err = redirect.HasIPv6()
	check(t, err)
	if !settings.IPv6 {
		t.Fatal("the namespace has IPv6, and HasIPv6 does not report it")
	}
	return redirect.Tables(settings)
}

func TestOutboundConnections(t *testing.T) {
	t.Parallel()
	n := newNetworks(t)
	listenProxy(t, ":15001")
	listen(t, "127.0.0.1:8080", "application")
	listen(t, "[::1]:8080", "application")
	listen(t, "127.0.0.1:8600", "DNS over TCP")
	listenUDP(t, "127.0.0.1:8600", "DNS over UDP")
	n.want("outside", application, "tcp", outsideIPv4+":80")
	check(t, redirect.Apply(tables(t)))

	for _, address := range []string{outsideIPv4 + ":80", "198.51.100.7:443", taskIPv4 + ":8080", "[" + outsideIPv6 +
		"]:80", "[2001:db8::1]:443"} {
		n.want("proxy for "+address, application, "tcp", address)
		n.want("proxy for "+address, 0, "tcp", address)
	}
	for _, uid := range []int{5995, 5996, 1400, 1450, 1499, 1600} {
		n.want("outside", uid, "tcp", outsideIPv4+":80")
		n.want("outside", uid, "tcp", "["+outsideIPv6+"]:80")
	}
	for _, uid := range []int{1399, 1500, 5994, 5997} {
		n.want("proxy for "+outsideIPv4+":80", uid, "tcp", outsideIPv4+":80")
		n.want("proxy for ["+outsideIPv6+"]:80", uid, "tcp", "["+outsideIPv6+"]:80")
	}
	for _, address := range []string{outsideIPv4 + ":5432", "10.9.1.1:80", "169.254.170.2:80", "[" + outsideIPv6 +
		"]:5432", "[fd09:1::1]:80"} {
		n.want("outside", application, "tcp", address)
	}
	listen(t, "127.65.0.1:8080", "upstream")
	n.want("upstream", application, "tcp", "127.65.0.1:8080")
	n.want("application", application, "tcp", "127.0.0.1:8080")
	n.want("application", application, "tcp", "[::1]:8080")
	n.want("DNS over TCP", application, "tcp", "127.0.0.1:53")
	n.want("DNS over UDP", application, "udp", "127.0.0.1:53")
}

func TestInboundConnections(t *testing.T) {
	t.Parallel()
	n := newNetworks(t)
	listen(t, ":20000", "proxy")
	listen(t, ":22000", "readiness")
	listen(t, ":8080", "application")
	listen(t, ":9090", "metrics")
	n.wantFromOutside("application", taskIPv4+":8080")
	check(t, redirect.Apply(tables(t)))
	for _, host := range []string{taskIPv4, "[" + taskIPv6 + "]"} {
		n.wantFromOutside("proxy", host+":8080")
		n.wantFromOutside("proxy", host+":20000")
		n.wantFromOutside("proxy", host+":1")
		n.wantFromOutside("metrics", host+":9090")
		n.wantFromOutside("readiness", host+":22000")
	}
}

// TestOutboundIPv6NeverBypassesTheProxy: where the proxy listens for outbound connections
// at 127.0.0.1 only, those of IPv6 are refused, unless all of them are excluded.
func TestOutboundIPv6NeverBypassesTheProxy(t *testing.T) {
	t.Parallel()
	n := newNetworks(t)
	listen(t, "127.0.0.1:15001", "outbound")
	listen(t, ":20000", "proxy")
	for _, tt := range []struct {
		exclude   []netip.Prefix
		redirects bool
		want      string
	}{
		{nil, true, "dial tcp [" + outsideIPv6 + "]:80: connect: connection refused"},
		{[]netip.Prefix{netip.MustParsePrefix("::/0")}, false, "outside"},
	} {
		settings, err := redirect.NewSettings(config.TransparentProxy{Enabled: true, Prefixes: tt.exclude},
			bootstrap.Proxy{}, 20000, 0)
		check(t, err)
		settings.IPv6 = true
		check(t, redirect.Apply(redirect.Tables(settings)))
		if got := settings.RedirectsIPv6(); got != tt.redirects {
			t.Errorf("without %v, RedirectsIPv6 is %v", tt.exclude, got)
		}
		n.want("outbound", application, "tcp", outsideIPv4+":80")
		n.want(tt.want, application, "tcp", "["+outsideIPv6+"]:80")
		n.wantFromOutside("proxy", "["+taskIPv6+"]:8080")
	}
}

func TestLoopbackAddressDoesNotCountAsIPv6(t *testing.T) {
	t.Parallel()
	requireRoot(t)
	runtime.LockOSThread() // never unlocked, as in newNetworks
	newNamespace(t)
	if has, err := redirect.HasIPv6(); err != nil || has {
		t.Errorf("%v, %v", has, err)
	}
}

func TestIPv6IsUnchangedWithoutIP6Tables(t *testing.T) {
	t.Parallel()
	n := newNetworks(t)
	listen(t, ":15001", "proxy")
	check(t, redirect.Apply(tables(t)[:1]))
	n.want("proxy", application, "tcp", outsideIPv4+":80")
	n.want("outside", application, "tcp", "["+outsideIPv6+"]:80")
}

func TestSecondApplicationConverges(t *testing.T) {
	t.Parallel()
	newNetworks(t)
	check(t, redirect.Apply(tables(t)))
	first := ruleset(t)
	if len(first) < 40 {
		t.Fatalf("only %d chains and rules", len(first))
	}
	check(t, redirect.Apply(tables(t)))
	wantRuleset(t, first)

	// What an earlier version or other settings left.
	other, err := redirect.NewSettings(config.TransparentProxy{UIDs: []config.UIDs{{First: 7, Last: 7}}},
		bootstrap.Proxy{}, 1, 0)
	check(t, err)
	check(t, redirect.Apply(redirect.Tables(other)))
	if slices.EqualFunc(first, ruleset(t), bytes.Equal) {
		t.Fatal("other settings made the same rules")
	}
	check(t, redirect.Apply(tables(t)))
	wantRuleset(t, first)
}

func TestRefusedRulesChangeNothing(t *testing.T) {
	t.Parallel()
	newNetworks(t)
	check(t, redirect.Apply(tables(t)))
	before := ruleset(t)
	broken := tables(t)
	broken[1].Chains[0].Rules = append(broken[1].Chains[0].Rules, redirect.Rule{Jump: "NO_SUCH_CHAIN"})
	testkit.WantError[*retry.PermanentError](t, redirect.Apply(broken),
		"redirect traffic to the proxy: no such file or directory: "+
			"transparentProxy needs a host whose kernel has nf_tables with NAT, such as Amazon Linux 2023 or "+
			"Bottlerocket")
	wantRuleset(t, before)
}

func TestRemoveLeavesRulesOfOthers(t *testing.T) {
	t.Parallel()
	n := newNetworks(t)
	conn, err := nftables.New()
	check(t, err)
	conn.AddChain(&nftables.Chain{
		Name: "theirs", Table: conn.AddTable(&nftables.Table{Name: "nat", Family: nftables.TableFamilyIPv4}),
	})
	check(t, conn.Flush())
	before := ruleset(t)
	check(t, redirect.Remove()) // of nothing
	wantRuleset(t, before)
	check(t, redirect.Apply(tables(t)))
	check(t, redirect.Remove())
	wantRuleset(t, before)
	n.want("outside", application, "tcp", outsideIPv4+":80")
}

func TestSuspendedRulesHaveNoEffectUntilResume(t *testing.T) {
	t.Parallel()
	n := newNetworks(t)
	listenProxy(t, ":15001")
	listen(t, ":20000", "inbound proxy")
	listen(t, ":8080", "application")
	check(t, redirect.Suspend()) // of nothing
	check(t, redirect.Resume())
	wantRuleset(t, nil)
	check(t, redirect.Apply(tables(t)))
	applied := ruleset(t)
	for range 2 { // a run that was killed left its suspension
		check(t, redirect.Suspend())
		n.want("outside", application, "tcp", outsideIPv4+":80")
		n.want("outside", application, "tcp", "["+outsideIPv6+"]:80")
		n.wantFromOutside("application", taskIPv4+":8080")
	}
	check(t, redirect.Resume())
	wantRuleset(t, applied)
	n.want("proxy for "+outsideIPv4+":80", application, "tcp", outsideIPv4+":80")
	n.want("proxy for ["+outsideIPv6+"]:80", application, "tcp", "["+outsideIPv6+"]:80")
	n.wantFromOutside("inbound proxy", taskIPv4+":8080")

	check(t, redirect.Suspend())
	check(t, redirect.Apply(tables(t)))
	n.want("proxy for "+outsideIPv4+":80", application, "tcp", outsideIPv4+":80")
}

// The rules go to the kernel at once, and it answers each: both must fit into the socket.
func TestThousandsOfExclusions(t *testing.T) {
	t.Parallel()
	n := newNetworks(t)
	var c config.TransparentProxy
	for port := range 2000 {
		c.ExcludeOutboundPorts = append(c.ExcludeOutboundPorts, 4000+port)
	}
	settings, err := redirect.NewSettings(c, bootstrap.Proxy{}, 20000, 0)
	check(t, err)
	check(t, redirect.Apply(redirect.Tables(settings)))
	n.want("outside", application, "tcp", outsideIPv4+":5432")
}

func TestMissingCapabilityNamesWhatTheContainerNeeds(t *testing.T) {
	t.Parallel()
	if !testkit.OwnNetwork(t) {
		return
	}
	const remedy = "operation not permitted: transparentProxy needs the EC2 launch type, user 0 and " +
		"linuxParameters.capabilities.add NET_ADMIN " +
		"in this container; on Fargate set transparentProxy.enabled to false and use upstreams"
	testkit.WantError[*retry.PermanentError](t, redirect.Apply(nil), "redirect traffic to the proxy: "+remedy)
	testkit.WantError[*retry.PermanentError](t, redirect.Remove(), "stop redirecting traffic to the proxy: "+remedy)
	testkit.WantError[*retry.PermanentError](t, redirect.Suspend(), "stop redirecting traffic to the proxy: "+remedy)
	testkit.WantError[*retry.PermanentError](t, redirect.Resume(), "redirect traffic to the proxy again: "+remedy)
}

func TestUnwritableFileNamesWhatTheContainerNeeds(t *testing.T) {
	t.Parallel()
	newNetworks(t) // keeps the thread, whose user changes
	path := filepath.Join(testkit.PublicDir(t), "hosts")
	check(t, os.WriteFile(path, nil, 0o644))
	asUser(application, func() {
		_, err := redirect.WriteHosts(path, []string{"127.65.0.1 api"})
		testkit.WantError[*retry.PermanentError](t, err,
			"open "+path+
				": permission denied: this container needs user 0, and readonlyRootFilesystem must not be true")
	})
	_, err := redirect.WriteHosts(path, []string{"127.65.0.1 api"})
	check(t, err)
	asUser(application, func() {
		if _, err := redirect.WriteHosts(path, []string{"127.65.0.1 api"}); err != nil {
			t.Errorf("another container has written the lines already: %v", err)
		}
	})
}

// ruleset returns every chain and rule of the namespace as the kernel stores it.
func ruleset(t *testing.T) [][]byte {
	t.Helper()
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	check(t, err)
	defer conn.Close()
	const header = 4 // of a netfilter message; it has the number of the last change
	var all [][]byte
	for _, command := range []int{unix.NFT_MSG_GETCHAIN, unix.NFT_MSG_GETRULE} {
		messages, err := conn.Execute(netlink.Message{
			Header: netlink.Header{
				Type:  netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | command),
				Flags: netlink.Request | netlink.Dump,
			},
			Data: make([]byte, header),
		})
		check(t, err)
		for _, m := range messages {
			all = append(all, m.Data[header:])
		}
	}
	return all
}

func wantRuleset(t *testing.T, want [][]byte) {
	t.Helper()
	if got := ruleset(t); !slices.EqualFunc(want, got, bytes.Equal) {
		t.Errorf("the kernel has %d chains and rules, want the %d from before", len(got), len(want))
	}
}
