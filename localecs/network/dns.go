package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	wire "github.com/miekg/dns"
)

// Lookup returns the addresses of a name, given in lower case without its final
// dot, and whether the name exists. It is called concurrently.
type Lookup func(name string) (addresses []netip.Addr, exists bool)

// NameServer is a resolver on one address.
type NameServer struct {
	udp, tcp *wire.Server
	done     chan error
}

// NewNameServer serves lookup on both sockets, and owns them, until Close.
func NewNameServer(lookup Lookup, packets net.PacketConn, streams net.Listener) *NameServer {
	handler := wire.HandlerFunc(func(w wire.ResponseWriter, q *wire.Msg) {
		// An error means that the client has disconnected.
		_ = w.WriteMsg(answer(q, lookup))
	})
	s := &NameServer{
		udp:  &wire.Server{PacketConn: packets, Handler: handler},
		tcp:  &wire.Server{Listener: streams, Handler: handler},
		done: make(chan error, 2),
	}
	for _, server := range []*wire.Server{s.udp, s.tcp} {
		started := make(chan struct{})
		server.NotifyStartedFunc = func() { close(started) }
		go func() { s.done <- server.ActivateAndServe() }()
		<-started // Shutdown of a server that has not started is an error
	}
	return s
}

// Close stops the server and closes its sockets.
func (s *NameServer) Close() error {
	err := errors.Join(s.udp.Shutdown(), s.tcp.Shutdown(), <-s.done, <-s.done)
	if err != nil {
		return fmt.Errorf("close resolver: %w", err)
	}
	return nil
}

func answer(q *wire.Msg, lookup Lookup) *wire.Msg {
	reply := new(wire.Msg)
	if len(q.Question) != 1 || q.Opcode != wire.OpcodeQuery {
		return reply.SetRcode(q, wire.RcodeNotImplemented)
	}
	reply.SetReply(q)
	reply.Authoritative, reply.RecursionAvailable = true, true
	question := q.Question[0]
	addresses, exists := lookup(strings.ToLower(strings.TrimSuffix(question.Name, ".")))
	if !exists {
		reply.Rcode = wire.RcodeNameError
		return reply
	}
	for _, a := range addresses {
		header := wire.RR_Header{Name: question.Name, Class: wire.ClassINET}
		switch {
		case a.Is4() && (question.Qtype == wire.TypeA || question.Qtype == wire.TypeANY):
			header.Rrtype = wire.TypeA
			reply.Answer = append(reply.Answer, &wire.A{Hdr: header, A: a.AsSlice()})
		case a.Is6() && (question.Qtype == wire.TypeAAAA || question.Qtype == wire.TypeANY):
			header.Rrtype = wire.TypeAAAA
			reply.Answer = append(reply.Answer, &wire.AAAA{Hdr: header, AAAA: a.AsSlice()})
		}
	}
	return reply
}
