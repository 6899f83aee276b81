package relay

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	wire "github.com/miekg/dns"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// TestServersGetTheQueryAndTheTaskItIsOf: the protocol decides how long the reply may be.
func TestServersGetTheQueryAndTheTaskItIsOf(t *testing.T) {
	t.Parallel()
	got := make(chan called, 1)
	srv := startServer(t, calls(t, func(c called) ([]byte, status) {
		got <- c
		return replyTo(t, pack(t, c.query), wire.RcodeSuccess), served
	}))
	tokens := &tokenFile{secret: "first"}
	s := startDNS(t, DNSConfig{
		Servers: newServers(address(srv)), Token: tokens.read, Namespace: "team", Partition: "part",
	})
	for _, c := range []struct {
		network, token string
		protocol       uint64
	}{{"udp", "first", 2}, {"tcp", "second", 1}} {
		tokens.set(c.token, nil)
		s.ask(t, c.network, "api.virtual.consul.", wire.TypeA)
		call := <-got
		if name := call.query.Question[0].Name; name != "api.virtual.consul." {
			t.Errorf("the query is for %s", name)
		}
		if call.protocol != c.protocol {
			t.Errorf("%s: protocol %d, want %d", c.network, call.protocol, c.protocol)
		}
		for name, want := range map[string]string{
			"X-Consul-Token": c.token, "X-Consul-Namespace": "team", "X-Consul-Partition": "part",
			"Grpc-Timeout": "1500m",
		} {
			if value := call.header.Get(name); value != want {
				t.Errorf("%s is %q, want %q", name, value, want)
			}
		}
	}
}

// faults returns servers that give no answer.
func faults(t *testing.T) map[string]http.HandlerFunc {
	edited := func(change func(*wire.Msg)) http.HandlerFunc {
		return calls(t, func(c called) ([]byte, status) {
			reply := new(wire.Msg).SetReply(c.query)
			change(reply)
			return pack(t, reply), served
		})
	}
	writes := func(body []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/grpc")
			w.Write(body)
			served.write(w)
		}
	}
	return map[string]http.HandlerFunc{
		"has a status": calls(t, func(called) ([]byte, status) {
			return nil, status{unavailable, "no leader"}
		}),
		"has a status at once": refusing(status{exhausted, "rate limit"}),
		"hangs":                func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"hangs after its header": func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
		"breaks off":                func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"serves no gRPC":            http.NotFound,
		"has no status":             func(http.ResponseWriter, *http.Request) {},
		"has an empty message":      writes(framed(nil)),
		"has half a message":        writes([]byte{0, 0, 0, 0, 9, 1}),
		"has a compressed message":  writes([]byte{1, 0, 0, 0, 1, 1}),
		"has no protobuf":           writes(framed([]byte{0xff, 0xff})),
		"has no DNS":                writes(framed([]byte{fieldQueryMessage<<3 | 2, 1, 'x'})),
		"is too long":               writes(framed(make([]byte, 1<<17))),
		"answers another query":     edited(func(m *wire.Msg) { m.Id++ }),
		"answers another question":  edited(func(m *wire.Msg) { m.Question[0].Qtype = wire.TypeMX }),
		"could not answer":          edited(func(m *wire.Msg) { m.Rcode = wire.RcodeServerFailure }),
		"answers with the question": edited(func(m *wire.Msg) { m.Response = false }),
	}
}

// TestServersThatGiveNoAnswer: another one does, in time; without another one clients learn
// that, in time for their next name server.
func TestServersThatGiveNoAnswer(t *testing.T) {
	t.Parallel()
	good := startServer(t, serving(t, "10.0.0.1"))
	for what, handler := range faults(t) {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			bad := startServer(t, handler)
			t.Cleanup(bad.CloseClientConnections)
			two := startDNS(t, DNSConfig{Servers: newServers(address(bad), address(good))})
			if got := addresses(two.ask(t, "udp", "api.service.consul.", wire.TypeA)); !slices.Equal(got,
				[]string{"10.0.0.1"}) {
				t.Errorf("with another server: %v", got)
			}
			alone := startDNS(t, DNSConfig{Servers: newServers(address(bad))})
			begin := time.Now()
			if got := alone.ask(t, "udp", "api.service.consul.", wire.TypeA); got.Rcode != wire.RcodeServerFailure {
				t.Errorf("alone: code %d and %v", got.Rcode, got.Answer)
			}
			if took := time.Since(begin); took > 2*askLimit {
				t.Errorf("alone: took %s", took)
			}
		})
	}
}

