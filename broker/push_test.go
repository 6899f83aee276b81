package broker

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/broker/receiver"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/secret"
)

func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, w *fixture) {
		c := w.task(1)
		w.listen("10.0.1.1:8080", func(*http.Request) int { return http.StatusTemporaryRedirect })
		id := accepted(t, c.ask())
		advance(time.Second)
		if s := w.state(id); s.State != "failed" || s.Attempts != 1 || s.Reason != "the push was answered with 307" {
			t.Errorf("%+v", s)
		}
	})
}

func TestLostAnswerToThePushCountsAsDelivery(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, w *fixture) {
		c := w.task(1)
		w.listen("10.0.1.1:8080", func(r *http.Request) int { c.pushed(r); return 0 })
		id := accepted(t, c.ask())
		advance(time.Second)
		if s := w.state(id); s.State != "active" || s.Attempts != 1 || c.held() == "" {
			t.Errorf("%+v, token %q", s, c.held())
		}
	})
}

func TestTokenThatWasNotStoredIsRevoked(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, w *fixture) {
		c := w.task(1)
		w.listen("10.0.1.1:8080", func(r *http.Request) int { c.pushed(r); return http.StatusBadGateway })
		id := accepted(t, c.ask())
		advance(time.Second)
		if s := w.state(id); s.State != "failed" || len(w.backend.alive(c.arn)) != 0 {
			t.Errorf("%+v, tokens %v", s, w.backend.alive(c.arn))
		}
	})
}

// A replayed push redeems the handle after the redemption of the genuine push has failed: the
// answer to the latter is no statement about the token.
func TestTokenOfAReplayedPushStays(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, w *fixture) {
		c := w.task(1)
		var redemptions []int
		w.listen("10.0.1.1:8080", func(r *http.Request) int {
			p, status := c.open(r)
			if status != http.StatusOK {
				return status
			}
			w.backend.fault = func(string) error { return transient() }
			redemptions = append(redemptions, c.unwrap(p.RequestID).Code)
			w.backend.fault = nil
			redemptions = append(redemptions, c.redeem(p.RequestID)) // by the replayed push
			return http.StatusServiceUnavailable
		})
		id := accepted(t, c.ask())
		advance(5 * time.Second)
		if !slices.Equal(redemptions, []int{http.StatusServiceUnavailable, http.StatusOK}) {
			t.Fatalf("redemptions were answered %v", redemptions)
		}
		if s := w.state(id); s.State != "active" || s.Attempts != 2 || !slices.Equal(w.backend.alive(c.arn),
			[]string{c.held()}) {
			t.Errorf("%+v, tokens %v, the task has %q", s, w.backend.alive(c.arn), c.held())
		}
	})
}

func TestOutageAtRedemptionIsRetried(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, w *fixture) {
		c := w.task(1)
		failures := 3
		w.backend.fault = func(op string) error {
			if op == "redeem" && failures > 0 {
				failures--
				return transient()
			}
			return nil
		}
		id := accepted(t, c.ask())
		advance(10 * time.Second)
		if s := w.state(id); s.State != "active" || s.Attempts != 4 {
			t.Errorf("%+v", s)
		}
	})
}

