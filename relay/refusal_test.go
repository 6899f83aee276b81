package relay

import (
	"net/http"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestPermanentRefusalIsReportedByTwoServersOrTheOnlyOne(t *testing.T) {
	t.Parallel()
	old := refusing(status{"3", "Envoy 1.20.0 is too old and is not supported by Consul"})
	missing := refusing(status{"12", "unknown service"})
	for name, tc := range map[string]struct {
		handlers []http.HandlerFunc
		streams  int
		want     int // calls of Refused
		log      string
		moves    bool
	}{
		"the only server": {[]http.HandlerFunc{old}, 1, 1, "[ERROR] xDS stream ended", true},
		"one of two":      {[]http.HandlerFunc{old, echoing("two")}, 1, 0, "[WARN]  xDS stream ended", true},
		"two of three":    {[]http.HandlerFunc{old, missing, echoing("three")}, 2, 1, "[ERROR] xDS stream ended", true},
		"the same twice": {
			[]http.HandlerFunc{old, refusing(status{"14", "starts"})}, 3, 0,
			"[WARN]  xDS stream ended", true,
		},
		"another refusal": {
			[]http.HandlerFunc{refusing(status{"7", "Permission denied"})}, 1, 0,
			"[WARN]  xDS stream ended", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var addresses []string
			for _, h := range tc.handlers {
				addresses = append(addresses, address(startServer(t, h)))
			}
			calls := make(chan struct{}, 10)
			set := newServers(addresses...)
			r := startXDS(t, XDSConfig{Servers: set, Refused: func() { calls <- struct{}{} }})
			for i := range tc.streams {
				r.open(t, deltaPath).status()
				if tc.moves {
					testkit.Eventually(t, "the next server's turn", func() bool { return len(set.failures()) == i+1 })
				}
			}
			r.logged(t, tc.log)
			r.stop()
			<-r.ended
			if got := len(calls); got != tc.want {
				t.Errorf("reported %d times, want %d", got, tc.want)
			}
		})
	}
}

// The servers were upgraded under a running Envoy.
func TestLaterRefusalIsOneError(t *testing.T) {
	t.Parallel()
	serves := make(chan bool, 1)
	serves <- true
	srv := startServer(t, func(w http.ResponseWriter, req *http.Request) {
		select {
		case <-serves:
			echoing("one")(w, req)
		default:
			refusing(status{"3", "too old"})(w, req)
		}
	})
	r := startXDS(t, XDSConfig{Servers: newServers(address(srv)), Refused: func() { t.Error("reported") }})
	c := r.open(t, deltaPath)
	c.receive(3)
	c.send.Close()
	c.status()
	for range 5 {
		r.open(t, deltaPath).status()
	}
	r.stop()
	<-r.ended
	if got := strings.Count(r.log.String(), "[ERROR]"); got != 1 {
		t.Errorf("%d errors, want 1:\n%s", got, r.log)
	}
}