// TestTokenThatCannotBeReadIsLogged: without it the servers would answer as for no task.
func TestTokenThatCannotBeReadIsLogged(t *testing.T) {
	t.Parallel()
	srv := startServer(t, serving(t, "10.0.0.1"))
	s := startDNS(t, DNSConfig{Servers: newServers(address(srv)), Token: (&tokenFile{err: io.ErrUnexpectedEOF}).read})
	if got := s.ask(t, "udp", "api.service.consul.", wire.TypeA); got.Rcode != wire.RcodeServerFailure {
		t.Errorf("code %d", got.Rcode)
	}
	if log := s.log.String(); !strings.Contains(log, "read the task's token: unexpected EOF") {
		t.Errorf("log: %s", log)
	}
}

// TestNamesInAnOutage: what was asked for has its last answer, quickly; then the servers answer
// again.
func TestNamesInAnOutage(t *testing.T) {
	t.Parallel()
	var hangs atomic.Bool
	release := make(chan struct{})
	srv := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		if hangs.Load() {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
		serving(t, "10.0.0.1")(w, r)
	})
	s := startDNS(t, DNSConfig{Servers: newServers(address(srv))})
	want := func(when, name string, code int) {
		t.Helper()
		if got := s.ask(t, "udp", name, wire.TypeA); got.Rcode != code {
			t.Errorf("%s: %s has code %d, want %d", when, name, got.Rcode, code)
		}
	}
	want("at first", "api.service.consul.", wire.RcodeSuccess)
	hangs.Store(true)
	want("the server hangs", "api.service.consul.", wire.RcodeSuccess)
	begin := time.Now()
	for range 10 {
		want("the server hangs", "API.service.consul.", wire.RcodeSuccess)
	}
	want("the server hangs", "new.service.consul.", wire.RcodeServerFailure)
	if took := time.Since(begin); took > 11*askLimit/2 {
		t.Errorf("11 queries in an outage took %s", took)
	}
	hangs.Store(false)
	close(release)
	testkit.Eventually(t, "the server is asked again", func() bool {
		return s.ask(t, "udp", "new.service.consul.", wire.TypeA).Rcode == wire.RcodeSuccess
	})
	log := s.log.String()
	for _, line := range []string{
		"[WARN]  no Consul server answers DNS queries, names are answered as they were last",
		"[INFO]  a Consul server answers DNS queries again",
	} {
		if n := strings.Count(log, line); n != 1 {
			t.Errorf("%d times in the log: %s", n, line)
		}
	}
}

// undiscovered are servers whose name is being looked up.
type undiscovered struct{ *servers }

func (undiscovered) GRPCAddresses(ctx context.Context) ([]string, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestLookupOfTheServersDoesNotWaitForItself: the name in consulServers.hosts is looked up at
// the same name servers.
func TestLookupOfTheServersDoesNotWaitForItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := NewDNS(DNSConfig{Servers: undiscovered{newServers()}, Log: hclog.NewNullLogger()})
		begin := time.Now()
		answer := d.respond(t.Context(), dnsQuery(t, "consul.example.", wire.TypeA, 0), true)
		if got := unpack(t, answer); got.Rcode != wire.RcodeServerFailure {
			t.Errorf("code %d", got.Rcode)
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("took %s", took)
		}
	})
}

// TestServerThatRestartsIsAskedAgain: no query is lost with a connection that was closed.
func TestServerThatRestartsIsAskedAgain(t *testing.T) {
	t.Parallel()
	srv := startServer(t, serving(t, "10.0.0.1"))
	s := startDNS(t, DNSConfig{Servers: newServers(address(srv))})
	for range 20 {
		if got := s.ask(t, "udp", "api.service.consul.", wire.TypeA); got.Rcode != wire.RcodeSuccess {
			t.Errorf("code %d", got.Rcode)
		}
		srv.CloseClientConnections()
	}
}

