package relay

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	wire "github.com/miekg/dns"
)

// TestServersThatRefuseAQuery: that is no outage, so nothing older is an answer. Another server may know the
// token already.
func TestServersThatRefuseAQuery(t *testing.T) {
	t.Parallel()
	good := startServer(t, serving(t, "10.0.0.1"))
	for _, code := range []string{invalidArgument, notFound, permissionDenied, unimplemented, unauthenticated} {
		t.Run("status "+code, func(t *testing.T) {
			t.Parallel()
			var refuses atomic.Bool
			serves, refused := serving(t, "10.0.0.2"), refusing(status{code, "not this task"})
			bad := startServer(t, func(w http.ResponseWriter, r *http.Request) {
				if refuses.Load() {
					refused(w, r)
					return
				}
				serves(w, r)
			})
			two := startDNS(t, DNSConfig{Servers: newServers(address(bad), address(good))})
			alone := startDNS(t, DNSConfig{Servers: newServers(address(bad))})
			if got := addresses(alone.ask(t, "udp", "api.service.consul.", wire.TypeA)); !slices.Equal(got,
				[]string{"10.0.0.2"}) {
				t.Fatalf("at first: %v", got)
			}
			refuses.Store(true)
			if got := addresses(two.ask(t, "udp", "api.service.consul.", wire.TypeA)); !slices.Equal(got,
				[]string{"10.0.0.1"}) {
				t.Errorf("with another server: %v", got)
			}
			if got := alone.ask(t, "udp", "api.service.consul.", wire.TypeA); got.Rcode != wire.RcodeRefused {
				t.Errorf("alone: code %d and %v", got.Rcode, got.Answer)
			}
			if alone.asker.limit() != askLimit {
				t.Error("that is taken for an outage")
			}
			for _, want := range []string{"the Consul servers refuse DNS queries", "not this task"} {
				if log := alone.log.String(); !strings.Contains(log, want) {
					t.Errorf("log without %q: %s", want, log)
				}
			}
		})
	}
}
