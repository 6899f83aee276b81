package broker

import (
	"net/http"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/internal/retry"
)

func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, w *world) {
		c := w.task(1)
		w.listen("10.0.1.1:8080", func(*http.Request) int { return http.StatusTemporaryRedirect })
		id := accepted(t, c.ask())
		pass(time.Second)
		if s := w.state(id); s.State != "failed" || s.Attempts != 1 || s.Reason != "the push was answered with 307" {
			t.Errorf("%+v", s)
		}
	})
}

func TestLostAnswerToThePushCountsAsDelivery(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, w *world) {
		c := w.task(1)
		w.listen("10.0.1.1:8080", func(r *http.Request) int { c.pushed(r); return 0 })
		id := accepted(t, c.ask())
		pass(time.Second)
		if s := w.state(id); s.State != "active" || s.Attempts != 1 || c.held() == "" {
			t.Errorf("%+v, token %q", s, c.held())
		}
	})
}

func TestTokenThatWasNotStoredIsRevoked(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, w *world) {
		c := w.task(1)
		w.listen("10.0.1.1:8080", func(r *http.Request) int { c.pushed(r); return http.StatusBadGateway })
		id := accepted(t, c.ask())
		pass(time.Second)
		if s := w.state(id); s.State != "failed" || len(w.backend.alive(c.arn)) != 0 {
			t.Errorf("%+v, tokens %v", s, w.backend.alive(c.arn))
		}
	})
}

func TestOutageAtRedemptionIsRetried(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, w *world) {
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
		pass(10 * time.Second)
		if s := w.state(id); s.State != "active" || s.Attempts != 4 {
			t.Errorf("%+v", s)
		}
	})
}

func TestRefusedRedemptionFails(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T, w *world) {
		c := w.task(1)
		w.backend.fault = func(op string) error {
			if op == "redeem" {
				return &backend.Error{Op: "log in", Err: backend.ErrPolicy, Class: retry.Permanent}
			}
			return nil
		}
		id := accepted(t, c.ask())
		pass(10 * time.Second)
		if s := w.state(id); s.State != "failed" || s.Attempts != 1 {
			t.Errorf("%+v", s)
		}
	})
}
