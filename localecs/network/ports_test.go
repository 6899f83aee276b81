package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/taskdef"
)

func TestDeclared(t *testing.T) {
	t.Parallel()
	number := func(n int) *int { return &n }
	for name, c := range map[string]struct {
		mapping taskdef.PortMapping
		want    string
	}{
		"one":                 {taskdef.PortMapping{ContainerPort: number(80)}, "[80/tcp]"},
		"udp":                 {taskdef.PortMapping{ContainerPort: number(53), Protocol: "udp"}, "[53/udp]"},
		"range":               {taskdef.PortMapping{ContainerPortRange: "8000-8002"}, "[8000/tcp 8001/tcp 8002/tcp]"},
		"end of the range":    {taskdef.PortMapping{ContainerPortRange: "65535-70000"}, "[65535/tcp]"},
		"nothing":             {taskdef.PortMapping{}, "[]"},
		"no range":            {taskdef.PortMapping{ContainerPortRange: "many"}, "[]"},
		"any port is no port": {taskdef.PortMapping{ContainerPort: number(0)}, "[]"},
	} {
		if got := fmt.Sprint(Declared(c.mapping)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// listen opens a port of the kernel's choice.
func listen(t *testing.T, network, address string) (net.Listener, int) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, l.Addr().(*net.TCPAddr).Port
}

func TestPortBookDistinguishesAddresses(t *testing.T) {
	t.Parallel()
	ports, err := testkit.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	free := ports[0]
	one, other := netip.MustParseAddr("127.42.0.4"), netip.MustParseAddr("127.42.0.5")
	var b portRegistry
	take := func(p Port, owner, want string) {
		t.Helper()
		err := b.Take(p, owner)
		var refused *Error
		holder := ""
		if errors.As(err, &refused) {
			holder = refused.Holder
		}
		if holder != want || (err == nil) != (want == "") {
			t.Errorf("%s for %s: %v, want holder %q", p, owner, err, want)
		}
	}
	take(Port{Number: free, Address: one}, "first", "")
	take(Port{Number: free, Address: other}, "second", "")
	take(Port{Number: free, Address: one}, "third", "first")
	take(Port{Number: free, Protocol: "udp"}, "third", "")
	b.Release(Port{Number: free, Address: other})
	take(Port{Number: free}, "third", "first") // all addresses, and one of them is taken
	b.Release(Port{Number: free, Address: one})
	take(Port{Number: free}, "third", "")
	take(Port{Number: free, Protocol: "tcp", Address: one}, "first", "third")
}

func TestBookAsksTheKernel(t *testing.T) {
	t.Parallel()
	_, single := listen(t, "tcp4", "127.0.0.1:0")
	_, all := listen(t, "tcp4", "0.0.0.0:0")
	_, six := listen(t, "tcp", "[::]:0")
	packets, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer packets.Close()
	datagrams := packets.LocalAddr().(*net.UDPAddr).Port
	own := netip.MustParseAddr("127.42.0.254")
	for _, c := range []struct {
		port   Port
		holder string
	}{
		{Port{Number: single}, fmt.Sprintf("(network.test) that listens on 127.0.0.1:%d", single)},
		{Port{Number: all}, fmt.Sprintf("(network.test) that listens on 0.0.0.0:%d", all)},
		{Port{Number: all, Address: own}, fmt.Sprintf("(network.test) that listens on 0.0.0.0:%d", all)},
		{Port{Number: six}, fmt.Sprintf("(network.test) that listens on [::]:%d", six)},
		{Port{Number: datagrams, Protocol: "udp"}, fmt.Sprintf("(network.test) that listens on 127.0.0.1:%d", datagrams)},
	} {
		var b portRegistry
		err := b.Take(c.port, "me")
		var refused *Error
		if !errors.As(err, &refused) || !strings.HasSuffix(refused.Holder, c.holder) {
			t.Errorf("%s: %v, want holder %q", c.port, err, c.holder)
		}
		if !errors.Is(err, unix.EADDRINUSE) {
			t.Errorf("%s: %v, want %v", c.port, err, unix.EADDRINUSE)
		}
	}
	// An address beside the one in use is free, and so is the port for packets.
	var b portRegistry
	for _, p := range []Port{{Number: single, Address: own}, {Number: single, Protocol: "udp"}} {
		if err := b.Take(p, "me"); err != nil {
			t.Error(err)
		}
	}
}

func TestErrorsNameTheWorkaroundOnce(t *testing.T) {
	t.Parallel()
	denied := &Error{Port: Port{Number: 80}, Owner: "web", Err: os.NewSyscallError("bind", unix.EACCES)}
	held := &Error{Port: Port{Number: 81}, Owner: "web", Holder: "api"}
	too := &Error{Port: Port{Number: 82}, Owner: "web", Holder: "api"}
	server := &Error{Port: Port{Number: 8500, Address: netip.MustParseAddr("127.42.0.254")}, Owner: "consul", Holder: "something"}
	other := errors.New("something else")
	const shared = "with host networking all tasks share the ports of this host: "
	for _, c := range []struct {
		errs []error
		want string
	}{
		{[]error{nil, nil}, "<nil>"},
		{[]error{other, nil}, "something else"},
		{[]error{denied}, "port 80/tcp of web is not available: bind: permission denied\n" +
			shared + "use ports above net.ipv4.ip_unprivileged_port_start, or give localecs CAP_NET_BIND_SERVICE"},
		{[]error{held, nil, too, other}, "port 81/tcp of web is not available: api has it\nport 82/tcp of web is not available: api has it\nsomething else\n" +
			shared + "stop what has it first, or use another containerPort"},
		{[]error{server, held}, "port 127.42.0.254:8500/tcp of consul is not available: something has it\nport 81/tcp of web is not available: api has it\n" +
			shared + "stop what has it; if that is another localecs, use another subnet; stop what has it first, or use another containerPort"},
	} {
		err := Join(c.errs...)
		if got := fmt.Sprint(err); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
		if c.errs[0] != nil && !errors.Is(err, c.errs[0]) {
			t.Errorf("%v hides the first error", err)
		}
	}
}