// TestQueriesAreBounded: at the servers, too, while none answers.
func TestQueriesAreBounded(t *testing.T) {
	t.Parallel()
	var open, most atomic.Int64
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n := open.Add(1)
		defer open.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		<-r.Context().Done()
	}))
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 1 << 16} // so that this is not the bound
	srv.Start()
	t.Cleanup(srv.Close)
	s := startDNS(t, DNSConfig{Servers: newServers(address(srv))})
	conn, err := net.Dial("udp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var stop atomic.Bool
	var client sync.WaitGroup
	client.Go(func() {
		for query := dnsQuery(t, "api.service.consul.", wire.TypeA, 0); !stop.Load(); {
			if _, err := conn.Write(query); err != nil {
				t.Error(err)
				return
			}
		}
	})
	testkit.Eventually(t, "clients wait less, and more queries are at the server",
		func() bool { return most.Load() > mostQueries })
	testkit.Eventually(t, "a client is answered", func() bool {
		return s.ask(t, "tcp", "api.service.consul.", wire.TypeA).Rcode == wire.RcodeServerFailure
	})
	stop.Store(true)
	client.Wait()
	t.Logf("%d queries at a time", most.Load())
	if n := most.Load(); n > mostAsked {
		t.Errorf("%d queries at a time, more than %d", n, mostAsked)
	}
}

// TestPipelinedQueries: a slow answer holds no other back, and all arrive after the client has
// sent its last.
func TestPipelinedQueries(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	srv := startServer(t, calls(t, func(c called) ([]byte, status) {
		if c.query.Question[0].Name == "slow.service.consul." {
			<-release
		}
		return replyTo(t, pack(t, c.query), wire.RcodeSuccess), served
	}))
	s := startDNS(t, DNSConfig{Servers: newServers(address(srv))})
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var all []byte
	for _, name := range []string{"slow.service.consul.", "a.service.consul.", "b.service.consul."} {
		message := dnsQuery(t, name, wire.TypeA, 0)
		all = append(binary.BigEndian.AppendUint16(all, uint16(len(message))), message...)
	}
	if _, err := conn.Write(all); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range 3 {
		if i == 2 {
			close(release)
		}
		message, err := readFramed(conn)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, unpack(t, message).Question[0].Name)
	}
	if names[2] != "slow.service.consul." {
		t.Errorf("answers in the order %v", names)
	}
	if _, err := readFramed(conn); err != io.EOF {
		t.Errorf("after the last: %v", err)
	}
}

// TestMessagesWithoutAnAnswer: other programs may send anything to the port.
func TestMessagesWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	srv := startServer(t, serving(t, "10.0.0.1"))
	s := startDNS(t, DNSConfig{Servers: newServers(address(srv))})
	conn, err := net.Dial("udp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	query := dnsQuery(t, "api.service.consul.", wire.TypeA, 0)
	malformed := slices.Concat(query[:2], []byte{1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, []byte("\x09half"))
	for _, message := range [][]byte{nil, []byte("x"), replyTo(t, query, 0), make([]byte, mostQuery+1), malformed} {
		if _, err := conn.Write(message); err != nil {
			t.Fatal(err)
		}
	}
	buf := make([]byte, 512)
	n, err := conn.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	got := unpack(t, buf[:n])
	if got.Rcode != wire.RcodeFormatError {
		t.Errorf("the first answer has code %d, want that of a malformed query", got.Rcode)
	}
	if want := unpack(t, query).Id; got.Id != want {
		t.Errorf("the first answer has ID %d, want %d: that of the malformed query", got.Id, want)
	}

	stream, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if _, err := stream.Write([]byte{0xff, 0xff}); err != nil {
		t.Fatal(err)
	}
	if _, err := readFramed(stream); err != io.EOF {
		t.Errorf("after a query that is too long: %v, want the end", err)
	}
	if got := s.ask(t, "udp", "api.service.consul.", wire.TypeA); got.Rcode != wire.RcodeSuccess {
		t.Errorf("after all that: code %d", got.Rcode)
	}
}

// TestServeEndsWithItsSockets: with an error if nothing else ends it.
func TestServeEndsWithItsSockets(t *testing.T) {
	t.Parallel()
	streams, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	packets.Close()
	if err := NewDNS(DNSConfig{Servers: newServers()}).Serve(t.Context(), packets, streams); err == nil ||
		!strings.Contains(err.Error(), "receive DNS queries on 127.0.0.1:") {
		t.Errorf("got %v", err)
	}
	if _, err := streams.Accept(); err == nil {
		t.Error("the other socket is left open")
	}
}
