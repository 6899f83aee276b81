package backend_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// forEach runs a test of the suite for all backends.
func forEach(t *testing.T, test func(t *testing.T, s system)) {
	t.Parallel()
	for name, s := range systems(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

func TestRedemptionGivesTheRequestedToken(t *testing.T) {
	forEach(t, func(t *testing.T, s system) {
		b := s.process(t, &line{}, 0)
		before := time.Now()
		g := issue(t, b, request("web-config", "web-queue"))
		if left := g.Expires.Sub(before); left < backend.GrantTTL || left > backend.GrantTTL+time.Minute {
			t.Errorf("the grant expires in %s, want 2m", left)
		}
		token := redeem(t, b, g)
		if sortedPolicies(token) != "web-config,web-queue" {
			t.Errorf("token %+v, want policies web-config and web-queue", token)
		}
		if life := token.Expires.Sub(before); life < 59*time.Minute || life > 2*time.Hour+time.Minute {
			t.Errorf("the token expires in %s, want at most the requested 2h", life)
		}
		if !s.lives(t, token.Secret.Reveal()) {
			t.Error("the server does not know the token")
		}
		if !s.exists(t, token.Accessor) {
			t.Error("the server does not know the token's accessor")
		}
	})
}

func TestNothingIsLiveBeforeRedemption(t *testing.T) {
	forEach(t, func(t *testing.T, s system) {
		b := s.process(t, &line{}, 0)
		g := issue(t, b, request("web-config"))
		if s.wrapsItself {
			if s.lives(t, g.Handle.Reveal()) {
				t.Error("the handle is a token")
			}
			return
		}
		if !g.Handle.Empty() {
			t.Error("the grant has a handle")
		}
		s.wantGone(t, g.Accessor)
	})
}

func TestGrantIsRedeemedOnce(t *testing.T) {
	forEach(t, func(t *testing.T, s system) {
		b := s.process(t, &line{}, 0)
		g := issue(t, b, request("web-config"))
		var given atomic.Int32
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if _, err := b.Redeem(t.Context(), g); err == nil {
					given.Add(1)
				}
			})
		}
		all.Wait()
		if given.Load() != 1 {
			t.Errorf("%d redemptions succeeded, want 1", given.Load())
		}
		_, err := b.Redeem(t.Context(), g)
		wantError(t, err, backend.ErrUsed, g.Request.Task.ARN)
	})
}

func TestExpiredGrantGivesNoToken(t *testing.T) {
	forEach(t, func(t *testing.T, s system) {
		b := s.process(t, &line{}, time.Nanosecond)
		g := issue(t, b, request("web-config"))
		_, err := b.Redeem(t.Context(), g)
		wantError(t, err, backend.ErrExpired, g.Request.Task.ARN)
		s.wantGone(t, g.Accessor)
	})
}

func TestRevokedGrantGivesNoToken(t *testing.T) {
	forEach(t, func(t *testing.T, s system) {
		b := s.process(t, &line{}, 0)
		g := issue(t, b, request("web-config"))
		for range 2 {
			if err := b.Revoke(t.Context(), g.Accessor); err != nil {
				t.Fatal(err)
			}
		}
		_, err := b.Redeem(t.Context(), g)
		wantError(t, err, backend.ErrUsed)
		s.wantGone(t, g.Accessor)
	})
}

func TestRevokedTokenIsRemovedFromConsul(t *testing.T) {
	forEach(t, func(t *testing.T, s system) {
		b := s.process(t, &line{}, 0)
		for _, byGrant := range []bool{false, true} {
			g := issue(t, b, request("web-config"))
			token := redeem(t, b, g)
			accessor := token.Accessor
			if byGrant {
				accessor = g.Accessor
			}
			for range 2 {
				if err := b.Revoke(t.Context(), accessor); err != nil {
					t.Fatal(err)
				}
			}
			if s.lives(t, token.Secret.Reveal()) {
				t.Error("the server still knows the token")
			}
			s.wantGone(t, token.Accessor)
			s.wantGone(t, g.Accessor)
		}
	})
}

