package network

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// plenty is how many bytes do not arrive within Patience at 20 kB/s.
const plenty = 2 * 20_000 * int(testkit.Patience/time.Second)

// transfer sends so many bytes over a connection to a server that echoes, and
// takes in what comes back; it returns how long that took, and fails when that
// is longer than Patience.
func transfer(t *testing.T, dial dialer, bytes int) time.Duration {
	t.Helper()
	c, err := connect(dial, testkit.Patience)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(testkit.Patience))
	began := time.Now()
	go func() { _, _ = c.Write(make([]byte, bytes)) }()
	if _, err := io.ReadFull(c, make([]byte, bytes)); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}

// Both directions are limited, metadata and other tasks are not, the lowest of
// several limits counts, and its end is heard of at once.
func TestLimit(t *testing.T) {
	t.Parallel()
	v := newVPCs(t)
	flows := v.flows()
	a := link(t, v.a)
	wide, err := a.Limit(100_000)
	if err != nil {
		t.Fatal(err)
	}
	// 20 kB/s: 40 kB take 2 s without those that may pass at once and the packets'
	// headers, and what is plenty would take longer than transfer waits.
	narrow, err := a.Limit(160)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a to b", "b to a", "service to a"} {
		if took := transfer(t, flows[name], 40_000); took < 1500*time.Millisecond {
			t.Errorf("%s: 40 kB took %s at 20 kB/s", name, took)
		}
	}
	for _, name := range []string{"a to metadata", "b to c"} {
		transfer(t, flows[name], plenty)
	}
	mustEnd(t, narrow)
	mustEnd(t, narrow)
	transfer(t, flows["a to b"], plenty)
	mustEnd(t, wide)
	transfer(t, flows["a to b"], plenty)
}

// deliver sends bytes from one task to another, which returns none, and returns
// how long they took; it fails when that is longer than Patience.
func deliver(t *testing.T, from, to *Namespace, bytes int) time.Duration {
	t.Helper()
	l, err := to.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	out, err := connect(func(ctx context.Context) (net.Conn, error) {
		return from.DialContext(ctx, "tcp", net.JoinHostPort(to.IP.String(), port))
	}, testkit.Patience)
	if err != nil {
		t.Fatal(err)
	}
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	began := time.Now()
	go func() {
		_, _ = out.Write(make([]byte, bytes))
		out.Close()
	}()
	_ = in.SetReadDeadline(began.Add(testkit.Patience))
	if n, err := io.Copy(io.Discard, in); n != int64(bytes) || err != nil {
		t.Fatalf("%d of %d bytes: %v", n, bytes, err)
	}
	return time.Since(began)
}

// Each direction waits for itself.
func TestLimitOfEachDirection(t *testing.T) {
	t.Parallel()
	v := newVPCs(t)
	end, err := link(t, v.a).Limit(160)
	if err != nil {
		t.Fatal(err)
	}
	for name, way := range map[string][2]*Namespace{"in": {v.b, v.a}, "out": {v.a, v.b}} {
		if took := deliver(t, way[0], way[1], 60_000); took < 2*time.Second {
			t.Errorf("%s: 60 kB took %s at 20 kB/s", name, took)
		}
	}
	mustEnd(t, end)
	for name, way := range map[string][2]*Namespace{"in": {v.b, v.a}, "out": {v.a, v.b}} {
		t.Logf("%s, afterwards: %s", name, deliver(t, way[0], way[1], plenty))
	}
}
