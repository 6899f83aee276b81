package healthsync

import (
	"errors"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/cli"
)

// waitPause is how late the end of an application may be seen.
const waitPause = 250 * time.Millisecond

// draining runs a test beside a client-entrypoint and the containers that a
// task has besides the application.
func draining(t *testing.T, test func(*fixture)) {
	t.Helper()
	running(t, func(r *fixture) {
		r.file("client-token.owner", "client-entrypoint")
		r.metadata.set(
			map[string]string{"app": "HEALTHY", "worker": "", "sidecar-proxy": "HEALTHY",
				"consul-client": "", "consul-ecs-health-sync": ""}, nil)
		test(r)
	})
}

// TestServiceTokenOutlivesTheApplications: the critical is there at
// once, the logout comes when no application sends through Envoy any more.
func TestServiceTokenOutlivesTheApplications(t *testing.T) {
	t.Parallel()
	draining(t, func(r *fixture) {
		at := time.Now()
		time.AfterFunc(500*time.Millisecond, func() {
			r.wantStatus("app", "critical")
			r.wantLogOuts()
		})
		time.AfterFunc(4*sec, func() { r.metadata.stop("worker") })
		time.AfterFunc(12*sec, func() { r.metadata.stop("app") })
		r.logout.answer = func(string) error {
			if after := time.Since(at); after < 12*sec || after > 12*sec+waitPause {
				t.Errorf("logged out after %s", after)
			}
			return nil
		}
		if _, err := r.term(); err != nil {
			t.Error(err)
		}
		r.wantLogOuts("service-secret")
		// One write: nothing turns passing again, though ECS calls it HEALTHY.
		r.wantOps(op{2500 * time.Millisecond, "set", "app", "critical"})
		if n := r.logged("their last requests need the service token"); n != 2 {
			t.Errorf("%d lines about two states:\n%s", n, r.log)
		}
	})
}

// TestStoppedApplicationsNeedNoToken: ECS stopped them before us, as
// dependsOn may ask.
func TestStoppedApplicationsNeedNoToken(t *testing.T) {
	t.Parallel()
	draining(t, func(r *fixture) {
		r.metadata.stop("app", "worker")
		if took, err := r.term(); err != nil || took != 0 {
			t.Errorf("took %s, %v", took, err)
		}
		r.wantLogOuts("service-secret")
	})
}

func TestLogOutWaitsForNoOthers(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fixture){
		"no client-entrypoint": func(r *fixture) { removeFile(t, r, "client-token.owner") },
		"ignored containers":   func(r *fixture) { r.ignore = []string{"app", "worker"} },
		"no time for it":       func(r *fixture) { r.stop = 12 * sec },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, []string{"app"}, func(r *fixture) {
				r.login("service-secret", "")
				r.file("client-token.owner", "client-entrypoint")
				r.metadata.set(map[string]string{"app": "HEALTHY", "worker": ""}, nil)
				change(r)
				r.run()
				r.advance(500 * time.Millisecond)
				if took, err := r.term(); err != nil || took != 0 {
					t.Errorf("took %s, %v", took, err)
				}
				r.wantLogOuts("service-secret")
			})
		})
	}
}

// TestServiceTokenEndsBeforeTheAgentLeaves: 12 s before KILL, whatever the
// applications and the metadata do.
func TestServiceTokenEndsBeforeTheAgentLeaves(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fixture){
		"the application never stops": func(*fixture) {},
		"metadata fails":              func(r *fixture) { r.metadata.set(nil, errors.New("unreachable")) },
		"metadata hangs":              func(r *fixture) { r.metadata.set(nil, errHang) },
		"another task":                func(r *fixture) { r.metadata.arn += "x" },
		"slow criticals": func(r *fixture) {
			r.agent.setAnswer(func(o op) error {
				if o.At < 12*sec {
					return errServer
				}
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			draining(t, func(r *fixture) {
				change(r)
				took, err := r.term()
				if took != 18*sec || cli.ExitCode(err) != 0 {
					t.Errorf("took %s, %v", took, err)
				}
				r.wantLogOuts("service-secret")
				if n := r.logged("leaving the mesh anyway"); n != 1 {
					t.Errorf("%d lines:\n%s", n, r.log)
				}
				if n := r.logged("task metadata unreadable"); n > 1 {
					t.Errorf("%d lines about one failure:\n%s", n, r.log)
				}
			})
		})
	}
}

func TestMetadataThatComesBackEndsTheWait(t *testing.T) {
	t.Parallel()
	draining(t, func(r *fixture) {
		r.metadata.set(nil, errors.New("unreachable"))
		r.metadata.stop("app", "worker")
		time.AfterFunc(5*sec, func() { r.metadata.set(map[string]string{"app": "", "worker": ""}, nil) })
		r.wantTerm(5*sec, 5*sec+waitPause)
		r.wantLogOuts("service-secret")
	})
}

// TestStoppedAgentEndsTheWait: client-entrypoint takes its marker away. The
// client's token that it could not log out is ours then.
func TestStoppedAgentEndsTheWait(t *testing.T) {
	t.Parallel()
	draining(t, func(r *fixture) {
		time.AfterFunc(3*sec, func() { removeFile(t, r, "client-token.owner") })
		r.wantTerm(3*sec, 3*sec+waitPause)
		r.wantLogOuts("service-secret", "client-secret")
	})
}

// TestClientThatWasKilledEndsTheWait: client-entrypoint could not take its
// marker away, nor log out its token. Both are ours then.
func TestClientThatWasKilledEndsTheWait(t *testing.T) {
	t.Parallel()
	draining(t, func(r *fixture) {
		time.AfterFunc(3*sec, func() { r.metadata.stop("consul-client") })
		r.wantTerm(3*sec, 3*sec+waitPause)
		r.wantLogOuts("service-secret", "client-secret")
	})
}

func TestWaitNeedsNoChecks(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(r *fixture) {
		r.login("service-secret", "client-secret")
		r.file("client-token.owner", "client-entrypoint")
		r.metadata.set(map[string]string{"app": ""}, nil)
		r.run()
		r.advance(sec)
		time.AfterFunc(2*sec, func() { r.metadata.stop("app") })
		r.wantTerm(2*sec, 2*sec+waitPause)
		r.wantLogOuts("service-secret")
	})
}
