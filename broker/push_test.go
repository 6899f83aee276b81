package broker

import (
	"cmp"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/secret"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// TestPush: the answers of the task and of the backend decide what becomes of a request.
func TestPush(t *testing.T) {
	t.Parallel()
	status := func(code int) func(*client, *http.Request) int {
		return func(*client, *http.Request) int { return code }
	}
	redemption := func(failures int, err error) func(string) error {
		return func(op string) error {
			if op != "redeem" || failures == 0 {
				return nil
			}
			failures--
			return err
		}
	}
	policy := &backend.Error{Op: "log in", Err: consulutil.WithClass(backend.ErrPolicy, retry.Permanent)}
	for name, tt := range map[string]struct {
		answer func(*client, *http.Request) int // of the task, in place of pushed
		fault  func(op string) error
		delay  time.Duration // of a redemption
		want   string        // state, attempts and reason
	}{
		"redirect is not followed": {answer: status(http.StatusTemporaryRedirect),
			want: "failed 1 the push was answered with 307"},
		"lost answer counts as delivery": {answer: func(c *client, r *http.Request) int { c.pushed(r); return 0 },
			want: "active 1 "},
		"token that was not stored is revoked": {answer: func(c *client, r *http.Request) int {
			c.pushed(r)
			return http.StatusBadGateway
		}, want: "failed 1 the push was answered with 502"},
		"outage at redemption is retried": {fault: redemption(3, transient()), want: "active 4 "},
		"refused redemption fails": {fault: redemption(1, policy),
			want: "failed 1 log in: the policy is not available"},
		"slow task gets its token by a later push": {answer: func(c *client, r *http.Request) int {
			<-time.After(promptLimit + time.Second)
			return c.pushed(r)
		}, want: "active 2 "},
		"redemption has the time that it takes": {delay: 3 * promptLimit, want: "active 1 "},
		// It redeems the handle after the redemption of the genuine push has failed: the answer to the
		// latter is no statement about the token.
		"token of a replayed push stays": {answer: func(c *client, r *http.Request) int {
			p, code := c.open(r)
			if code != http.StatusOK {
				return code
			}
			c.backend.fault = redemption(1, transient())
			testkit.Equal(c.t, "answer to the genuine push", c.redeem(p.RequestID), http.StatusServiceUnavailable)
			testkit.Equal(c.t, "answer to the replayed push", c.redeem(p.RequestID), http.StatusOK)
			return http.StatusServiceUnavailable
		}, want: "active 2 "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(t *testing.T, w *fixture) {
				c := w.task(1)
				w.backend.fault, w.backend.delay = tt.fault, tt.delay
				if tt.answer != nil {
					w.listen("10.0.1.1:8080", func(r *http.Request) int { return tt.answer(c, r) })
				}
				id := accepted(t, c.ask())
				advance(10 * time.Second)
				s := w.state(id)
				testkit.Equal(t, "request", fmt.Sprint(s.State, " ", s.Attempts, " ", s.Reason), tt.want)
				if s.State == "active" {
					c.wantLive(cmp.Or(c.held(), "a token"))
				} else {
					c.wantLive()
				}
			})
		})
	}
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
					w.wantState(id, "active")
					c.wantLive(first, "secret-of-accessor-2")
					w.restart()
					advance(time.Minute)
					c.wantLive(first, "secret-of-accessor-2")
					if !stored {
						c.token.Secret = secret.New(first)
					}
					w.listen("10.0.1.1:8080", c.pushed)
					accepted(t, c.rotate())
					advance(time.Minute)
					c.wantLive("secret-of-accessor-3")
					testkit.Equal(t, "token of the task", c.held(), "secret-of-accessor-3")
				})
			})
		}
	}
}

// redemptionAfterTheTaskHasGivenUpIsRevoked: a redemption that takes longer than the task waits for
// it: the task refuses further pushes, and keeps its token.
func redemptionAfterTheTaskHasGivenUpIsRevoked(t *testing.T, w *fixture) {
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
	w.wantState(id, "failed")
	c.wantLive(first)
}

// lostAnswersAreNoRestartsOfTheTask: a token that may never have arrived is no token that a restarted
// container has lost.
func lostAnswersAreNoRestartsOfTheTask(t *testing.T, w *fixture) {
	c := w.task(1)
	w.listen("10.0.1.1:8080", func(r *http.Request) int { c.pushed(r); c.lose(); return 0 })
	for range maxRegrants + 2 {
		accepted(t, c.ask())
		advance(5 * time.Second)
	}
	w.listen("10.0.1.1:8080", c.pushed)
	accepted(t, c.ask())
	advance(5 * time.Second)
	c.wantLive(c.held())
}
