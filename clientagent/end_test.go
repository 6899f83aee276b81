package clientagent

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
)

// serve starts a client-entrypoint whose agent runs for an hour.
func serve(t *testing.T, test func(*fixture)) {
	t.Helper()
	inBubble(t, func(r *fixture) {
		r.run()
		r.wantHistory("0s log in", "0s start")
		r.wantFiles("client-token", "client-token.owner", "consul-client/agent.json")
		r.start = time.Now()
		test(r)
	})
}

// TestAgentOutlivesTheSiblings: older ECS agents send TERM to all
// containers at once. The agent stays for the critical write, the traffic of
// the application and Envoy, and its token for its leave.
func TestAgentOutlivesTheSiblings(t *testing.T) {
	t.Parallel()
	serve(t, func(r *fixture) {
		r.signals <- syscall.SIGTERM
		r.advance(5 * sec)
		r.stop("consul-ecs-health-sync")
		r.advance(5 * sec)
		r.stop("web")
		r.advance(sec)
		r.wantHistory()
		r.stop("sidecar-proxy")
		if err := r.wait(); err != nil {
			t.Error(err)
		}
		r.wantHistory("11.25s signal terminated", "14.25s agent ended 0", "14.25s log out secret-1")
		r.wantFiles()
		for text, want := range map[string]int{"leaves after the other containers": 1, "waiting for containers": 3,
			"all other containers have stopped": 1, "logged out": 1, "WARN": 0, "ERROR": 0} {
			if n := r.logged(text); n != want {
				t.Errorf("%d lines with %q, want %d:\n%s", n, text, want, r.log)
			}
		}
	})
}

// TestStoppedSiblingsNeedNoAgent: newer ECS agents stop the client
// last.
func TestStoppedSiblingsNeedNoAgent(t *testing.T) {
	t.Parallel()
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		serve(t, func(r *fixture) {
			r.stop("web", "sidecar-proxy", "consul-ecs-health-sync")
			r.signals <- sig
			if err := r.wait(); err != nil {
				t.Error(err)
			}
			r.wantHistory("0s signal terminated", "3s agent ended 0", "3s log out secret-1")
			r.wantFiles()
		})
	}
}

// TestAgentLeavesThoughContainersRun: the agent leaves 10 s before KILL.
func TestAgentLeavesThoughContainersRun(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*metadata){
		"an application never stops": func(*metadata) {},
		"metadata fails":             func(m *metadata) { m.err = errFault },
		"metadata hangs":             func(m *metadata) { m.hang = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			serve(t, func(r *fixture) {
				r.metadata.set(change)
				r.signals <- syscall.SIGTERM
				if err := r.wait(); err != nil {
					t.Error(err)
				}
				r.wantHistory("20s signal terminated", "23s agent ended 0", "23s log out secret-1")
				if n := r.logged("task metadata unreadable"); n > 1 {
					t.Errorf("%d lines about one failure:\n%s", n, r.log)
				}
				r.metadata.set(func(m *metadata) {
					if after := m.last.Sub(r.start); after > 20*sec {
						t.Errorf("metadata is read after %s, when the agent leaves", after)
					}
				})
			})
		})
	}
}

func TestMetadataThatComesBackEndsTheWait(t *testing.T) {
	t.Parallel()
	serve(t, func(r *fixture) {
		r.metadata.set(func(m *metadata) { m.err = errFault })
		r.stop("web", "sidecar-proxy", "consul-ecs-health-sync")
		r.signals <- syscall.SIGTERM
		r.advance(4 * sec)
		r.metadata.set(func(m *metadata) { m.err = nil })
		r.advance(250 * time.Millisecond)
		r.wantHistory("4.25s signal terminated")
		if err := r.wait(); err != nil {
			t.Error(err)
		}
	})
}

func TestIgnoredContainersAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *fixture) {
		r.options.Ignore = []string{"web", "consul-ecs-health-sync", "sidecar-proxy"}
		r.run()
		r.signals <- syscall.SIGTERM
		if err := r.wait(); err != nil {
			t.Error(err)
		}
		r.wantHistory("0s log in", "0s start", "0s signal terminated", "3s agent ended 0", "3s log out secret-1")
	})
}

// TestSecondTermChangesNothing: consul would take it as an order to die.
func TestSecondTermChangesNothing(t *testing.T) {
	t.Parallel()
	serve(t, func(r *fixture) {
		for range 3 {
			r.signals <- syscall.SIGTERM
			r.advance(sec)
			r.signals <- syscall.SIGINT
			r.advance(sec)
		}
		r.stop("web", "sidecar-proxy", "consul-ecs-health-sync")
		r.advance(sec)
		r.signals <- syscall.SIGTERM
		if err := r.wait(); err != nil {
			t.Error(err)
		}
		r.wantHistory("6.25s signal terminated", "9.25s agent ended 0", "9.25s log out secret-1")
	})
}

func TestOtherSignalsReachTheAgent(t *testing.T) {
	t.Parallel()
	serve(t, func(r *fixture) {
		r.signals <- syscall.SIGHUP // consul reloads its configuration
		r.advance(sec)
		r.signals <- syscall.SIGTERM
		r.advance(sec)
		r.signals <- syscall.SIGUSR1
		r.advance(sec)
		r.wantHistory("0s signal hangup", "2s signal user defined signal 1")
		r.stop("web", "sidecar-proxy", "consul-ecs-health-sync")
		r.wait()
	})
}

