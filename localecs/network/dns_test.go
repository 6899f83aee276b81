package network

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"

	wire "github.com/miekg/dns"
)

// names resolves the names of a VPC with one service of two tasks.
func names(name string) ([]netip.Addr, bool) {
	switch name {
	case "api.test.local":
		return []netip.Addr{netip.MustParseAddr("10.42.0.4"), netip.MustParseAddr("10.42.0.5")}, true
	case "empty.test.local":
		return nil, true
	}
	return nil, false
}

// serveNames starts a server and returns a Go resolver that asks it.
func serveNames(t *testing.T) *net.Resolver {
	t.Helper()
	// A separate address: other programs may have this port at 127.0.0.1.
	packets, err := net.ListenPacket("udp", "127.83.17.53:0")
	if err != nil {
		t.Fatal(err)
	}
	streams, err := net.Listen("tcp", packets.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	s := NewNameServer(names, packets, streams)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, packets.LocalAddr().String())
	}}
}

func TestGoResolverFindsTasks(t *testing.T) {
	t.Parallel()
	r := serveNames(t)
	for _, name := range []string{"api.test.local", "API.Test.LOCAL."} {
		got, err := r.LookupHost(t.Context(), name)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, []string{"10.42.0.4", "10.42.0.5"}) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestUnknownNamesDoNotExist(t *testing.T) {
	t.Parallel()
	r := serveNames(t)
	_, err := r.LookupHost(t.Context(), "example.com.")
	var dnsErr *net.DNSError
	if !errors.As(err, &dnsErr) || !dnsErr.IsNotFound {
		t.Errorf("got %v, want not found", err)
	}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		qtype   uint16
		rcode   int
		answers int
	}{
		{"api.test.local.", wire.TypeA, wire.RcodeSuccess, 2},
		{"api.test.local.", wire.TypeAAAA, wire.RcodeSuccess, 0}, // exists, has none
		{"api.test.local.", wire.TypeMX, wire.RcodeSuccess, 0},
		{"empty.test.local.", wire.TypeA, wire.RcodeSuccess, 0},
		{"other.", wire.TypeA, wire.RcodeNameError, 0},
	} {
		got := answer(new(wire.Msg).SetQuestion(c.name, c.qtype), names)
		if got.Rcode != c.rcode || len(got.Answer) != c.answers {
			t.Errorf("%s %s: %s, %d answers", c.name, wire.TypeToString[c.qtype], wire.RcodeToString[got.Rcode], len(got.Answer))
		}
		for _, rr := range got.Answer {
			if rr.Header().Ttl != 0 {
				t.Errorf("%s: TTL %d: a task may be gone in a second", c.name, rr.Header().Ttl)
			}
		}
	}
	if got := answer(new(wire.Msg), names); got.Rcode != wire.RcodeNotImplemented {
		t.Errorf("no question: %s", wire.RcodeToString[got.Rcode])
	}
}
