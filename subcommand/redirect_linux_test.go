package subcommand

import (
	"bytes"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// TestRefusedIPv6IsAWarning: once, in a task with IPv6 whose proxy does not listen there.
func TestRefusedIPv6IsAWarning(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		testkit.Missing(t, "network namespaces need root")
	}
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	servers, err := consulutil.NewServers(consulutil.ServersOptions{Config: config.ConsulServers{Hosts: "127.0.0.1"}, Log: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	apply := func(exclude ...netip.Prefix) int {
		t.Helper()
		var log bytes.Buffer
		r := redirection{
			settings:   config.TransparentProxy{Enabled: true, Prefixes: exclude},
			publicPort: 20000, servers: servers, log: hclog.New(&hclog.LoggerOptions{Output: &log}),
		}
		if err := r.Apply(bootstrap.Proxy{}); err != nil {
			t.Fatal(err)
		}
		return strings.Count(log.String(), "[WARN]  outbound IPv6 connections of this task are refused")
	}
	if n := apply(); n != 0 {
		t.Errorf("%d warnings in a task without IPv6", n)
	}
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		var addr *netlink.Addr
		if addr, err = netlink.ParseAddr("fd09::2/128"); err == nil {
			err = netlink.AddrAdd(lo, addr)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if n := apply(); n != 1 {
		t.Errorf("%d warnings, want 1", n)
	}
	if n := apply(netip.MustParsePrefix("::/0")); n != 0 {
		t.Errorf("%d warnings though IPv6 is excluded", n)
	}
}
