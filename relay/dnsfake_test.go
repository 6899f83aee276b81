package relay

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	wire "github.com/miekg/dns"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// nameServer is a running DNS.
type nameServer struct {
	*DNS
	address string
	log     *testkit.Log
}

// startDNS runs a DNS until the end of the test.
func startDNS(t *testing.T, c DNSConfig) *nameServer {
	t.Helper()
	s := &nameServer{log: &testkit.Log{}}
	c.Log = hclog.New(&hclog.LoggerOptions{Level: hclog.Info, Output: io.MultiWriter(s.log, t.Output())})
	if c.Token == nil {
		c.Token = (&tokenFile{secret: "secret"}).read
	}
	var packets net.PacketConn
	streams, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		s.address = streams.Addr().String()
		packets, err = net.ListenPacket("udp", s.address)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.DNS = NewDNS(c)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, packets, streams) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Serve ended: %v", err)
		}
	})
	return s
}

// ask asks for a name over that network, and returns the answer.
func (s *nameServer) ask(t testing.TB, network, name string, kind uint16) *wire.Msg {
	t.Helper()
	client := wire.Client{Net: network, Timeout: 5 * time.Second}
	got, _, err := client.Exchange(new(wire.Msg).SetQuestion(name, kind), s.address)
	if err != nil {
		t.Fatalf("%s %s over %s: %v", name, wire.TypeToString[kind], network, err)
	}
	return got
}

// addresses returns those in an answer.
func addresses(m *wire.Msg) (all []string) {
	for _, rr := range m.Answer {
		switch rr := rr.(type) {
		case *wire.A:
			all = append(all, rr.A.String())
		case *wire.AAAA:
			all = append(all, rr.AAAA.String())
		}
	}
	return all
}

// called is what a server gets of a call.
type called struct {
	query    *wire.Msg
	protocol uint64
	header   http.Header
}

// calls answers calls with the message and the status that do returns.
func calls(t *testing.T, do func(called) ([]byte, status)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := called{header: r.Header, query: new(wire.Msg)}
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = c.read(body)
		}
		if err != nil || r.URL.Path != queryMethod {
			t.Errorf("call %s: %q, %v", r.URL.Path, body, err)
		}
		message, got := do(c)
		w.Header().Set("Content-Type", "application/grpc")
		if message != nil {
			w.Write(framed(protowire.AppendBytes(protowire.AppendTag(nil, fieldQueryMessage,
				protowire.BytesType), message)))
		}
		got.write(w)
	}
}

// read reads a QueryRequest with its prefix.
func (c *called) read(body []byte) error {
	for message := body[messagePrefix:]; len(message) > 0; {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		switch {
		case number == fieldQueryMessage:
			var text []byte
			if text, n = protowire.ConsumeBytes(message); n < 0 {
				return protowire.ParseError(n)
			}
			if err := c.query.Unpack(text); err != nil {
				return err
			}
		case number == fieldQueryProtocol:
			c.protocol, n = protowire.ConsumeVarint(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		message = message[n:]
	}
	return nil
}

var served = status{code: "0"}

// serving answers each query with that address.
func serving(t *testing.T, address string) http.HandlerFunc {
	return calls(t, func(c called) ([]byte, status) {
		return replyTo(t, pack(t, c.query), wire.RcodeSuccess, c.query.Question[0].Name+" 0 IN A "+address), served
	})
}
