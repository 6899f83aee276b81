package healthsync

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/internal/cli"
)

const sec = time.Second

func healthOf(app string) map[string]string { return map[string]string{"app": app} }

func (r *fixture) wantOps(want ...op) {
	r.t.Helper()
	if d := cmp.Diff(want, r.agent.recorded()); d != "" {
		r.t.Errorf("writes (-want +got):\n%s", d)
	}
}

func TestFirstPassIsImmediate(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"app"}, func(r *fixture) {
		r.metadata.set(healthOf("HEALTHY"), nil)
		r.run()
		r.advance(0)
		r.wantOps(op{0, "ensure", "app", "passing"})
		r.advance(999 * time.Millisecond)
		r.wantOps()
		r.term()
		r.wantOps(op{999 * time.Millisecond, "set", "app", "critical"})
	})
}

func TestHealthyHourMakesRefreshesOnly(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"app"}, func(r *fixture) {
		r.metadata.set(healthOf("HEALTHY"), nil)
		r.run()
		r.advance(time.Hour - 500*time.Millisecond)
		ops := r.agent.recorded()
		// One registration, and refreshes at 10, 20 ... 3590 s.
		if len(ops) != 360 || ops[0] != (op{0, "ensure", "app", "passing"}) ||
			ops[359] != (op{3590 * sec, "set", "app", "passing"}) {
			t.Errorf("%d writes, from %v to %v", len(ops), ops[0], ops[len(ops)-1])
		}
		if r.metadata.reads != 7200 {
			t.Errorf("%d metadata reads, want 7200", r.metadata.reads)
		}
		if n := r.logged(""); n != 2 {
			t.Errorf("%d log lines in a quiet hour, want 2:\n%s", n, r.log)
		}
		r.term()
	})
}

func TestMissingContainerIsWrittenOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"app"}, func(r *fixture) {
		r.run()
		r.advance(59500 * time.Millisecond)
		r.wantOps(
			op{0, "ensure", "app", "critical"}, // the one write of this minute
			op{10 * sec, "set", "app", "critical"},
			op{20 * sec, "set", "app", "critical"},
			op{30 * sec, "set", "app", "critical"},
			op{40 * sec, "set", "app", "critical"},
			op{50 * sec, "set", "app", "critical"},
		)
		if r.logged("previous_status") != 0 {
			t.Errorf("claims to know the status before the first write:\n%s", r.log)
		}
		if n := r.logged("check status changed"); n != 1 {
			t.Errorf("%d lines about one transition:\n%s", n, r.log)
		}
		r.term()
	})
}

func TestChangesReachConsulWithinATick(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"app", "side"}, func(r *fixture) {
		r.metadata.set(map[string]string{"app": "", "side": "HEALTHY", "log-router": "UNHEALTHY"}, nil)
		r.run()
		r.advance(750 * time.Millisecond)
		r.wantStatus("app", "critical")
		r.wantStatus("side", "passing")
		r.wantStatus("log-router", "absent")
		for _, step := range []struct{ app, side, wantApp, wantSide string }{
			{"HEALTHY", "HEALTHY", "passing", "passing"},
			{"UNHEALTHY", "HEALTHY", "critical", "passing"},
			{"HEALTHY", "UNKNOWN", "passing", "critical"},
			{"HEALTHY", "HEALTHY", "passing", "passing"},
			{"", "HEALTHY", "critical", "passing"},
		} {
			r.metadata.set(map[string]string{"app": step.app, "side": step.side}, nil)
			r.advance(sec / 2)
			r.wantStatus("app", step.wantApp)
			r.wantStatus("side", step.wantSide)
		}
		r.metadata.set(map[string]string{"side": "HEALTHY"}, nil)
		r.advance(sec / 2)
		r.wantStatus("app", "critical")
		r.metadata.set(map[string]string{"app": "HEALTHY", "side": "HEALTHY"}, nil)
		r.advance(sec / 2)
		r.wantStatus("app", "passing")
		if _, err := r.term(); err != nil {
			t.Error(err)
		}
		r.wantStatus("app", "critical")
		r.wantStatus("side", "critical")
	})
}

