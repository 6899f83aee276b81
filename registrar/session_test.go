package registrar

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/consulutil"
)

func TestHasSessionChecks(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"": false, "nightly": false, "1.20.1": false, "1.20.6": false, "1.21.0": true, "1.22.2": true,
		"1.22.2+ent": true, "2.0.0": true, "0.30.0": false,
	} {
		if got := hasSessionChecks(version); got != want {
			t.Errorf("%q: %v", version, got)
		}
	}
}

// TestSessionRequests: a task begins a session when it is in traffic, in the same write as
// its first passing check, renews it every 5 s without a write, and ends it at the end.
func TestSessionRequests(t *testing.T) {
	t.Parallel()
	inBound(t, func(b *bound) {
		b.advance(time.Minute)
		b.set("critical", false)
		b.wants(registers)
		b.set("passing", false)
		body, name := b.session(), b.name()
		for _, id := range []string{"web-abc123:session", "web-abc123-sidecar-proxy:session"} {
			if !strings.Contains(body, `"CheckID":"`+id+`"`) {
				t.Errorf("no check %s in %s", id, body)
			}
		}
		if n := strings.Count(body, `"SessionName":"`+name+`"`); n != 2 {
			t.Errorf("%d checks of %s in %s", n, name, body)
		}
		if !strings.HasPrefix(name, "web-abc123-") {
			t.Errorf("the session's name is %s", name)
		}
		b.wants(readsVersions, creates, registers)
		b.advance(time.Minute)
		if n := b.count(renews); n[0] < 10 || n[0] > 16 {
			t.Errorf("%d renewals in a minute", n[0])
		}
		b.set("critical", false) // as at the end: whatever becomes of the session
		b.wants(registers)
		if err := b.c.Deregister(context.Background(), "tok", b.w); err != nil {
			t.Error(err)
		}
		b.wants("PUT /v1/catalog/deregister tok", "PUT /v1/catalog/deregister tok",
			"PUT /v1/session/destroy/s1?ns=ns&partition=part tok")
	})
}

const sessionDenied = "Permission denied: token with AccessorID 'x' lacks permission 'session:write' on \"n\""

// TestRefusedSession: the task continues without one, and asks again minutes later.
func TestRefusedSession(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		path   string
		status int
		body   string
		held   bool // there is a session before, whose checks are removed
	}{
		"creation denied": {"/v1/session/create", http.StatusForbidden, sessionDenied, false},
		"time to live refused": {
			"/v1/session/create", http.StatusInternalServerError,
			"Invalid Session TTL '15000000000', must be between [30s=24h0m0s]", false,
		},
		"renewal denied": {"/v1/session/renew/s1", http.StatusForbidden, sessionDenied, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBound(t, func(b *bound) {
				if tc.held {
					b.set("passing", false)
				}
				b.count()
				b.setAnswer(answers(tc.path, tc.status, tc.body))
				if !tc.held {
					b.set("passing", false)
				}
				b.advance(10 * time.Second)
				b.setAnswer(nil)
				if result := b.set("passing", true)[0]; result.Unbound == nil {
					t.Error("no reason")
				}
				removed := b.count("PUT /v1/catalog/deregister")[0]
				if want := map[bool]int{true: 2}[tc.held]; removed != want {
					t.Errorf("%d checks were removed, want %d", removed, want)
				}
				b.advance(3 * time.Minute)
				if n := b.count(creates); n[0] != 0 {
					t.Errorf("%d creations within three minutes", n[0])
				}
				b.advance(5 * time.Minute)
				if n := b.count(creates); n[0] != 1 {
					t.Errorf("%d creations when it is allowed", n[0])
				}
			})
		})
	}
}

// TestShortOutageEndsNoSession: renewals continue, and nothing is created.
func TestShortOutageEndsNoSession(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(*http.Request) (*http.Response, error){
		"no leader":     answers("/v1/", http.StatusInternalServerError, "No cluster leader"),
		"hang":          hangs("/v1/"),
		"token unknown": answers("/v1/", http.StatusForbidden, "ACL not found"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBound(t, func(b *bound) {
				b.set("passing", false)
				b.advance(time.Minute)
				b.count()
				b.setAnswer(answer)
				b.advance(16 * time.Second)
				b.setAnswer(nil)
				b.advance(renewalLimit + renewalRepeat*5/4) // a renewal hangs, and the pause after it ends
				n := b.count(renews, creates)
				if n[0] == 0 {
					t.Error("not renewed after the outage")
				}
				if n[1] != 0 {
					t.Errorf("%d creations", n[1])
				}
			})
		})
	}
}

// TestUnknownTokenIsReported by a read of the checks, so that the caller logs in before the
// session ends; once for a token.
func TestUnknownTokenIsReported(t *testing.T) {
	t.Parallel()
	inBound(t, func(b *bound) {
		b.set("passing", false)
		b.advance(time.Minute)
		b.set("passing", true)
		b.setAnswer(answers("/v1/", http.StatusForbidden, "ACL not found"))
		b.advance(7 * time.Second)
		if d := b.c.Refresh(); d != 0 {
			t.Errorf("its checks are read in %s, want now", d)
		}
		if err := b.set("passing", true)[0].Err; !consulutil.UnknownToken(err) {
			t.Errorf("error %v", err)
		}
		b.advance(10 * time.Second)
		if d := b.c.Refresh(); d == 0 {
			t.Error("its checks are read again and again")
		}
	})
}

