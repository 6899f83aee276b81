package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

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

func TestBookKnowsItsOwn(t *testing.T) {
	t.Parallel()
	l, free := listen(t, "tcp4", "127.0.0.1:0")
	l.Close()
	one, other := netip.MustParseAddr("127.42.0.4"), netip.MustParseAddr("127.42.0.5")
	var b Book
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
		{Port{Number: single}, fmt.Sprintf("something on this host that listens on 127.0.0.1:%d", single)},
		{Port{Number: all}, fmt.Sprintf("something on this host that listens on 0.0.0.0:%d", all)},
		{Port{Number: all, Address: own}, fmt.Sprintf("something on this host that listens on 0.0.0.0:%d", all)},
		{Port{Number: six}, fmt.Sprintf("something on this host that listens on [::]:%d", six)},
		{Port{Number: datagrams, Protocol: "udp"}, fmt.Sprintf("something on this host that listens on 127.0.0.1:%d", datagrams)},
	} {
		var b Book
		err := b.Take(c.port, "me")
		var refused *Error
		if !errors.As(err, &refused) || refused.Holder != c.holder || !errors.Is(err, unix.EADDRINUSE) {
			t.Errorf("%s: %v, want holder %q", c.port, err, c.holder)
		}
	}
	// An address beside the one in use is free, and so is the port for packets.
	var b Book
	for _, p := range []Port{{Number: single, Address: own}, {Number: single, Protocol: "udp"}} {
		if err := b.Take(p, "me"); err != nil {
			t.Error(err)
		}
	}
}

func TestErrorsSayTheWayRoundOnce(t *testing.T) {
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
		{[]error{denied}, "port 80/tcp of web cannot be had: bind: permission denied\n" +
			shared + "use ports above net.ipv4.ip_unprivileged_port_start, or give localecs CAP_NET_BIND_SERVICE"},
		{[]error{held, nil, too, other}, "port 81/tcp of web cannot be had: api has it\nport 82/tcp of web cannot be had: api has it\nsomething else\n" +
			shared + "stop what has it first, or use another containerPort"},
		{[]error{server, held}, "port 127.42.0.254:8500/tcp of consul cannot be had: something has it\nport 81/tcp of web cannot be had: api has it\n" +
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

const (
	tcpTable = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12345 1 0000000000000000 100 0 0 10 0
   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12346 1 0000000000000000 100 0 0 10 0
   2: 0100007F:1F91 0100007F:0016 01 00000000:00000000 00:00000000 00000000     0        0 12347 1 0000000000000000 20 4 30 10 -1
   3: nonsense 0A
   4: 0100007F:FFFFF 00000000:0000 0A
`
	tcp6Table = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000001000000:1F92 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12348 1 0000000000000000 100 0 0 10 0
   1: 0000000000000000FFFF0000FE002A7F:1F93 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12349 1 0000000000000000 100 0 0 10 0
`
	udpTable = `   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  100: 3500007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000   101        0 12350 2 0000000000000000 0
`
)

// The tables are those of a machine with the low byte first.
func TestListeners(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		table, protocol string
		want            []string
	}{
		{tcpTable, "tcp", []string{"127.0.0.1:8080", "0.0.0.0:22"}},
		{tcp6Table, "tcp", []string{"[::1]:8082", "127.42.0.254:8083"}},
		{udpTable, "udp", []string{"127.0.0.53:53"}},
		{udpTable, "tcp", nil},
		{"", "tcp", nil},
	} {
		var got []string
		for _, at := range listeners(c.table, c.protocol) {
			got = append(got, at.String())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.table, diff)
		}
	}
}

func FuzzListeners(f *testing.F) {
	for _, table := range []string{tcpTable, tcp6Table, udpTable, "0: :1 2 0A", "0: 00:0001 2 0A"} {
		f.Add(table)
	}
	f.Fuzz(func(t *testing.T, table string) {
		for _, at := range listeners(table, "tcp") {
			if !at.IsValid() || !strings.Contains(strings.ToUpper(table), fmt.Sprintf("%X", at.Port())) {
				t.Errorf("%s is not in %q", at, table)
			}
		}
	})
}