// An error document changes nothing: it must not mark containers missing. Without a port that
// vouches for them, checks expire after five minutes.
func TestInvalidMetadataChangesNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"app"}, func(r *fixture) {
		r.metadata.set(healthOf("HEALTHY"), nil)
		r.run()
		r.advance(20500 * time.Millisecond)
		r.wantOps(op{0, "ensure", "app", "passing"}, op{10 * sec, "set", "app", "passing"},
			op{20 * sec, "set", "app", "passing"})
		r.metadata.set(nil, errors.New("status 500"))
		r.advance(5*time.Minute + 19*sec)
		r.wantStatus("app", "passing") // the last valid answer still counts ...
		r.advance(12 * sec)
		r.wantStatus("app", "critical") // ... until its TTL runs out
		for _, o := range r.agent.recorded() {
			if o.Status != "passing" {
				t.Errorf("wrote %v", o)
			}
		}
		r.metadata.set(healthOf("HEALTHY"), nil)
		r.advance(sec)
		r.wantStatus("app", "passing")
		if lost, back := r.logged("task metadata unreadable"),
			r.logged("task metadata readable again"); lost != 1 || back != 1 {
			t.Errorf("%d and %d lines about the outage:\n%s", lost, back, r.log)
		}
		r.term()
	})
}

func TestMetadataOfAnotherTaskChangesNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"app"}, func(r *fixture) {
		r.metadata.set(healthOf("HEALTHY"), nil)
		r.run()
		r.advance(500 * time.Millisecond)
		r.agent.recorded()
		r.metadata.mu.Lock()
		r.metadata.arn = taskARN + "ff"
		r.metadata.mu.Unlock()
		r.metadata.set(healthOf("UNHEALTHY"), nil)
		r.advance(20 * sec)
		r.wantOps(op{10 * sec, "set", "app", "passing"}, op{20 * sec, "set", "app", "passing"})
		r.term()
	})
}

func TestFirstMetadataReadIsRetried(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"app"}, func(r *fixture) {
		r.metadata.set(nil, errors.New("connection refused"))
		r.run()
		r.advance(2 * time.Minute)
		r.wantOps()
		r.metadata.set(healthOf("HEALTHY"), nil)
		r.advance(sec)
		r.wantStatus("app", "passing")
		r.term()
	})
}

func TestStartEndsAfterThreeMinutes(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"app"}, func(r *fixture) {
		r.login("service-secret", "client-secret")
		r.metadata.set(nil, errors.New("connection refused"))
		began := time.Now()
		r.run()
		<-r.done
		if took := r.ended.Sub(began); took != 3*time.Minute {
			t.Errorf("gave up after %s", took)
		}
		if code := cli.ExitCode(r.err); code != 3 {
			t.Errorf("exit code %d for %v", code, r.err)
		}
		// The task runs on with these tokens.
		if got := r.logout.distinct(); got != nil {
			t.Errorf("logged out %q", got)
		}
	})
}

func TestFamilyThatIsNoServiceNameIsRefusedBeforeAnyCall(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"app"}, func(r *fixture) {
		r.cfg.Service.Name = ""
		r.metadata.family = "Not A Name"
		r.run()
		r.advance(0)
		<-r.done
		if code := cli.ExitCode(r.err); code != 1 {
			t.Errorf("exit code %d for %v", code, r.err)
		}
	})
}

// An operator who looks at the last minute of a log sees that the checks are not written.
func TestWriteThatFailsForLongIsLoggedEveryTenSeconds(t *testing.T) {
	t.Parallel()
	running(t, func(r *fixture) {
		r.agent.setAnswer(func(op) error { return errDenied })
		r.advance(41 * sec)
		if n := r.logged("check write failed"); n != 4 {
			t.Errorf("%d lines, want 4:\n%s", n, r.log)
		}
	})
}

