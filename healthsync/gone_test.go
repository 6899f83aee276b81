package healthsync

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// agentGone runs test with an agent that refuses connections from the signal on.
func agentGone(t *testing.T, test func(*fixture)) {
	t.Helper()
	for name, gone := range map[string]error{
		"port":   errRefused,
		"socket": fmt.Errorf("dial: %w", syscall.ENOENT),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			running(t, func(r *fixture) {
				r.agent.setAnswer(func(op) error { return gone })
				test(r)
			})
		})
	}
}

func TestServicesOfAStoppedAgentAreDeregisteredAtTheServers(t *testing.T) {
	t.Parallel()
	agentGone(t, func(r *fixture) {
		failures := 2
		r.servers.answer = func(string) error {
			if failures--; failures >= 0 {
				return errServer
			}
			return nil
		}
		took, err := r.term()
		wantEnd(t, took, err, 5*sec, 8*sec)
		if d := cmp.Diff([]string{"web-0f9de17a with service-secret"}, r.servers.distinct()); d != "" {
			t.Errorf("deregistered (-want +got):\n%s", d)
		}
		r.wantLogOuts("service-secret", "client-secret")
		if n := r.logged("deregistered the services at the servers"); n != 1 {
			t.Errorf("%d lines:\n%s", n, r.log)
		}
	})
}

// TestServicesOfAStoppedAgentMayStay: the exit code says so.
func TestServicesOfAStoppedAgentMayStay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer error
		took   time.Duration
	}{
		"servers refuse":        {errDenied, 6 * sec},
		"servers do not answer": {errHang, 18 * sec}, // two thirds of 27 s
		"no servers":            {nil, 6 * sec},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agentGone(t, func(r *fixture) {
				if r.servers.answer = func(string) error { return c.answer }; c.answer == nil {
					r.cfg.ConsulHTTPAddr = ""
				}
				took, err := r.term()
				if took > c.took {
					t.Errorf("took %s, want at most %s", took, c.took)
				}
				wantFailure(t, err, 3, "agent is gone, and its services may still be passing in Consul")
				r.wantLogOuts("service-secret", "client-secret")
			})
		})
	}
}
