package healthsync

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/internal/cli"
)

// running starts a health-sync with one passing check.
func running(t *testing.T, test func(*fixture)) {
	t.Helper()
	inBubble(t, []string{"app"}, func(r *fixture) {
		r.login("service-secret", "client-secret")
		r.metadata.set(healthOf("HEALTHY"), nil)
		r.run()
		r.advance(2500 * time.Millisecond)
		r.wantStatus("app", "passing")
		r.agent.recorded()
		test(r)
	})
}

func (r *fixture) wantLogOuts(want ...string) {
	r.t.Helper()
	if d := cmp.Diff(want, r.logout.distinct()); d != "" {
		r.t.Errorf("logouts (-want +got):\n%s", d)
	}
}

func TestDrainIsImmediateAndOrdered(t *testing.T) {
	t.Parallel()
	running(t, func(r *fixture) {
		r.logout.answer = func(string) error {
			r.wantStatus("app", "critical") // before any logout
			return nil
		}
		if took, err := r.term(); err != nil || took != 0 {
			t.Errorf("took %s, %v", took, err)
		}
		r.wantOps(op{2500 * time.Millisecond, "set", "app", "critical"})
		r.wantLogOuts("service-secret", "client-secret")
		if got := r.agent.checks["app"].output; got != `container "app" belongs to a task that is stopping` {
			t.Errorf("output %q", got)
		}
	})
}

func TestClientTokenBelongsToItsOwner(t *testing.T) {
	t.Parallel()
	running(t, func(r *fixture) {
		r.file("client-token.owner", "client-entrypoint")
		r.term()
		r.wantLogOuts("service-secret")
	})
	running(t, func(r *fixture) {
		removeFile(t, r, "client-token")
		if _, err := r.term(); err != nil {
			t.Error(err)
		}
		r.wantLogOuts("service-secret")
	})
}

func TestWithoutLoginNoTokenIsTouched(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"app"}, func(r *fixture) {
		r.file("service-token", "another task's")
		r.file("client-token", "another task's")
		r.run()
		r.advance(sec)
		r.term()
		r.wantLogOuts()
	})
}

func TestDrainRetriesCritical(t *testing.T) {
	t.Parallel()
	running(t, func(r *fixture) {
		r.agent.setAnswer(func(o op) error {
			if o.At < 12*sec {
				return errServer
			}
			return nil
		})
		took, err := r.term()
		wantEnd(t, took, err, 9500*time.Millisecond, 10*sec)
		r.wantStatus("app", "critical")
		r.wantLogOuts("service-secret", "client-secret")
		if n := r.logged("write critical failed, retrying"); n != 1 {
			t.Errorf("%d lines about one failure:\n%s", n, r.log)
		}
	})
}

func TestDrainWritesAllChecksAtOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"a", "b", "c"}, func(r *fixture) {
		r.metadata.set(map[string]string{"a": "HEALTHY", "b": "HEALTHY", "c": "HEALTHY"}, nil)
		r.run()
		r.advance(500 * time.Millisecond)
		r.agent.setAnswer(func(o op) error {
			if o.Check == "a" {
				return errHang
			}
			return nil
		})
		took, err := r.term()
		if cli.ExitCode(err) != 3 {
			t.Errorf("exit code %d for %v", cli.ExitCode(err), err)
		}
		// No login, so the criticals have the whole budget: 30 s less a tenth.
		if took != 27*sec {
			t.Errorf("took %s", took)
		}
		r.wantStatus("b", "critical")
		r.wantStatus("c", "critical")
	})
}

func TestDrainStaysInsideTheStopTimeout(t *testing.T) {
	t.Parallel()
	for _, stop := range []time.Duration{2 * sec, 30 * sec, 120 * sec} {
		inBubble(t, []string{"app"}, func(r *fixture) {
			r.stop = stop
			r.login("service-secret", "client-secret")
			r.metadata.set(healthOf("HEALTHY"), nil)
			r.run()
			r.advance(500 * time.Millisecond)
			r.agent.setAnswer(func(op) error { return errHang })
			r.logout.answer = func(string) error { return errHang }
			took, err := r.term()
			if took > stop-min(3*sec, stop/10) || took < stop/2 {
				t.Errorf("took %s of %s", took, stop)
			}
			if code := cli.ExitCode(err); code != 3 {
				t.Errorf("exit code %d for %v", code, err)
			}
			// Both tokens got their turn, although the first used up its own.
			r.wantLogOuts("service-secret", "client-secret")
		})
	}
}

func TestDeniedCriticalEndsAtOnceWithExit3(t *testing.T) {
	t.Parallel()
	running(t, func(r *fixture) {
		r.agent.setAnswer(func(op) error { return errDenied })
		took, err := r.term()
		if took != 0 {
			t.Errorf("took %s, want no time", took)
		}
		wantFailure(t, err, 3)
		if !errors.Is(err, errDenied) {
			t.Errorf("error %v, want %v", err, errDenied)
		}
		r.wantLogOuts("service-secret", "client-secret")
	})
}

