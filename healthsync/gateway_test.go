package healthsync

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/workload"
)

const gatewayID = "web-0f9de17a"

// inGateway runs a test of a gateway's health-sync with login, whose agent stays.
func inGateway(t *testing.T, test func(*fixture)) {
	t.Helper()
	inBubble(t, nil, func(r *fixture) {
		r.cfg.Gateway = &config.Gateway{Kind: "mesh-gateway", Name: "web"}
		r.login("service-secret", "client-secret")
		r.file(workload.FileClientTokenOwner, "x")
		r.metadata.address = "10.0.0.9" // where the agent checks the listener
		r.metadata.set(map[string]string{"sidecar-proxy": ""}, nil)
		test(r)
	})
}

// TestGatewayIsDeregisteredAtTheEnd: it serves from the start, also after an earlier run of
// the container, and its token outlives its proxy.
func TestGatewayIsDeregisteredAtTheEnd(t *testing.T) {
	t.Parallel()
	inGateway(t, func(r *fixture) {
		r.agent.out = true // an earlier run was stopped
		r.run()
		r.advance(time.Hour)
		if r.agent.out {
			t.Error("not registered while it serves")
		}
		r.wantOps(op{0, "register", gatewayID, ""}, op{0, "publish", gatewayID, ""})
		time.AfterFunc(2*sec, func() { r.metadata.stop("sidecar-proxy") })
		took, err := r.term()
		wantEnd(t, took, err, 2*sec, 3*sec)
		if !r.agent.out {
			t.Error("still registered after TERM")
		}
		r.wantOps(op{time.Hour, "deregister", gatewayID, ""})
		if d := cmp.Diff([]string{"service-secret"}, r.logout.distinct()); d != "" {
			t.Error(d)
		}
	})
}

// TestGatewayIsRegisteredOnce: an agent that takes a registration again loses changes of checks
// that it has not sent to the servers.
func TestGatewayIsRegisteredOnce(t *testing.T) {
	t.Parallel()
	inGateway(t, func(r *fixture) {
		r.run()
		r.advance(sec)
		r.wantOps(op{0, "publish", gatewayID, ""})
		r.metadata.stop("sidecar-proxy")
		if _, err := r.term(); err != nil {
			t.Error(err)
		}
	})
}

// TestGatewayWhoseProxyKeepsRunning: ECS may stop the proxy after health-sync.
func TestGatewayWhoseProxyKeepsRunning(t *testing.T) {
	t.Parallel()
	inGateway(t, func(r *fixture) {
		r.run()
		r.advance(sec)
		r.wantTerm(5*sec, 7*sec)
		if d := cmp.Diff([]string{"service-secret"}, r.logout.distinct()); d != "" {
			t.Error(d)
		}
	})
}

// TestGatewayServesWithoutMetadata: the end of health-sync may be that of the task.
func TestGatewayServesWithoutMetadata(t *testing.T) {
	t.Parallel()
	inGateway(t, func(r *fixture) {
		r.metadata.set(nil, errors.New("unreachable"))
		r.run()
		r.advance(time.Hour)
		select {
		case <-r.done:
			t.Fatalf("ended: %v", r.err)
		default:
		}
		r.wantOps()
		if _, err := r.term(); cli.ExitCode(err) != 3 {
			t.Errorf("exit code %d for %v, want 3: it may still be passing", cli.ExitCode(err), err)
		}
	})
}

func TestGatewayOfAFailingAgent(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		registered bool  // at the start
		start, end error // the agent's answers to the writes, the first ten of the end
		code       int
	}{
		"that restarts":                 {false, errRefused, errRefused, 0},
		"that fails":                    {false, errServer, errServer, 0},
		"that refuses":                  {true, errDenied, errDenied, 3},
		"that refuses the registration": {false, errDenied, nil, 0},
		"that does not answer":          {false, errHang, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inGateway(t, func(r *fixture) {
				r.agent.out = !tt.registered
				failures := 0
				r.agent.setAnswer(func(o op) error {
					if o.Verb != "deregister" {
						return tt.start
					}
					if failures++; failures > 10 {
						return nil
					}
					return tt.end
				})
				r.run()
				r.advance(time.Minute)
				r.metadata.stop("sidecar-proxy")
				if _, err := r.term(); cli.ExitCode(err) != tt.code {
					t.Errorf("exit code %d for %v, want %d", cli.ExitCode(err), err, tt.code)
				}
				if r.agent.out != (tt.code == 0) || failures == 0 {
					t.Errorf("deregistered: %t, after %d attempts", r.agent.out, failures)
				}
				if r.err != nil && !strings.HasPrefix(r.err.Error(), `deregister gateway "web-0f9de17a": `) {
					t.Errorf("error %v", r.err)
				}
				if n := r.logged("write critical"); n != 0 {
					t.Errorf("%d lines about critical:\n%s", n, r.log)
				}
			})
		})
	}
}

