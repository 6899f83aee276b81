package relay

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	wire "github.com/miekg/dns"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// TestIdleClientsMakePlaceForOthers: the one that has been idle longest, before its time is over.
func TestIdleClientsMakePlaceForOthers(t *testing.T) {
	t.Parallel()
	srv := startServer(t, serving(t, "10.0.0.1"))
	s := startDNS(t, DNSConfig{Servers: newServers(address(srv))})
	var idle []net.Conn
	for range mostConnections {
		conn, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		idle = append(idle, conn)
	}
	begin := time.Now()
	s.ask(t, "tcp", "api.service.consul.", wire.TypeA)
	if took := time.Since(begin); took > clientIdle/2 {
		t.Errorf("the next client waited for %s", took)
	}
	if _, err := idle[0].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the first client: %v, want the end of its connection", err)
	}
	if err := idle[1].SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := idle[1].Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the second client: %v, want its connection open", err)
	}
}

// closing is a connection that notes that it was closed.
type closing struct {
	net.Conn
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

func TestClientsThatWaitForAnAnswerStay(t *testing.T) {
	t.Parallel()
	first, second := &closing{}, &closing{}
	all := clients{pending: map[net.Conn]int{}}
	all.add(first, 2)
	all.add(second, 1)
	all.evict()
	all.add(first, -1)
	if first.closed {
		t.Error("a client that waits was closed")
	}
	if second.closed {
		t.Error("another client that waits was closed")
	}
	all.add(second, -1)
	if !second.closed {
		t.Error("the first that became idle was not closed")
	}
	all.add(first, -1)
	if first.closed {
		t.Error("more than one was closed")
	}
}

func TestPlaceThatBecameFreeNeedsNoOther(t *testing.T) {
	t.Parallel()
	gone, idle := &closing{}, &closing{}
	all := clients{pending: map[net.Conn]int{}}
	all.add(gone, 1)
	all.evict()
	all.remove(gone)
	all.add(idle, 0)
	if idle.closed {
		t.Error("a client was closed for a place that was free")
	}
}

// TestBurstOfQueriesIsNotLost: those that wait for others have room in the kernel.
func TestBurstOfQueriesIsNotLost(t *testing.T) {
	t.Parallel()
	stuck := func() (string, error) { <-t.Context().Done(); return "", t.Context().Err() }
	s := startDNS(t, DNSConfig{Servers: newServers("127.0.0.1:1"), Token: stuck})
	s.ask(t, "udp", "api.virtual.consul.", wire.TypeA) // its socket has its buffer then
	conn, err := net.Dial("udp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// The answers come together, too.
	if err := conn.(*net.UDPConn).SetReadBuffer(mostBuffered); err != nil {
		t.Fatal(err)
	}
	const burst = 500
	query := dnsQuery(t, "api.virtual.consul.", wire.TypeA, 0)
	for range burst {
		if _, err := conn.Write(query); err != nil {
			t.Fatal(err)
		}
	}
	_ = conn.SetReadDeadline(time.Now().Add(testkit.Patience))
	for i := range burst {
		if _, err := conn.Read(make([]byte, plainSize)); err != nil {
			t.Fatalf("%d of %d queries were answered: %v", i, burst, err)
		}
	}
}
