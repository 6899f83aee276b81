package network

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// transfer sends so many bytes over a connection to somebody who echoes, and
// takes in what comes back; it returns how long that took.
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
	// 20 kB/s: 40 kB take 2 s without those that may pass at once and the
	// packets' headers, and a megabyte would take 50 s.
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
		if took := transfer(t, flows[name], 1_000_000); took > 25*time.Second {
			t.Errorf("%s: a megabyte took %s, as if limited", name, took)
		}
	}
	mustEnd(t, narrow)
	mustEnd(t, narrow)
	if took := transfer(t, flows["a to b"], 1_000_000); took > 25*time.Second {
		t.Errorf("a megabyte took %s after the lowest limit's end", took)
	}
	mustEnd(t, wide)
	if took := transfer(t, flows["a to b"], 1_000_000); took > 25*time.Second {
		t.Errorf("a megabyte took %s after the limit's end", took)
	}
}

// Each direction waits for itself: what goes in is slow though nothing comes out.
func TestLimitOfOneDirection(t *testing.T) {
	t.Parallel()
	v := newVPCs(t)
	l, err := v.a.Listen("tcp", "0.0.0.0:7001")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	got := make(chan time.Duration)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			began := time.Now()
			_, _ = io.Copy(io.Discard, c)
			c.Close()
			got <- time.Since(began)
		}
	}()
	end, err := link(t, v.a).Limit(160)
	if err != nil {
		t.Fatal(err)
	}
	send := func() time.Duration {
		c, err := connect(func(ctx context.Context) (net.Conn, error) {
			return v.b.DialContext(ctx, "tcp", v.a.IP.String()+":7001")
		}, testkit.Patience)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write(make([]byte, 60_000))
		c.Close()
		select {
		case took := <-got:
			return took
		case <-time.After(testkit.Patience):
			t.Fatal("it does not arrive")
			return 0
		}
	}
	if took := send(); took < 2*time.Second {
		t.Errorf("60 kB took %s at 20 kB/s", took)
	}
	mustEnd(t, end)
	if took := send(); took > 2*time.Second {
		t.Errorf("60 kB took %s afterwards", took)
	}
}
