package relay

import (
	"fmt"
	"net"
	"slices"
	"testing"

	"github.com/hashicorp/consul/api"
	wire "github.com/miekg/dns"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// startRecursor runs a name server that knows one name.
func startRecursor(t *testing.T, name, address string) string {
	t.Helper()
	var packets net.PacketConn
	streams, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		packets, err = net.ListenPacket("udp", streams.Addr().String())
	}
	if err != nil {
		t.Fatal(err)
	}
	handler := wire.HandlerFunc(func(w wire.ResponseWriter, q *wire.Msg) {
		reply := new(wire.Msg).SetReply(q)
		if rr, err := wire.NewRR(name + " 60 IN A " + address); err == nil && q.Question[0].Name == name {
			reply.Answer = append(reply.Answer, rr)
		} else {
			reply.Rcode = wire.RcodeNameError
		}
		_ = w.WriteMsg(reply)
	})
	for _, s := range []*wire.Server{{PacketConn: packets, Handler: handler}, {Listener: streams, Handler: handler}} {
		go s.ActivateAndServe()
		t.Cleanup(func() { s.Shutdown() })
	}
	return packets.LocalAddr().String()
}

// TestRealServersAnswerNames: by the token of a task, over both protocols, with TLS and without.
func TestRealServersAnswerNames(t *testing.T) {
	t.Parallel()
	k := newTask(t, "dns-web")
	if _, _, err := k.client.ConfigEntries().Set(&api.ServiceConfigEntry{
		Kind: api.ServiceDefaults, Name: k.service, Protocol: "tcp",
	}, nil); err != nil {
		t.Fatal(err)
	}
	token := &tokenFile{secret: k.token(t).SecretID}
	for what, c := range map[string]DNSConfig{
		"TLS":       {Servers: newServers(k.consul.GRPCTLSAddr), TLS: fixed(serverTLS()), Token: token.read},
		"plaintext": {Servers: newServers(k.consul.GRPCAddr), Token: token.read},
	} {
		s := startDNS(t, c)
		for _, network := range []string{"udp", "tcp"} {
			if got := addresses(s.ask(t, network, "dns-web.service.consul.", wire.TypeA)); !slices.Equal(got,
				[]string{"127.0.0.1"}) {
				t.Errorf("%s, %s: the service is at %v", what, network, got)
			}
			virtual := addresses(s.ask(t, network, "dns-web.virtual.consul.", wire.TypeA))
			if len(virtual) != 1 || virtual[0][:4] != "240." {
				t.Errorf("%s, %s: the virtual address is %v", what, network, virtual)
			}
			for name, want := range map[string]int{
				"no-such.service.consul.": wire.RcodeNameError, "example.org.": wire.RcodeRefused,
			} {
				if got := s.ask(t, network, name, wire.TypeA); got.Rcode != want {
					t.Errorf("%s, %s: %s has code %d, want %d", what, network, name, got.Rcode, want)
				}
			}
			if got := s.ask(t, network, "1.9.9.10.in-addr.arpa.", wire.TypePTR); got.Rcode != wire.RcodeRefused {
				t.Errorf("%s, %s: an address outside of Consul has code %d, want that of a refusal",
					what, network, got.Rcode)
			}
		}
	}
}

// TestRealServersDoNotAnswerWithoutAToken: what the token must allow.
func TestRealServersDoNotAnswerWithoutAToken(t *testing.T) {
	t.Parallel()
	k := newTask(t, "dns-secret")
	for secret, want := range map[string]int{
		"":                                     wire.RcodeNameError, // the anonymous token
		"00000000-0000-0000-0000-00000000dead": wire.RcodeServerFailure,
		k.token(t).SecretID:                    wire.RcodeSuccess,
	} {
		s := startDNS(t, DNSConfig{Servers: newServers(k.consul.GRPCAddr), Token: (&tokenFile{secret: secret}).read})
		if got := s.ask(t, "udp", "dns-secret.service.consul.", wire.TypeA); got.Rcode != want {
			t.Errorf("token %q: code %d, want %d", secret, got.Rcode, want)
		}
	}
}

// TestRealServersFitTheirAnswers: to what the client takes over UDP, not over TCP.
func TestRealServersFitTheirAnswers(t *testing.T) {
	t.Parallel()
	k := newTask(t, "dns-many")
	for i := range 60 {
		registration := &api.CatalogRegistration{
			Node: fmt.Sprintf("dns-many-%d", i), Address: fmt.Sprintf("10.3.0.%d", i+1),
			Service: &api.AgentService{ID: fmt.Sprintf("dns-many-%d", i), Service: "dns-many", Port: 1},
		}
		if _, err := k.client.Catalog().Register(registration, nil); err != nil {
			t.Fatal(err)
		}
	}
	s := startDNS(t,
		DNSConfig{Servers: newServers(k.consul.GRPCAddr), Token: (&tokenFile{secret: k.token(t).SecretID}).read})
	if n := len(s.ask(t, "tcp", "dns-many.service.consul.", wire.TypeA).Answer); n != 61 {
		t.Errorf("over TCP: %d addresses, want all 61", n)
	}
	if n := len(s.ask(t, "udp", "dns-many.service.consul.", wire.TypeA).Answer); n == 0 || n >= 61 {
		t.Errorf("over UDP: %d addresses, want some", n)
	}
}

// TestNamesOutliveTheServers: a server that is frozen, and one that is gone.
func TestNamesOutliveTheServers(t *testing.T) {
	t.Parallel()
	for _, newest := range []bool{false, true} {
		if newest {
			testkit.Long(t)
		}
		recursor := startRecursor(t, "example.org.", "192.0.2.7")
		consul, err := testkit.StartConsul(testkit.ConsulOptions{
			HCL: `recursors = ["` + recursor + `"]`, Newest: newest,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(consul.Require(t).Stop)
		client, err := consulutil.NewClient(consulutil.Options{Address: consul.HTTPAddr})
		if err != nil {
			t.Fatal(err)
		}
		registration := &api.CatalogRegistration{
			Node: "n", Address: "10.1.2.3", Service: &api.AgentService{ID: "api", Service: "api", Port: 1},
		}
		if _, err := client.Catalog().Register(registration, nil); err != nil {
			t.Fatal(err)
		}
		s := startDNS(t, DNSConfig{Servers: newServers(consul.GRPCAddr)})
		wantNames := func(when string) {
			t.Helper()
			for name, want := range map[string]string{"api.service.consul.": "10.1.2.3", "example.org.": "192.0.2.7"} {
				for _, network := range []string{"udp", "tcp"} {
					if got := addresses(s.ask(t, network, name, wire.TypeA)); !slices.Equal(got, []string{want}) {
						t.Errorf("%s: %s over %s has %v, want %s", when, name, network, got, want)
					}
				}
			}
			if got := s.ask(t, "udp", "api.service.consul.", wire.TypeAAAA); got.Rcode != wire.RcodeSuccess ||
				len(got.Answer) > 0 {
				t.Errorf("%s: AAAA has code %d and %v", when, got.Rcode, got.Answer)
			}
		}
		wantNames("the server serves")
		consul.Freeze(t)
		wantNames("the server is frozen")
		if got := s.ask(t, "udp", "web.service.consul.", wire.TypeA); got.Rcode != wire.RcodeServerFailure {
			t.Errorf("a name that was not asked for has code %d", got.Rcode)
		}
		consul.Stop()
		wantNames("the server is gone")
	}
}