func TestFailedLogOutIsNoFailure(t *testing.T) {
	t.Parallel()
	running(t, func(r *fixture) {
		r.logout.answer = func(string) error { return errServer }
		if _, err := r.term(); err != nil {
			t.Errorf("%v", err)
		}
		if n := r.logged("token was not logged out; the controller will remove it"); n != 2 {
			t.Errorf("%d lines about two tokens:\n%s", n, r.log)
		}
	})
}

func TestLogOutIsRetried(t *testing.T) {
	t.Parallel()
	running(t, func(r *fixture) {
		failures := 3
		r.logout.answer = func(string) error {
			if failures--; failures >= 0 {
				return errServer
			}
			return nil
		}
		if _, err := r.term(); err != nil {
			t.Error(err)
		}
		if n := r.logged("token logged out"); n != 2 {
			t.Errorf("%d tokens logged out:\n%s", n, r.log)
		}
	})
}

func TestHungMetadataDoesNotDelayTheDrain(t *testing.T) {
	t.Parallel()
	running(t, func(r *fixture) {
		r.metadata.set(nil, errHang)
		r.advance(sec) // the read of 3 s hangs
		if took, err := r.term(); err != nil || took != 0 {
			t.Errorf("took %s, %v", took, err)
		}
		r.wantStatus("app", "critical")
	})
}

func TestAgentThatRestartsIsStillWritten(t *testing.T) {
	t.Parallel()
	running(t, func(r *fixture) {
		r.agent.setAnswer(func(o op) error {
			switch {
			case o.At < 6*sec:
				return errRefused
			case o.At < 10*sec:
				return errServer // no leader yet; the agent is there
			case o.At < 14*sec:
				return errRefused
			default:
				return nil
			}
		})
		if _, err := r.term(); err != nil {
			t.Error(err)
		}
		r.wantStatus("app", "critical")
	})
}

func TestClientTokenIsLoggedOutLast(t *testing.T) {
	t.Parallel()
	running(t, func(r *fixture) {
		r.agent.setAnswer(func(o op) error {
			if o.At < 8*sec {
				return errServer
			}
			return nil
		})
		r.logout.answer = func(secret string) error {
			if at := time.Since(r.logout.start); at < 8*sec {
				t.Errorf("%s logged out at %s, before the agent took the last write", secret, at)
			}
			return nil
		}
		r.term()
		r.wantLogOuts("service-secret", "client-secret")
	})
}

func TestDrainOfAForgetfulAgent(t *testing.T) {
	t.Parallel()
	running(t, func(r *fixture) {
		r.agent.forget()
		if _, err := r.term(); err != nil {
			t.Error(err)
		}
		// The service is there without its check, which would mean passing.
		r.wantOps(op{2500 * time.Millisecond, "set", "app", "critical"},
			op{2500 * time.Millisecond, "ensure", "app", "critical"})
		r.wantStatus("app", "critical")
	})
	running(t, func(r *fixture) {
		r.agent.forget()
		r.agent.lost = true
		if took, err := r.term(); err != nil || took != 0 {
			t.Errorf("took %s, %v", took, err)
		}
		// No service, no traffic.
		r.wantOps(op{2500 * time.Millisecond, "set", "app", "critical"},
			op{2500 * time.Millisecond, "ensure", "app", "critical"})
	})
}

func TestTermBeforeTheFirstMetadata(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		metadataBack bool
		exit         int
		took         time.Duration
	}{
		"metadata comes back in time": {true, 0, 0},
		"metadata stays away":         {false, 3, 5 * sec},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, []string{"app"}, func(r *fixture) {
				r.login("service-secret", "client-secret")
				r.agent.checks["app"] = &ttlCheck{"passing", "", 100000 * time.Hour, time.Now()}
				r.metadata.set(nil, errHang)
				r.run()
				r.advance(sec)
				if tc.metadataBack {
					r.metadata.set(healthOf("HEALTHY"), nil)
				}
				took, err := r.term()
				if took != tc.took || cli.ExitCode(err) != tc.exit {
					t.Errorf("took %s, exit code %d for %v", took, cli.ExitCode(err), err)
				}
				if tc.metadataBack {
					r.wantOps(op{sec, "set", "app", "critical"})
				}
				r.wantLogOuts("service-secret", "client-secret")
			})
		})
	}
}

func TestTermBeforeTheToken(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"app"}, func(r *fixture) {
		r.cfg.ConsulLogin.Enabled = true
		r.file("client-token", "client-secret")
		r.run()
		r.advance(sec)
		if took, err := r.term(); err != nil || took != 0 {
			t.Errorf("took %s, %v", took, err)
		}
		r.wantOps()
		r.wantLogOuts("client-secret")
	})
}