func TestRefusedRedemptionFails(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, w *fixture) {
		c := w.task(1)
		w.backend.fault = func(op string) error {
			if op == "redeem" {
				return &backend.Error{Op: "log in", Err: consulutil.WithClass(backend.ErrPolicy, retry.Permanent)}
			}
			return nil
		}
		id := accepted(t, c.ask())
		advance(10 * time.Second)
		if s := w.state(id); s.State != "failed" || s.Attempts != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// An answer to the push that is lost after the redemption leaves open which token the task
// has: both live, until its next request shows which. Without that the first one ends by
// itself.
func TestUnprovenRotationKeepsBothTokens(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]int{"lost": 0, "409": http.StatusConflict} {
		for _, stored := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, stored %v", name, stored), func(t *testing.T) {
				t.Parallel()
				in(t, func(t *testing.T, w *fixture) {
					c := w.task(1)
					accepted(t, c.ask())
					advance(time.Second)
					first := c.held()
					w.listen("10.0.1.1:8080", func(r *http.Request) int { c.pushed(r); return answer })
					id := accepted(t, c.rotate())
					advance(time.Minute)
					if s := w.state(id); s.State != "active" || len(w.backend.alive(c.arn)) != 2 {
						t.Fatalf("%+v, tokens %v", s, w.backend.alive(c.arn))
					}
					w.restart()
					advance(time.Minute)
					if len(w.backend.alive(c.arn)) != 2 {
						t.Fatalf("after a restart: %v", w.backend.alive(c.arn))
					}
					if !stored {
						c.token.Secret = secret.New(first)
					}
					w.listen("10.0.1.1:8080", c.pushed)
					accepted(t, c.rotate())
					advance(time.Minute)
					if alive := w.backend.alive(c.arn); !slices.Equal(alive, []string{c.held()}) ||
						c.held() != "secret-of-accessor-3" {
						t.Errorf("%v live, the task has %s", alive, c.held())
					}
				})
			})
		}
	}
}

// A redemption that takes longer than the task waits for it: the task refuses further
// pushes, and keeps its token.
func TestRedemptionAfterTheTaskHasGivenUpIsRevoked(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, w *fixture) {
		c := w.task(1)
		accepted(t, c.ask())
		advance(time.Second)
		first := c.held()
		w.listen("10.0.1.1:8080", func(r *http.Request) int {
			p, _ := c.open(r)
			if p.RequestID != "" {
				go c.unwrap(p.RequestID)
				w.listen("10.0.1.1:8080", func(*http.Request) int { return http.StatusForbidden })
			}
			return http.StatusBadGateway
		})
		w.backend.delay = 8 * time.Second
		id := accepted(t, c.rotate())
		advance(time.Minute)
		if s := w.state(id); s.State != "failed" || !slices.Equal(w.backend.alive(c.arn), []string{first}) {
			t.Errorf("%+v, tokens %v, want %s", s, w.backend.alive(c.arn), first)
		}
	})
}

// A holder that cannot revoke its token has the broker do it.
func TestHolderRevokesItsToken(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, w *fixture) {
		c := w.task(1)
		id := accepted(t, c.ask())
		advance(time.Second)
		wantRefused(t, c.call(http.MethodPost, "/v1/revoke", c.ip, nil), http.StatusUnauthorized, "no_bearer")
		wantRefused(t, c.giveBack(c.ip, "x"), http.StatusUnauthorized, "unknown_token")
		wantRefused(t, c.giveBack(elsewhere, c.held()), http.StatusUnauthorized, "address")
		if r := c.giveBack(c.ip, c.held()); r.Code != http.StatusOK || r.Body.String() != `{"revoked":true}` {
			t.Errorf("%d %s", r.Code, r.Body)
		}
		advance(time.Second)
		if s := w.state(id); s.State != "revoked" || len(w.backend.alive(c.arn)) != 0 {
			t.Errorf("%+v, tokens %v", s, w.backend.alive(c.arn))
		}
		wantRefused(t, c.giveBack(c.ip, c.held()), http.StatusUnauthorized, "unknown_token")
	})
}

// giveBack asks the broker to revoke a token.
func (c *client) giveBack(from, bearer string) *httptest.ResponseRecorder {
	return c.call(http.MethodPost, "/v1/revoke", from, nil, "Authorization", "Bearer "+bearer)
}