func TestFailedWriteIsRetriedAfterASecondAndLoggedOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"app"}, func(r *fixture) {
		r.metadata.set(healthOf("UNHEALTHY"), nil)
		r.run()
		r.advance(250 * time.Millisecond)
		r.agent.recorded()
		r.agent.setAnswer(func(op) error { return errServer })
		r.metadata.set(healthOf("HEALTHY"), nil)
		r.advance(1500 * time.Millisecond)
		r.wantOps(op{sec / 2, "set", "app", "passing"}, op{3 * sec / 2, "set", "app", "passing"})
		if n := r.logged("check write failed"); n != 1 {
			t.Errorf("%d lines about one failure:\n%s", n, r.log)
		}
		r.agent.setAnswer(func(op) error { return errDenied })
		r.advance(2 * sec)
		if n := r.logged("check write failed"); n != 2 {
			t.Errorf("%d lines after another kind of failure:\n%s", n, r.log)
		}
		r.agent.setAnswer(nil)
		r.advance(sec)
		r.wantStatus("app", "passing")
		if n := r.logged("check write works again"); n != 1 {
			t.Errorf("%d lines about the recovery:\n%s", n, r.log)
		}
		r.term()
	})
}

func TestFailedRefreshIsRetriedAfterASecond(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"app"}, func(r *fixture) {
		r.metadata.set(healthOf("UNHEALTHY"), nil)
		r.run()
		r.advance(9500 * time.Millisecond)
		r.agent.recorded()
		r.agent.setAnswer(func(o op) error {
			if o.At < 11*sec {
				return errServer
			}
			return nil
		})
		r.advance(13 * sec)
		r.wantOps(op{10 * sec, "set", "app", "critical"},
			op{11 * sec, "set", "app", "critical"}, op{21 * sec, "set", "app", "critical"})
		r.term()
	})
}

func TestOneSlowCheckDoesNotDelayTheOthers(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"a", "b"}, func(r *fixture) {
		r.agent.setAnswer(func(o op) error {
			if o.Check == "a" {
				return errHang
			}
			return nil
		})
		r.metadata.set(map[string]string{"a": "HEALTHY", "b": "HEALTHY"}, nil)
		r.run()
		r.advance(0)
		r.wantStatus("b", "passing")
		// The agent answers nothing for a; b keeps its TTL all the same.
		for range 120 {
			r.advance(sec)
			r.wantStatus("b", "passing")
		}
		r.term()
	})
}

func TestAgentThatLostItsStateIsRepaired(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"app"}, func(r *fixture) {
		r.metadata.set(healthOf("HEALTHY"), nil)
		r.run()
		r.advance(5500 * time.Millisecond)
		r.agent.recorded()

		r.agent.forget()
		r.advance(5 * sec)
		r.wantOps(op{10 * sec, "set", "app", "passing"}, op{10 * sec, "ensure", "app", "passing"})
		r.wantStatus("app", "passing")
		if n := r.logged("consul had lost the check, registered it again"); n != 1 {
			t.Errorf("%d lines about the repair:\n%s", n, r.log)
		}
		r.term()
	})
}

func TestOldTTLIsReplacedOnceTheStatusIsKnown(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"app"}, func(r *fixture) {
		r.agent.checks["app"] = &ttlCheck{"passing", "", 100000 * time.Hour, time.Now()}
		r.metadata.set(nil, errors.New("not yet"))
		r.run()
		r.advance(10 * sec)
		r.wantOps()
		r.wantStatus("app", "passing")
		r.metadata.set(healthOf("HEALTHY"), nil)
		r.advance(2 * sec)
		r.wantStatus("app", "passing")
		if ttl := r.agent.checks["app"].ttl; ttl != 30*sec {
			t.Errorf("ttl %s", ttl)
		}
		r.term()
	})
}

