package redirect_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// Addresses of the two ends of the task's only link.
const (
	taskIPv4, taskIPv6       = "10.9.0.2", "fd09::2"
	outsideIPv4, outsideIPv6 = "10.9.0.1", "fd09::1"
)

// networks are a task's namespace and what is outside of it. The test's goroutine keeps
// its thread, which is in the task's namespace: a test with networks has no subtests.
type networks struct {
	t             *testing.T
	task, outside netns.NsHandle
}

// newNetworks links the task to the outside, where every address may be reached and
// listeners on port 80 and 5432 answer "outside".
func newNetworks(t *testing.T) *networks {
	t.Helper()
	requireRoot(t)
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	n := &networks{t: t, outside: newNamespace(t)}
	listen(t, ":80", "outside")
	listen(t, ":5432", "outside")
	n.task = newNamespace(t)
	veth := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, PeerName: "task", PeerNamespace: netlink.NsFd(n.outside),
	}
	check(t, netlink.LinkAdd(veth))
	outside, err := netlink.NewHandleAt(n.outside)
	check(t, err)
	defer outside.Close()
	inside, err := netlink.NewHandleAt(n.task)
	check(t, err)
	defer inside.Close()
	up(t, inside, "eth0", taskIPv4+"/24", taskIPv6+"/64")
	up(t, outside, "task", outsideIPv4+"/24", outsideIPv6+"/64", "10.9.1.1/32", "169.254.170.2/32", "fd09:1::1/128")
	for _, gateway := range []string{outsideIPv4, outsideIPv6} {
		check(t, inside.RouteAdd(&netlink.Route{Gw: net.ParseIP(gateway)}))
	}
	return n
}

func requireRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		testkit.Missing(t, "network namespaces need root")
	}
}

// newNamespace moves the thread into a new namespace whose loopback interface is up.
func newNamespace(t *testing.T) netns.NsHandle {
	t.Helper()
	ns, err := netns.New()
	check(t, err)
	t.Cleanup(func() { _ = ns.Close() })
	lo, err := netlink.LinkByName("lo")
	check(t, err)
	check(t, netlink.LinkSetUp(lo))
	return ns
}

func up(t *testing.T, handle *netlink.Handle, name string, addresses ...string) {
	t.Helper()
	link, err := handle.LinkByName(name)
	check(t, err)
	for _, address := range addresses {
		addr, err := netlink.ParseAddr(address)
		check(t, err)
		addr.Flags = unix.IFA_F_NODAD
		check(t, handle.AddrAdd(link, addr))
	}
	check(t, handle.LinkSetUp(link))
}

// listen answers connections, in the thread's namespace, with the name.
func listen(t *testing.T, address, name string) {
	t.Helper()
	serve(t, "tcp", address, func(net.Conn) string { return name })
}

// listenProxy answers as a proxy that learns from the kernel where connections went,
// which is how Envoy picks the upstream.
func listenProxy(t *testing.T, address string) {
	t.Helper()
	for _, network := range []string{"tcp4", "tcp6"} {
		serve(t, network, address, func(conn net.Conn) string { return "proxy for " + originalDestination(conn) })
	}
}

func serve(t *testing.T, network, address string, answer func(net.Conn) string) {
	t.Helper()
	l, err := net.Listen(network, address)
	check(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, answer(conn))
			_ = conn.Close()
		}
	}()
}

// originalDestination returns where the client connected to before the kernel translated it,
// or the error.
func originalDestination(conn net.Conn) string {
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return err.Error()
	}
	var destination netip.AddrPort
	failed := raw.Control(func(fd uintptr) {
		if local := conn.LocalAddr().(*net.TCPAddr).AddrPort(); local.Addr().Is6() {
			var info *unix.IPv6MTUInfo // begins with a socket address
			if info, err = unix.GetsockoptIPv6MTUInfo(int(fd), unix.IPPROTO_IPV6, unix.SO_ORIGINAL_DST); err == nil {
				destination = netip.AddrPortFrom(netip.AddrFrom16(info.Addr.Addr), ntohs(info.Addr.Port))
			}
			return
		}
		var mreq *unix.IPv6Mreq // as long as a socket address, and a word longer
		if mreq, err = unix.GetsockoptIPv6Mreq(int(fd), unix.IPPROTO_IP, unix.SO_ORIGINAL_DST); err == nil {
			sockaddr := mreq.Multiaddr[:]
			destination = netip.AddrPortFrom(netip.AddrFrom4([4]byte(sockaddr[4:8])),
				binary.BigEndian.Uint16(sockaddr[2:]))
		}
	})
	if err := errors.Join(failed, err); err != nil {
		return err.Error()
	}
	return destination.String()
}

func ntohs(n uint16) uint16 {
	return binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, n))
}

// listenUDP answers packets with the name.
func listenUDP(t *testing.T, address, name string) {
	t.Helper()
	conn, err := net.ListenPacket("udp", address)
	check(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		for {
			_, from, err := conn.ReadFrom(make([]byte, 512))
			if err != nil {
				return
			}
			_, _ = conn.WriteTo([]byte(name), from)
		}
	}()
}

// asUser runs f with the thread's user for sockets and files.
func asUser(uid int, f func()) {
	_ = unix.Setfsuid(uid)
	defer func() { _ = unix.Setfsuid(0) }()
	f()
}

// want dials as the user from the task and holds the answer against who should have
// accepted the connection.
func (n *networks) want(who string, uid int, network, address string) {
	n.t.Helper()
	asUser(uid, func() {
		if got := ask(network, address); got != who {
			n.t.Errorf("user %d reached %q at %s %s, want %q", uid, got, network, address, who)
		}
	})
}

// wantFromOutside dials from the outside.
func (n *networks) wantFromOutside(who, address string) {
	n.t.Helper()
	check(n.t, netns.Set(n.outside))
	defer func() { check(n.t, netns.Set(n.task)) }()
	if got := ask("tcp", address); got != who {
		n.t.Errorf("from outside, %s was answered by %q, want %q", address, got, who)
	}
}

// ask returns the answer, or the error.
func ask(network, address string) string {
	conn, err := net.DialTimeout(network, address, testkit.Patience)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(testkit.Patience))
	if strings.HasPrefix(network, "udp") {
		_, _ = conn.Write([]byte("?"))
	}
	buf := make([]byte, 100)
	length, err := conn.Read(buf)
	if err != nil {
		return err.Error()
	}
	return string(buf[:length])
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