// TestEndedSessionIsReplaced by one of the same name, whose checks pass again without a write.
func TestEndedSessionIsReplaced(t *testing.T) {
	t.Parallel()
	inBound(t, func(b *bound) {
		b.set("passing", false)
		b.advance(time.Minute)
		name := b.name()
		b.count()
		ended := false
		b.setAnswer(func(r *http.Request) (*http.Response, error) {
			if ended {
				return nil, nil
			}
			answer, err := answers("/v1/session/renew/", http.StatusNotFound, "Session id 's1' not found")(r)
			ended = answer != nil
			return answer, err
		})
		b.advance(7 * time.Second)
		n := b.count(creates, registers)
		if n[0] == 0 {
			t.Error("no session was created")
		}
		if n[1] != 0 {
			t.Errorf("%d writes besides", n[1])
		}
		if b.name() != name {
			t.Errorf("the name was %s and is %s", name, b.name())
		}
		b.advance(3 * time.Second)
		if d := b.c.Refresh(); d != 0 {
			t.Errorf("its checks are read in %s, want now", d)
		}
		b.set("passing", true)
		if d := b.c.Refresh(); d == 0 {
			t.Error("its checks are read again and again")
		}
	})
}

// TestForeignNotFoundEndsNoSession: a second session of the same name would make the checks
// critical when the first one ends, which nothing renews any more.
func TestForeignNotFoundEndsNoSession(t *testing.T) {
	t.Parallel()
	inBound(t, func(b *bound) {
		b.set("passing", false)
		b.advance(time.Minute)
		b.count()
		b.setAnswer(answers("/v1/session/renew/", http.StatusNotFound, "<html>404 page not found</html>"))
		b.advance(15 * time.Second)
		b.setAnswer(nil)
		b.advance(5 * time.Second)
		n := b.count(renews, creates)
		if n[0] == 0 {
			t.Error("not renewed")
		}
		if n[1] != 0 {
			t.Errorf("%d creations", n[1])
		}
	})
}

// TestUnvouchedSessionIsNotRenewed: it ends as a TTL does with an agent.
func TestUnvouchedSessionIsNotRenewed(t *testing.T) {
	t.Parallel()
	inBound(t, func(b *bound) {
		b.set("passing", false)
		b.advance(time.Minute)
		b.mu.Lock()
		b.vouched = false
		b.mu.Unlock()
		b.count()
		b.advance(time.Minute)
		if n := b.count("PUT /v1/session/"); n[0] != 0 {
			t.Errorf("%d requests about the session", n[0])
		}
	})
}

// TestUnansweredCreation: none is made while it may be on its way, and its session is used
// if it is found.
func TestUnansweredCreation(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{true, false} {
		inBound(t, func(b *bound) {
			b.setAnswer(hangs("/v1/session/create"))
			b.set("passing", false)
			b.advance(creationLimit)
			first := b.name()
			if made {
				b.setAnswer(func(r *http.Request) (*http.Response, error) {
					both := `[{"ID":"s0","Name":"other"},{"ID":"s1","Name":"` + first + `"}]`
					return answers("/v1/session/node/", http.StatusOK, both)(r)
				})
			} else {
				b.setAnswer(answers("/v1/session/node/", http.StatusOK, "[]"))
			}
			b.count()
			b.advance(lookLimit - time.Second)
			n := b.count(creates, renews, lists)
			if n[0] != 0 {
				t.Errorf("made: %t: %d creations", made, n[0])
			}
			if got := n[1] > 0; got != made {
				t.Errorf("made: %t: %d renewals", made, n[1])
			}
			b.advance(time.Minute)
			n = b.count(creates)
			if want := map[bool]int{false: 1}[made]; n[0] != want {
				t.Errorf("made: %t: %d creations after the wait, want %d", made, n[0], want)
			}
			if same := first == b.name(); same != made {
				t.Errorf("made: %t: name %s, then %s", made, first, b.name())
			}
		})
	}
}

// TestFailingCreationBacksOff: without a leader nothing is created, and each attempt of a
// fleet keeps its servers from electing one.
func TestFailingCreationBacksOff(t *testing.T) {
	t.Parallel()
	inBound(t, func(b *bound) {
		attempts := 0
		b.setAnswer(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/v1/session/create" {
				attempts++
			}
			return answers("/v1/session/create", http.StatusInternalServerError, "No cluster leader")(r)
		})
		b.set("passing", false)
		b.advance(10 * time.Minute)
		if attempts < 10 || attempts > 25 {
			t.Errorf("%d creations in ten minutes", attempts)
		}
		b.setAnswer(nil)
		b.advance(creationMax)
		if n := b.count(creates); n[0] != 1 {
			t.Errorf("%d creations after the election", n[0])
		}
	})
}

// TestSessionCheckIsWrittenAgain: a session check that is lost or critical comes back with
// the session that is there.
func TestSessionCheckIsWrittenAgain(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(map[string]health, string){
		"lost":     func(checks map[string]health, id string) { delete(checks, id) },
		"critical": func(checks map[string]health, id string) { checks[id] = health{"critical", ""} },
	} {
		inBound(t, func(b *bound) {
			b.set("passing", false)
			b.mu.Lock()
			harm(b.checks, "web-abc123:session")
			b.mu.Unlock()
			b.count()
			b.set("passing", true)
			if n := strings.Count(b.session(), `"SessionName":"`+b.name()+`"`); n != 2 {
				t.Errorf("%s: wrote %s", name, b.session())
			}
		})
	}
}

// TestSessionsThatEndAtOnceAreCreatedMoreRarely: something destroys each.
func TestSessionsThatEndAtOnceAreCreatedMoreRarely(t *testing.T) {
	t.Parallel()
	inBound(t, func(b *bound) {
		b.setAnswer(answers("/v1/session/renew/", http.StatusNotFound, "Session id 's1' not found"))
		b.set("passing", false)
		b.advance(10 * time.Minute)
		if n := b.count(creates); n[0] > 25 {
			t.Errorf("%d creations in ten minutes", n[0])
		}
	})
}