// A passing write whose answer never came may be applied after its status has gone.
func TestLateWriteDoesNotOutliveTwoSeconds(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"app"}, func(r *fixture) {
		r.agent.late = 1300 * time.Millisecond
		r.metadata.set(healthOf("UNHEALTHY"), nil)
		r.run()
		r.advance(250 * time.Millisecond)
		r.agent.setAnswer(func(o op) error {
			if o.Status == "passing" {
				return errHang
			}
			return nil
		})
		r.metadata.set(healthOf("HEALTHY"), nil)
		r.advance(sec) // the write hangs from 0.5 s on, until 5.5 s
		r.metadata.set(healthOf("UNHEALTHY"), nil)
		r.advance(5650 * time.Millisecond) // 6.9 s: applied at 6.8 s
		r.wantStatus("app", "passing")
		r.advance(1900 * time.Millisecond)
		r.wantStatus("app", "critical")
		r.term()
	})
}

// TestContainerThatTheTaskDoesNotHaveIsWarnedAboutOnce gives ECS time to create it.
func TestContainerThatTheTaskDoesNotHaveIsWarnedAboutOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		comes time.Duration
		want  int
	}{"never": {time.Hour, 1}, "after 20 s": {20 * sec, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, []string{"app", "sdie"}, func(r *fixture) {
				r.metadata.set(map[string]string{"app": "HEALTHY", "side": "HEALTHY"}, nil)
				r.run()
				r.advance(min(tt.comes, 10*time.Minute))
				r.metadata.set(map[string]string{"app": "HEALTHY", "side": "HEALTHY", "sdie": "HEALTHY"}, nil)
				r.advance(time.Minute)
				const line = `[WARN]  service stays critical in Consul: task_id=0f9de17a container=sdie reason=` +
					`"container \"sdie\" is not in the task metadata: correct healthSyncContainers, the task has `
				if n := r.logged(line); n != tt.want {
					t.Errorf("%d warnings, want %d:\n%s", n, tt.want, r.log)
				}
			})
		})
	}
}

func TestContainersWithoutHealthCheckAreWarnedAboutOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		health map[string]string
		want   int
	}{
		"one":     {map[string]string{"app": noHealthCheck, "side": "HEALTHY"}, 1},
		"two":     {map[string]string{"app": noHealthCheck, "side": noHealthCheck}, 2},
		"waiting": {map[string]string{"app": "", "side": "HEALTHY"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, []string{"app", "side"}, func(r *fixture) {
				r.metadata.set(tt.health, nil)
				r.run()
				r.advance(10 * time.Minute)
				r.wantStatus("app", "critical")
				if n := r.logged("[WARN]"); n != tt.want {
					t.Errorf("%d warnings, want %d:\n%s", n, tt.want, r.log)
				}
				const remedy = `[WARN]  service stays critical in Consul: task_id=0f9de17a container=app ` +
					`reason="container \"app\" has no ECS health check: add healthCheck to its container definition`
				if n := r.logged(remedy); n != min(tt.want, 1) {
					t.Errorf("%d lines name the remedy:\n%s", n, r.log)
				}
			})
		})
	}
}

// TestLogFollowsTheReason: who reads the log of a service that stays critical must find why it is now.
func TestLogFollowsTheReason(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"app"}, func(r *fixture) {
		r.metadata.set(healthOf(""), nil)
		r.run()
		r.advance(sec)
		r.metadata.set(healthOf("UNHEALTHY"), nil)
		r.advance(time.Minute)
		if n := r.logged(
			`check reason changed: task_id=0f9de17a check_id=web-0f9de17a-app-consul-ecs container=app ` +
				`status=critical reason="container \"app\" is UNHEALTHY in ECS"`); n != 1 {
			t.Errorf("%d lines about the new reason:\n%s", n, r.log)
		}
	})
}
