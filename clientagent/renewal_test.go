package clientagent

import (
	"errors"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// change changes the answers of a session that is in use.
func (s *session) change(f func(*session)) {
	s.state.Lock()
	defer s.state.Unlock()
	f(s)
}

// logins returns how many tokens were made.
func (s *session) logins() (n int) {
	s.change(func(s *session) { n = s.made })
	return n
}

// renewing starts a client-entrypoint whose tokens live for ten minutes.
func renewing(t *testing.T, test func(*fixture)) {
	t.Helper()
	inBubble(t, func(r *fixture) {
		r.session.life = 10 * time.Minute
		r.run()
		r.taken()
		test(r)
	})
}

// agentToken returns the token in the agent's configuration.
func (r *fixture) agentToken() string {
	r.t.Helper()
	for _, secret := range []string{"secret-1", "secret-2", "secret-3"} {
		if strings.Contains(r.file("consul-client/agent.json"), `"`+secret+`"`) {
			return secret
		}
	}
	return ""
}

// TestClientTokenIsRenewed before it expires: the agent reads its configuration again, and the old
// token is logged out later.
func TestClientTokenIsRenewed(t *testing.T) {
	t.Parallel()
	renewing(t, func(r *fixture) {
		r.advance(6 * time.Minute)
		r.wantHistory()
		for r.file("client-token") == "secret-1" && time.Since(r.start) < 8*time.Minute {
			r.advance(time.Second)
		}
		if got := r.file("client-token"); got != "secret-2" {
			t.Fatalf("token is %s:\n%s", got, r.log)
		}
		if got := r.agentToken(); got != "secret-2" {
			t.Errorf("the agent has %s", got)
		}
		history := r.taken()
		if ok, _ := regexp.MatchString(`^\S+ log in\n\S+ signal hangup$`, strings.Join(history, "\n")); !ok {
			t.Errorf("history %q, want a login and a signal", history)
		}
		r.advance(14 * time.Second)
		r.wantHistory()
		r.advance(6 * time.Second)
		if history := r.taken(); len(history) != 1 || !strings.HasSuffix(history[0], " log out secret-1") {
			t.Errorf("history %q, want the logout of secret-1", history)
		}
		r.end(t, "secret-2")
	})
}

// end stops the task, and checks that exactly these tokens are logged out then.
func (r *fixture) end(t *testing.T, secrets ...string) {
	t.Helper()
	r.stop("web", "sidecar-proxy", "consul-ecs-health-sync")
	r.signals <- syscall.SIGTERM
	r.wait()
	var logouts []string
	for _, line := range r.taken() {
		if _, secret, found := strings.Cut(line, " log out "); found {
			logouts = append(logouts, secret)
		}
	}
	if got, want := strings.Join(logouts, " "), strings.Join(secrets, " "); got != want {
		t.Errorf("logged out %q, want %q:\n%s", got, want, r.log)
	}
	r.wantFiles()
}

// TestBothClientTokensEndInTheOverlap of two, when the task ends.
func TestBothClientTokensEndInTheOverlap(t *testing.T) {
	t.Parallel()
	renewing(t, func(r *fixture) {
		for r.session.logins() == 1 && time.Since(r.start) < 8*time.Minute {
			r.advance(time.Second)
		}
		r.end(t, "secret-1", "secret-2")
	})
}

// TestClientTokenIsRenewedUntilTheAgentLeaves: the other containers may need the agent for long
// after TERM. An agent that leaves takes any signal for an order to end at once.
func TestClientTokenIsRenewedUntilTheAgentLeaves(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *fixture) {
		r.options.StopTimeout = 20 * time.Minute
		r.session.life = 10 * time.Minute
		r.child.leave = 10 * time.Minute
		r.run()
		r.taken()
		r.advance(4 * time.Minute)
		r.signals <- syscall.SIGTERM
		r.advance(4 * time.Minute)
		if n := strings.Count(strings.Join(r.taken(), "\n"), "signal hangup"); n != 1 {
			t.Errorf("%d signals to reload while the containers end, want 1", n)
		}
		r.stop("web", "sidecar-proxy", "consul-ecs-health-sync")
		r.advance(9 * time.Minute)
		if history := strings.Join(r.taken(), "\n"); strings.Contains(history, "signal hangup") {
			t.Errorf("the agent got a signal while it left:\n%s", history)
		}
		r.wait()
	})
}

// TestClientTokenIsRenewedAfterAnOutage also when it has expired.
func TestClientTokenIsRenewedAfterAnOutage(t *testing.T) {
	t.Parallel()
	renewing(t, func(r *fixture) {
		r.session.change(func(s *session) { s.login = errors.New("no leader") })
		r.advance(12 * time.Minute)
		if n := r.logged("it has expired"); n != 1 {
			t.Errorf("%d lines of the expiry:\n%s", n, r.log)
		}
		r.session.change(func(s *session) { s.login = nil })
		r.advance(65 * time.Second)
		if got := r.agentToken(); got != "secret-2" {
			t.Errorf("the agent has %s:\n%s", got, r.log)
		}
		r.advance(20 * time.Second)
		r.taken()
		r.end(t, "secret-2")
	})
}