// TestAgentThatDoesNotLeaveIsKilled: the logout still has its time.
func TestAgentThatDoesNotLeaveIsKilled(t *testing.T) {
	t.Parallel()
	serve(t, func(r *fixture) {
		r.child.leave = -1
		r.signals <- syscall.SIGTERM
		if code := cli.ExitCode(r.wait()); code != 137 {
			t.Errorf("exit code %d", code)
		}
		r.wantHistory("20s signal terminated", "27.5s signal killed to the group",
			"27.5s agent ended 137", "27.5s log out secret-1")
		r.wantFiles()
	})
}

// TestEverythingEndsBeforeKill: whatever hangs.
func TestEverythingEndsBeforeKill(t *testing.T) {
	t.Parallel()
	for _, stop := range []time.Duration{2 * sec, 30 * sec, 120 * sec} {
		inBubble(t, func(r *fixture) {
			r.options.StopTimeout = stop
			r.child.leave = -1
			r.session.logout = func(string) error { return errHang }
			r.run()
			r.metadata.set(func(m *metadata) { m.hang = true })
			at := time.Now()
			r.signals <- syscall.SIGTERM
			if code := cli.ExitCode(r.wait()); code != 137 {
				t.Errorf("exit code %d", code)
			}
			if took := time.Since(at); took >= stop || took < stop*9/10 {
				t.Errorf("took %s of %s", took, stop)
			}
			// The token is still there: health-sync or the next run may try.
			r.wantFiles("client-token")
			if n := r.logged("token was not logged out; the controller will remove it"); n != 1 ||
				r.logged("/client-token") == 0 {
				t.Errorf("log:\n%s", r.log)
			}
		})
	}
}

// TestDeadAgentsTokenIsLoggedOut: by itself, before and after TERM.
func TestDeadAgentsTokenIsLoggedOut(t *testing.T) {
	t.Parallel()
	for _, code := range []int{0, 1, 137} {
		serve(t, func(r *fixture) {
			r.advance(time.Hour)
			r.child.end(code)
			if got := cli.ExitCode(r.wait()); got != code {
				t.Errorf("exit code %d, want %d", got, code)
			}
			r.wantHistory(fmt.Sprintf("1h0m0s agent ended %d", code), "1h0m0s log out secret-1")
			r.wantFiles()
			r.wantOwnDeath()
		})
	}
}

func TestAgentExitsWhileItWaitsForContainers(t *testing.T) {
	t.Parallel()
	serve(t, func(r *fixture) {
		r.signals <- syscall.SIGTERM
		r.advance(5 * sec)
		r.child.end(139)
		var exit *exit.CodeError
		if err := r.wait(); !errors.As(err, &exit) || exit.Code != 139 {
			t.Errorf("error = %v", err)
		}
		r.wantHistory("5s agent ended 139", "5s log out secret-1")
		r.wantFiles()
		r.wantOwnDeath()
	})
}

// wantOwnDeath checks that the log points at the agent's own last lines.
func (r *fixture) wantOwnDeath() {
	r.t.Helper()
	if r.logged("[ERROR] consul agent exited unexpectedly") != 1 {
		r.t.Errorf("log:\n%s", r.log)
	}
}

// TestServiceTokenIsLoggedOutAfterTheLeave: its owner, health-sync, may have ended
// long before the task. While the task runs, Envoy needs it.
func TestServiceTokenIsLoggedOutAfterTheLeave(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *fixture) {
		r.put("service-token", "service-secret\n")
		r.run()
		r.taken()
		r.start = time.Now()
		r.stop("web", "sidecar-proxy", "consul-ecs-health-sync")
		r.signals <- syscall.SIGTERM
		r.wait()
		r.wantHistory("0s signal terminated", "3s agent ended 0", "3s log out secret-1", "3s log out service-secret")
	})
	for name, end := range map[string]func(*fixture){
		"the agent dies": func(r *fixture) { r.child.end(137) },
		"the agent dies before the other containers have stopped": func(r *fixture) {
			r.signals <- syscall.SIGTERM
			r.advance(time.Second)
			r.taken()
			r.child.end(137)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(r *fixture) {
				r.put("service-token", "service-secret\n")
				r.run()
				r.taken()
				end(r)
				r.wait()
				for _, line := range r.taken() {
					if strings.Contains(line, "service-secret") {
						t.Errorf("%s: %s", name, line)
					}
				}
			})
		})
	}
}

func TestFailedLogoutOfTheServiceTokenIsLogged(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *fixture) {
		r.put("service-token", "service-secret")
		r.run()
		r.session.logout = func(secret string) error {
			if secret == "service-secret" {
				return errFault
			}
			return nil
		}
		r.stop("web", "sidecar-proxy", "consul-ecs-health-sync")
		r.signals <- syscall.SIGTERM
		if err := r.wait(); err != nil {
			t.Error(err)
		}
		if r.logged("token was not logged out; the controller will remove it") != 1 ||
			r.logged("path="+r.options.path("service-token")) != 1 {
			t.Errorf("log:\n%s", r.log)
		}
	})
}
