package broker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/broker/backend"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestRotations(t *testing.T) {
	t.Parallel()
	inEach(t, []scenario{rotationOverlaps, rotationOfAMinuteNeverLacksAToken, rotationKeepsTheHashOfTheBearer,
		rotationNeedsTheCurrentToken, restartVoidsHandles, restartRevokesWrappedTokens, rotationAfterARestart,
		followerRedirects})
}

func rotationOverlaps(t *testing.T, w *fixture) {
	c := w.task(1)
	first := accepted(t, c.ask())
	advance(time.Second)
	second := accepted(t, c.rotate())
	advance(9 * time.Second)
	c.wantLive("secret-of-accessor-1", "secret-of-accessor-2")
	testkit.Equal(t, "token of the task", c.held(), "secret-of-accessor-2")
	advance(2 * time.Second)
	c.wantLive("secret-of-accessor-2")
	w.wantState(first, "revoked")
	w.wantState(second, "active")
}

// rotationOfAMinuteNeverLacksAToken: a life of one minute, rotated at two thirds for ten minutes: at
// no time is the held token dead.
func rotationOfAMinuteNeverLacksAToken(t *testing.T, w *fixture) {
	w.ecs.labels[ttlLabel] = "1m"
	c := w.task(1)
	accepted(t, c.ask())
	advance(time.Second)
	start := time.Now()
	for next := 40 * time.Second; time.Since(start) < 10*time.Minute; advance(time.Second) {
		if !slices.Contains(w.backend.alive(c.arn), c.held()) {
			t.Fatalf("after %s the held token is dead", time.Since(start))
		}
		if time.Since(start) >= next {
			accepted(t, c.rotate())
			next += 40 * time.Second
		}
	}
	if n := w.backend.n; n != 15 {
		t.Errorf("%d tokens, want 15", n)
	}
}

// rotationKeepsTheHashOfTheBearer: the secret is not kept for the life of the new token.
func rotationKeepsTheHashOfTheBearer(t *testing.T, w *fixture) {
	c := w.task(1)
	accepted(t, c.ask())
	advance(time.Second)
	id := accepted(t, c.rotate())
	sum := sha256.Sum256([]byte("secret-of-accessor-1"))
	if r := w.broker.leadership.Load().table.request(id); r.bearer != hex.EncodeToString(sum[:]) {
		t.Errorf("bearer %v", r.bearer)
	}
}

func rotationNeedsTheCurrentToken(t *testing.T, w *fixture) {
	c, other := w.task(1), w.task(2)
	for _, each := range []*client{c, other} {
		accepted(t, each.ask())
		advance(time.Second)
	}
	wantRefused(t, c.call(http.MethodPost, "/v1/rotate", c.ip, c.request()), http.StatusUnauthorized, "no_bearer")
	for _, bearer := range []string{"x", other.held(), "accessor-1"} {
		wantRefused(t, c.call(http.MethodPost, "/v1/rotate", c.ip, c.request(), "Authorization", "Bearer "+bearer),
			http.StatusUnauthorized, "unknown_token")
	}
}

func restartVoidsHandles(t *testing.T, w *fixture) {
	c := w.task(1)
	w.listen("10.0.1.1:8080", func(r *http.Request) int { c.open(r); return http.StatusServiceUnavailable })
	id := accepted(t, c.ask())
	advance(time.Second)
	w.restart()
	advance(time.Second)
	wantRefused(t, c.unwrap(id), http.StatusNotFound, "unknown_handle")
	if len(w.backend.tokens) != 0 {
		t.Errorf("tokens %v", w.backend.tokens)
	}
	w.listen("10.0.1.1:8080", c.pushed)
	accepted(t, c.ask())
	advance(time.Second)
	if c.held() == "" {
		t.Error("no token after the restart")
	}
}

// restartRevokesWrappedTokens: Vault makes the token when the handle is issued: the next broker
// revokes it.
func restartRevokesWrappedTokens(t *testing.T, w *fixture) {
	w.backend.wraps = true
	c := w.task(1)
	w.listen("10.0.1.1:8080", nil)
	accepted(t, c.ask())
	advance(time.Second)
	if len(w.backend.alive(c.arn)) != 1 {
		t.Fatal("no token was wrapped")
	}
	w.restart()
	advance(redemptionLimit + time.Second)
	c.wantLive()
}

// failingStore takes no writes while it is down.
type failingStore struct {
	MemoryStore
	down atomic.Bool
}

func (f *failingStore) Save(ctx context.Context, r Record) (uint64, error) {
	if f.down.Load() {
		return 0, errFault
	}
	return f.MemoryStore.Save(ctx, r)
}

// A broker that crashes right after it has made a token leaves a record, by which the
// next one revokes it.
func TestCrashAtRedemptionLosesNoToken(t *testing.T) {
	t.Parallel()
	store := &failingStore{}
	in(t, func(t *testing.T, w *fixture) {
		w.backend.created = func(backend.Request) { store.down.Store(true) }
		w.backend.fault = func(op string) error {
			if store.down.Load() && op == "revoke" {
				return transient()
			}
			return nil
		}
		c := w.task(1)
		accepted(t, c.ask())
		advance(time.Second)
		w.stop()
		if len(w.backend.alive(c.arn)) != 1 {
			t.Fatal("no token was made")
		}
		store.down.Store(false)
		w.start()
		advance(time.Minute)
		c.wantLive()
	}, func(o *Options) { o.Store = store })
}