// A holder may give a replaced token back before the overlap ends.
func TestReplacedTokenIsRevokedOnRequest(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, w *fixture) {
		c := w.task(1)
		accepted(t, c.ask())
		advance(time.Second)
		first := c.held()
		accepted(t, c.rotate())
		advance(time.Second)
		if alive := w.backend.alive(c.arn); len(alive) != 2 {
			t.Fatalf("during the overlap %v", alive)
		}
		if r := c.giveBack(c.ip, first); r.Code != http.StatusOK {
			t.Errorf("%d %s", r.Code, r.Body)
		}
		advance(time.Second)
		if alive := w.backend.alive(c.arn); !slices.Equal(alive, []string{c.held()}) || c.held() == first {
			t.Errorf("%v live, the task has %s", alive, c.held())
		}
	})
}

// The broker confirms a revocation when the token is gone. Until then the holder asks again.
func TestRevocationIsConfirmedWhenItIsDone(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, w *fixture) {
		c := w.task(1)
		id := accepted(t, c.ask())
		advance(time.Second)
		down := true
		w.backend.fault = func(op string) error {
			if down && op == "revoke" {
				return transient()
			}
			return nil
		}
		for range 2 {
			asked := time.Now()
			wantRefused(t, c.giveBack(c.ip, c.held()), http.StatusServiceUnavailable, "not_revoked")
			if took := time.Since(asked); took > receiver.RevocationLimit {
				t.Errorf("answered after %s: its holder has given up", took)
			}
		}
		w.backend.mu.Lock()
		down = false
		w.backend.mu.Unlock()
		if r := c.giveBack(c.ip, c.held()); r.Code != http.StatusOK {
			t.Errorf("%d %s", r.Code, r.Body)
		}
		if alive := w.backend.alive(c.arn); len(alive) != 0 {
			t.Errorf("tokens %v after the confirmation", alive)
		}
		advance(time.Minute)
		if s := w.state(id); s.State != "revoked" || len(w.backend.revoked) != 1 {
			t.Errorf("%+v, revocations %v", s, w.backend.revoked)
		}
	})
}

// A token of an earlier leadership has no request whose transition would be in the audit log.
func TestRevocationOfAnEarlierTermIsAudited(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, w *fixture) {
		c := w.task(1)
		accepted(t, c.ask())
		advance(time.Second)
		w.restart()
		advance(time.Second)
		wantRefused(t, c.giveBack(elsewhere, c.held()), http.StatusUnauthorized, "address")
		if r := c.giveBack(c.ip, c.held()); r.Code != http.StatusOK {
			t.Errorf("%d %s", r.Code, r.Body)
		}
		var lines []line
		for text := range strings.Lines(w.audit.String()) {
			var l line
			if err := json.Unmarshal([]byte(text), &l); err != nil {
				t.Fatal(err)
			}
			if l.Decision == "revoked" || l.Alarm {
				lines = append(lines, l)
			}
		}
		if len(lines) != 2 {
			t.Fatalf("%+v", lines)
		}
		if l := lines[0]; !l.Alarm || l.Decision != "revocation_refused" || l.Peer != "10.0.1.250" ||
			l.Accessor != "accessor-1" {
			t.Errorf("%+v", l)
		}
		if l := lines[1]; l.Alarm || l.Task != c.arn || l.Accessor != "accessor-1" ||
			l.Reason != "revoked by its holder" {
			t.Errorf("%+v", l)
		}
	})
}

// A token that may never have arrived is no token that a restarted container has lost.
func TestLostAnswersAreNoRestartsOfTheTask(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, w *fixture) {
		c := w.task(1)
		w.listen("10.0.1.1:8080", func(r *http.Request) int { c.pushed(r); c.lose(); return 0 })
		for range maxRegrants + 2 {
			accepted(t, c.ask())
			advance(5 * time.Second)
		}
		w.listen("10.0.1.1:8080", c.pushed)
		accepted(t, c.ask())
		advance(5 * time.Second)
		if alive := w.backend.alive(c.arn); !slices.Equal(alive, []string{c.held()}) {
			t.Errorf("%v live, the task has %s", alive, c.held())
		}
	})
}
