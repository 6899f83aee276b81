package network

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// call connects from a loopback address and returns what it receives.
func call(t *testing.T, to net.Addr, from string) string {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: testkit.Patience}
	c, err := d.Dial("tcp", to.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(testkit.Patience))
	heard, err := io.ReadAll(c)
	if errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if err != nil && len(heard) > 0 {
		t.Errorf("%q, %v", heard, err)
	}
	return string(heard)
}

func TestExchangeRoutesClientsToTheirListener(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := newExchange(l)
	lines := map[string]net.Listener{}
	for _, from := range []string{"127.0.0.2", "127.0.0.3"} {
		line, err := e.Listen(netip.MustParseAddr(from))
		if err != nil {
			t.Fatal(err)
		}
		lines[from] = line
		if line.Addr().String() != l.Addr().String() {
			t.Errorf("address %s, want %s", line.Addr(), l.Addr())
		}
		go func() {
			for {
				c, err := line.Accept()
				if err != nil {
					return
				}
				io.WriteString(c, "for "+from)
				c.Close()
			}
		}()
	}
	if _, err := e.Listen(netip.MustParseAddr("127.0.0.2")); err == nil {
		t.Error("two listeners for one client")
	}
	for from, want := range map[string]string{"127.0.0.2": "for 127.0.0.2", "127.0.0.3": "for 127.0.0.3", "127.0.0.4": ""} {
		if got := call(t, l.Addr(), from); got != want {
			t.Errorf("%s receives %q, want %q", from, got, want)
		}
	}
	if err := lines["127.0.0.2"].Close(); err != nil {
		t.Error(err)
	}
	if got := call(t, l.Addr(), "127.0.0.2"); got != "" {
		t.Errorf("a closed line says %q", got)
	}
	if _, err := lines["127.0.0.2"].Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept of a closed line: %v", err)
	}
	if _, err := e.Listen(netip.MustParseAddr("127.0.0.2")); err != nil {
		t.Errorf("listen again: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
		c.Close()
		t.Error("a closed exchange takes connections")
	}
}

// Without an accept, a connection waits, and ends with its line.
func TestWaitingConnectionEndsWithItsLine(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := newExchange(l)
	defer e.Close()
	deaf, err := e.Listen(netip.MustParseAddr("127.0.0.2"))
	if err != nil {
		t.Fatal(err)
	}
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}
	c, err := d.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	deaf.Close()
	c.SetDeadline(time.Now().Add(testkit.Patience))
	n, err := c.Read(make([]byte, 1))
	testkit.Equal(t, "bytes read", n, 0)
	if err == nil || errors.Is(err, io.ErrNoProgress) {
		t.Errorf("read: %v, want the end of the connection", err)
	} else if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		t.Error("the connection still waits")
	}
}