func rotationAfterARestart(t *testing.T, w *fixture) {
	c := w.task(1)
	accepted(t, c.ask())
	advance(time.Second)
	w.restart()
	advance(time.Second)
	accepted(t, c.rotate())
	advance(time.Second)
	w.restart() // within the overlap
	advance(12 * time.Second)
	c.wantLive("secret-of-accessor-2")
	testkit.Equal(t, "token of the task", c.held(), "secret-of-accessor-2")
}

// holderBackend is as consul-login: it revokes only tokens whose secret it has. It forgets
// the secrets with a restart.
type holderBackend struct {
	*fakeBackend
	mu    sync.Mutex
	known map[string]string // secrets by accessor
}

func (b *holderBackend) Redeem(ctx context.Context, g backend.Grant) (backend.Token, error) {
	k, err := b.fakeBackend.Redeem(ctx, g)
	if err == nil {
		b.Adopt(k)
	}
	return k, err
}

func (b *holderBackend) Adopt(k backend.Token) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known[k.Accessor] = k.Secret.Reveal()
}

func (b *holderBackend) Revoke(ctx context.Context, accessor string) error {
	b.mu.Lock()
	held := b.known[accessor]
	b.mu.Unlock()
	if held != "secret-of-"+accessor {
		return &backend.Error{Op: "revoke", Err: consulutil.WithClass(backend.ErrPrivilege, retry.Permanent)}
	}
	return b.fakeBackend.Revoke(ctx, accessor)
}

func (b *holderBackend) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.known)
}

// What a holder shows after a restart is enough to revoke its token.
func TestTokenShownAfterARestartCanBeRevoked(t *testing.T) {
	t.Parallel()
	for name, show := range map[string]func(*testing.T, *client) (live []string){
		"rotation": func(t *testing.T, c *client) []string {
			accepted(t, c.rotate())
			advance(overlap + 2*time.Second)
			return []string{"secret-of-accessor-2"}
		},
		"revocation": func(t *testing.T, c *client) []string {
			c.revoke(c.held())
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			holder := &holderBackend{known: map[string]string{}}
			in(t, func(t *testing.T, w *fixture) {
				c := w.task(1)
				accepted(t, c.ask())
				advance(time.Second)
				w.stop()
				holder.forget()
				w.start()
				advance(time.Second)
				want := show(t, c)
				c.wantLive(want...)
			}, func(o *Options) {
				holder.fakeBackend = o.Backend.(*fakeBackend)
				o.Backend = holder
			})
		})
	}
}

// staleStore is one whose records another broker changed.
type staleStore struct {
	MemoryStore
	stale bool
}

func (s *staleStore) Save(ctx context.Context, r Record) (uint64, error) {
	if s.stale {
		s.stale = false
		return 0, ErrStale
	}
	return s.MemoryStore.Save(ctx, r)
}

// Of two brokers that both believe to lead, the one that finds its records changed makes
// no token and reads them again.
func TestDeposedBrokerMakesNoToken(t *testing.T) {
	t.Parallel()
	store := &staleStore{}
	in(t, func(t *testing.T, w *fixture) {
		c := w.task(1)
		store.stale = true
		accepted(t, c.ask())
		advance(2 * time.Second)
		if len(w.backend.tokens) != 0 || c.held() != "" {
			t.Errorf("tokens %v", w.backend.tokens)
		}
		accepted(t, c.ask())
		advance(2 * time.Second)
		if c.held() == "" {
			t.Error("no token of the next leader")
		}
	}, func(o *Options) { o.Store = store })
}

// electorFunc is an Elector.
type electorFunc func(ctx context.Context, standby func(string) error, lead func(context.Context) error) error

func (f electorFunc) Lead(ctx context.Context, standby func(string) error, lead func(context.Context) error) error {
	return f(ctx, standby, lead)
}

func followerRedirects(t *testing.T, w *fixture) {
	w.stop()
	holder, turn := make(chan string), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- w.broker.Run(ctx, electorFunc(func(ctx context.Context, standby func(string) error,
			lead func(context.Context) error) error {
			for {
				select {
				case name := <-holder:
					_ = standby(name)
				case <-turn:
					if err := lead(ctx); ctx.Err() == nil {
						return err
					}
					return &consulutil.LeadershipLostError{Err: errFault}
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}))
	}()
	c := w.task(1)
	wantRefused(t, c.ask(), http.StatusServiceUnavailable, "no_leader")
	wantRefused(t, c.call(http.MethodGet, "/v1/health", c.ip, nil), http.StatusServiceUnavailable, "no_leader")
	holder <- ""
	advance(0)
	wantRefused(t, c.ask(), http.StatusServiceUnavailable, "no_leader")
	if r := c.call(http.MethodGet, "/v1/health", c.ip, nil); r.Code != http.StatusOK {
		t.Errorf("health of a follower: %d", r.Code)
	}
	holder <- "https://broker-1.example.com:8443/"
	advance(0)
	r := c.call(http.MethodGet, "/token?name=a&namespace=b", c.ip, nil)
	testkit.Equal(t, "answer of a follower", fmt.Sprint(r.Code, " ", r.Header().Get("Location")),
		"307 https://broker-1.example.com:8443/token?name=a&namespace=b")
	turn <- struct{}{}
	advance(0)
	accepted(t, c.ask())
	cancel()
	switch err := <-done; {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, errFault):
	default:
		t.Error(err)
	}
}

func TestBearerOfAnotherSchemeIsNone(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{"Bearer s": "s", "bearer s": "s", "BEARER s": "s", "Bearer ": "",
		"Basic s": "", "s": "", "": ""} {
		r := httptest.NewRequest(http.MethodPost, "/v1/rotate", nil)
		r.Header.Set("Authorization", header)
		if got, err := bearerOf(r); got.Reveal() != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v", header, got.Reveal(), err)
		}
	}
}