// TestRefusedRegistrationIsRepeated: with the token of the file, which a new login of
// mesh-init replaces.
func TestRefusedRegistrationIsRepeated(t *testing.T) {
	t.Parallel()
	inGateway(t, func(r *fixture) {
		r.agent.out = true // an earlier run was stopped
		r.agent.token = "new-secret"
		r.run()
		r.advance(time.Hour)
		if !r.agent.out {
			t.Error("registered without a token that the agent takes")
		}
		r.file(workload.FileServiceToken, "new-secret")
		r.advance(2 * sec)
		if r.agent.out {
			t.Error("not registered with the new token")
		}
		r.metadata.stop("sidecar-proxy")
		if _, err := r.term(); err != nil {
			t.Error(err)
		}
	})
}

// TestLateRegistrationDoesNotOutliveTheEnd: the agent may apply the two writes in either
// order.
func TestLateRegistrationDoesNotOutliveTheEnd(t *testing.T) {
	t.Parallel()
	inGateway(t, func(r *fixture) {
		r.agent.out = true // an earlier run was stopped
		r.agent.late = 500 * time.Millisecond
		r.agent.setAnswer(func(o op) error {
			if o.Verb == "register" {
				return errHang
			}
			return nil
		})
		r.run()
		r.advance(sec)
		r.metadata.stop("sidecar-proxy")
		if _, err := r.term(); err != nil {
			t.Error(err)
		}
		r.advance(time.Minute)
		if !r.agent.out {
			t.Error("a write of the start registered the gateway again")
		}
	})
}

// TestGatewayWithoutAnAgent registers one check, and deregisters after its proxy.
func TestGatewayWithoutAnAgent(t *testing.T) {
	t.Parallel()
	atServers(t, []string{"app"}, func(r *fixture) {
		r.cfg.Gateway = &config.Gateway{Kind: "api-gateway", Name: "web", HealthCheckPort: 22001}
		r.login("service-secret", "")
		r.metadata.set(map[string]string{"consul-dataplane": "HEALTHY"}, nil)
		r.run()
		r.advance(2500 * time.Millisecond)
		r.wantPuts(put{0, map[string]string{"consul-dataplane": "passing"}})
		r.wantTerm(5*sec, 7*sec)
		r.wantPuts(put{2500 * time.Millisecond, map[string]string{"consul-dataplane": "critical"}})
		if d := cmp.Diff([]string{"web-0f9de17a with service-secret"}, r.servers.distinct()); d != "" {
			t.Error(d)
		}
		r.wantLogOuts("service-secret")
	})
}

// TestMeshGatewayIsDeregisteredFirst: across a federation Consul sends traffic to it whatever
// its check is, so its proxy, which ends 3 s later, outlives the registration. Nothing else
// is written at TERM, which could delay that.
func TestMeshGatewayIsDeregisteredFirst(t *testing.T) {
	t.Parallel()
	atServers(t, nil, func(r *fixture) {
		r.cfg.Gateway = &config.Gateway{Kind: "mesh-gateway", Name: "web"}
		r.metadata.set(map[string]string{"sidecar-proxy": "HEALTHY"}, nil)
		r.login("service-secret", "")
		r.run()
		r.advance(500 * time.Millisecond)
		var deregistered []time.Duration
		r.servers.answer = func(string) error {
			deregistered = append(deregistered, time.Since(r.servers.start))
			return nil
		}
		r.wantPuts(put{0, map[string]string{"consul-dataplane": "passing"}})
		r.catalog.setAnswer(func(put) error { return errHang })
		time.AfterFunc(3*sec, func() { r.metadata.stop("sidecar-proxy") })
		r.wantTerm(3*sec, 4*sec)
		if d := cmp.Diff([]time.Duration{500 * time.Millisecond}, deregistered); d != "" {
			t.Errorf("deregistered at (-want +got):\n%s", d)
		}
		r.wantPuts()
		for text, want := range map[string]int{"deregistered the gateway": 1, "after their last requests": 0} {
			if n := r.logged(text); n != want {
				t.Errorf("%d lines with %q, want %d:\n%s", n, text, want, r.log)
			}
		}
		r.wantLogOuts("service-secret")
	})
}

// TestMeshGatewayIsDeregisteredAgain: the servers may apply a passing write without an answer
// late. What is not deregistered at TERM is tried once more at the end.
func TestMeshGatewayIsDeregisteredAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		write, deregister error
		want              []time.Duration // of the deregistrations after TERM
		exit              int
	}{
		"after a passing write that was cut off": {errHang, nil, []time.Duration{0, sec}, 0},
		"after a refusal":                        {nil, errDenied, []time.Duration{0, 0}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atServers(t, nil, func(r *fixture) {
				r.cfg.Gateway = &config.Gateway{Kind: "mesh-gateway", Name: "web"}
				r.metadata.set(map[string]string{"sidecar-proxy": "HEALTHY"}, nil)
				r.catalog.setAnswer(func(put) error { return tc.write })
				r.run()
				r.advance(500 * time.Millisecond)
				r.metadata.stop("sidecar-proxy")
				at := time.Now()
				var got []time.Duration
				r.servers.answer = func(string) error {
					got = append(got, time.Since(at))
					return tc.deregister
				}
				if _, err := r.term(); cli.ExitCode(err) != tc.exit {
					t.Errorf("exit code %d for %v, want %d", cli.ExitCode(err), err, tc.exit)
				}
				if d := cmp.Diff(tc.want, got); d != "" {
					t.Errorf("deregistered after (-want +got):\n%s", d)
				}
			})
		})
	}
}