func TestAnotherProcessRevokesTokens(t *testing.T) {
	forEach(t, func(t *testing.T, s system) {
		crashed := s.process(t, &line{}, 0)
		token := redeem(t, crashed, issue(t, crashed, request("web-config")))
		pending := issue(t, crashed, request("web-config"))

		b := s.process(t, &line{}, 0)
		if err := b.Revoke(t.Context(), token.Accessor); err != nil {
			t.Error(err)
		}
		if s.lives(t, token.Secret.Reveal()) {
			t.Error("the server still knows the token")
		}
		_, err := b.Redeem(t.Context(), pending)
		if s.wrapsItself {
			if err != nil {
				t.Errorf("Redeem of a wrapped grant: %v", err)
			}
			return
		}
		wantError(t, err, backend.ErrUsed)
	})
}

func TestMissingPolicyIsNamed(t *testing.T) {
	forEach(t, func(t *testing.T, s system) {
		for _, policies := range [][]string{{"web-config", "missing"}, {"missing"}} {
			b := s.process(t, &line{}, 0)
			g, err := b.Issue(t.Context(), request(policies...))
			if err == nil {
				_, err = b.Redeem(t.Context(), g)
			}
			wantError(t, err, backend.ErrPolicy, `policy "missing"`, "create")
			if g.Accessor != "" {
				s.wantGone(t, g.Accessor)
			}
		}
	})
}

func TestMissingPrivilegeIsNamed(t *testing.T) {
	forEach(t, func(t *testing.T, s system) {
		if s.unprivileged == nil {
			t.Skip("this backend needs no privilege")
		}
		b := s.unprivileged(t)
		_, err := b.Issue(t.Context(), request("web-config"))
		wantError(t, err, backend.ErrPrivilege, "web-config", s.remedy)
		err = b.Revoke(t.Context(), "0b0c0000-0000-4000-8000-000000000001")
		wantNotRevoked(t, err, "0b0c0000-0000-4000-8000-000000000001", s.remedy)
		if r, ok := b.(backend.Renewer); ok {
			_, _, err = r.Expiry(t.Context(), "0b0c0000-0000-4000-8000-000000000001")
			wantError(t, err, backend.ErrPrivilege, "0b0c0000-0000-4000-8000-000000000001", s.remedy)
		}
	})
}

func TestGrantSurvivesAnOutage(t *testing.T) {
	forEach(t, func(t *testing.T, s system) {
		l := &line{}
		b := s.process(t, l, 0)
		g := issue(t, b, request("web-config"))
		l.mode.Store(down)
		for range 2 {
			_, err := b.Redeem(t.Context(), g)
			wantClass(t, err, retry.NotYet, g.Request.Task.ARN)
		}
		l.mode.Store(up)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := b.Redeem(gone, g); !errors.Is(err, context.Canceled) {
			t.Errorf("Redeem for a caller that is gone: %v", err)
		}
		if token := redeem(t, b, g); !s.lives(t, token.Secret.Reveal()) {
			t.Error("the server does not know the token")
		}
	})
}

func TestUnusableRequestsAreRefused(t *testing.T) {
	forEach(t, func(t *testing.T, s system) {
		b := s.process(t, &line{}, 0)
		noPolicies, short := request(), request("web-config")
		short.TTL = 30 * time.Second
		for text, r := range map[string]backend.Request{"no policies": noPolicies, "ttl 30s is less than 1m": short} {
			_, err := b.Issue(t.Context(), r)
			wantClass(t, err, retry.Permanent, text)
		}
	})
}

func TestSecretsAreNotPrinted(t *testing.T) {
	forEach(t, func(t *testing.T, s system) {
		b := s.process(t, &line{}, 0)
		g := issue(t, b, request("web-config"))
		token := redeem(t, b, g)
		_, used := b.Redeem(t.Context(), g)
		printed, err := json.Marshal([]any{g, token})
		if err != nil {
			t.Fatal(err)
		}
		text := string(printed) + fmt.Sprintf("%v %+v %#v %v %+v %#v %s %v %+v", g, g, g, token, token, token, token,
			used, used)
		for _, hidden := range []string{token.Secret.Reveal(), g.Handle.Reveal()} {
			if hidden != "" && strings.Contains(text, hidden) {
				t.Errorf("the secret is in %s", text)
			}
		}
		if !strings.Contains(text, token.Accessor) {
			t.Error("the accessor is not printed")
		}
	})
}
