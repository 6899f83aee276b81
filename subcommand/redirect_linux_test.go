package subcommand

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/redirect"
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
	servers, err := consulutil.NewServers(consulutil.ServersOptions{Config: config.ConsulServers{Hosts: "127.0.0.1"},
		Log: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	apply := func(exclude ...netip.Prefix) int {
		t.Helper()
		var log bytes.Buffer
		r := &redirection{
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

// TestFailedRedirectionRestoresTheFiles: the other containers of the task share them.
func TestFailedRedirectionRestoresTheFiles(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		testkit.Missing(t, "namespaces need root")
	}
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	files := map[string]string{
		redirect.HostsPath:      "127.0.0.1 localhost",
		redirect.ResolvConfPath: "nameserver 10.0.0.2\noptions ndots:2",
	}
	mountOver(t, files)
	r := &redirection{
		settings: config.TransparentProxy{Enabled: true, ConsulDNS: config.ConsulDNS{Enabled: true}},
		hosts:    []string{"127.65.0.1 api"}, publicPort: 20000, log: hclog.NewNullLogger(),
	}
	if err := r.Suspend(); err != nil {
		t.Fatal(err)
	}
	if err := r.Apply(bootstrap.Proxy{}); err != nil {
		t.Fatal(err)
	}
	for path, text := range files {
		if got := readFile(t, path); got == text {
			t.Errorf("%s is unchanged while traffic is redirected", path)
		}
	}
	if err := r.Restore(true); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, files)

	withoutNetAdmin(t, func() {
		if err := r.Apply(bootstrap.Proxy{}); err == nil {
			t.Error("traffic is redirected without CAP_NET_ADMIN")
		}
		if err := r.Restore(true); err == nil {
			t.Error("rules are removed without CAP_NET_ADMIN")
		}
	})
	wantFiles(t, files)
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func wantFiles(t *testing.T, files map[string]string) {
	t.Helper()
	for path, want := range files {
		if got := readFile(t, path); got != want {
			t.Errorf("%s has %q, want %q", path, got, want)
		}
	}
}

// mountOver gives the thread its own files at these paths, as a container runtime does.
func mountOver(t *testing.T, files map[string]string) {
	t.Helper()
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for path, text := range files {
		own := filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(own, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount(own, path, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
	}
}

// withoutNetAdmin calls f while the thread may not change its network.
func withoutNetAdmin(t *testing.T, f func()) {
	t.Helper()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var all, fewer [2]unix.CapUserData
	if err := unix.Capget(&header, &all[0]); err != nil {
		t.Fatal(err)
	}
	fewer = all
	fewer[0].Effective &^= 1 << unix.CAP_NET_ADMIN
	if err := unix.Capset(&header, &fewer[0]); err != nil {
		t.Fatal(err)
	}
	f()
	if err := unix.Capset(&header, &all[0]); err != nil {
		t.Fatal(err)
	}
}
