package consulutil

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// undelayed is less than the delay that the end of a session costs.
const undelayed = LockDelay - 2*time.Second

func isLost(err error) bool {
	var lost *LeadershipLostError
	return errors.As(err, &lost)
}

// TestReleasedLockIsTakenAtOnce: the end of one leader is the start of the next, and
// neither key nor session of the first is left.
func TestReleasedLockIsTakenAtOnce(t *testing.T) {
	t.Parallel()
	cluster := testkit.UniqueCluster(t)
	first, second := candidate(t, cluster, "first", nil), candidate(t, cluster, "second", nil)
	waiting, holder := make(chan struct{}), ""
	var once sync.Once
	leads := make(chan error, 1)
	verdict := errors.New("verdict")
	err := first.Lead(t.Context(), standbyIgnored, func(ctx context.Context) error {
		go func() {
			leads <- second.Lead(t.Context(), func(name string) error {
				once.Do(func() { holder = name; close(waiting) })
				return nil
			}, func(context.Context) error { return nil })
		}()
		<-waiting
		return verdict
	})
	ended := time.Now()
	if err != verdict || holder != "first" {
		t.Errorf("got %v; the second waited for %q", err, holder)
	}
	if err := <-leads; err != nil {
		t.Errorf("second: %v", err)
	}
	if took := time.Since(ended); took > undelayed {
		t.Errorf("the second led %s after the end of the first", took)
	}
	pair, _, err := client(t, secured.Require(t), secured.Token).KV().Get(keyOf(cluster), nil)
	if err != nil || pair == nil {
		t.Fatalf("%+v, %v: want the key", pair, err)
	}
	testkit.Equal(t, "session of the key", pair.Session, "")
	testkit.Equal(t, "holder", string(pair.Value), "")
	if first.session != "" || second.session != "" {
		t.Error("a session is left")
	}
}

// TestOneOfManyLeads: five controllers at once, each leads for a moment.
func TestOneOfManyLeads(t *testing.T) {
	t.Parallel()
	cluster := testkit.UniqueCluster(t)
	var leaders atomic.Int32
	var wg sync.WaitGroup
	for i := range 5 {
		l := candidate(t, cluster, fmt.Sprint(i), nil)
		wg.Go(func() {
			err := l.Lead(t.Context(), standbyIgnored, func(ctx context.Context) error {
				if n := leaders.Add(1); n != 1 {
					t.Errorf("%d leaders", n)
				}
				defer leaders.Add(-1)
				return retry.Sleep(ctx, 100*time.Millisecond)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// TestStandbyMayGiveUp: as gc does, which does not wait for a leader.
func TestStandbyMayGiveUp(t *testing.T) {
	t.Parallel()
	cluster := testkit.UniqueCluster(t)
	first, second := candidate(t, cluster, "first", nil), candidate(t, cluster, "second", nil)
	err := first.Lead(t.Context(), standbyIgnored, func(ctx context.Context) error {
		return second.Lead(ctx, func(holder string) error { return errors.New("held by " + holder) }, nil)
	})
	testkit.Equal(t, "error", fmt.Sprint(err), "held by first")
	testkit.Equal(t, "session of the second", second.session, "")
}

// TestHolderOfAnyLengthIsCut: a client that may write the key writes its value, without ending
// the term.
func TestHolderOfAnyLengthIsCut(t *testing.T) {
	t.Parallel()
	cluster := testkit.UniqueCluster(t)
	first, second := candidate(t, cluster, "first", nil), candidate(t, cluster, "second", nil)
	got := ""
	err := first.Lead(t.Context(), standbyIgnored, func(ctx context.Context) error {
		long := &api.KVPair{Key: first.Key, Value: []byte(strings.Repeat("x", 100_000))}
		if _, err := client(t, secured.Require(t), secured.Token).KV().Put(long, nil); err != nil {
			return err
		}
		_ = second.Lead(ctx, func(holder string) error { got = holder; return errors.New("seen") }, nil)
		return ctx.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != holderLength {
		t.Errorf("%d bytes of the holder, want %d", len(got), holderLength)
	}
}

// TestLostKeyEndsTheTerm: when the key is deleted or the session ended, the other of
// them may live on; then the same process may lead again.
func TestLostKeyEndsTheTerm(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(c *api.Client, l *Lock) error{
		"deleted": func(c *api.Client, l *Lock) error { _, err := c.KV().Delete(l.Key, nil); return err },
		"destroyed": func(c *api.Client, l *Lock) error {
			_, err := c.Session().Destroy(l.session, nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := candidate(t, testkit.UniqueCluster(t), "x", nil)
			terms := 0
			for terms < 2 {
				err := l.Lead(t.Context(), standbyIgnored, func(ctx context.Context) error {
					if terms++; terms == 2 {
						return nil
					}
					if err := take(client(t, secured.Require(t), secured.Token), l); err != nil {
						return err
					}
					<-ctx.Done()
					return ctx.Err()
				})
				if terms == 1 && !isLost(err) || terms == 2 && err != nil {
					t.Fatalf("term %d: %v", terms, err)
				}
			}
		})
	}
}

// TestTermEndsWithoutRenewals: Consul does not renew the session for longer than it
// lives; the term ends, and the next has the same session when Consul is back.
func TestTermEndsWithoutRenewals(t *testing.T) {
	t.Parallel()
	target, err := url.Parse("http://" + secured.Require(t).HTTPAddr)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	forward.ErrorLog = hclog.NewNullLogger().StandardLogger(nil)
	var away atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() && strings.Contains(r.URL.Path, "/renew/") {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	l := newLock(t,
		LockOptions{Consul: Options{Address: server.URL, Token: secured.Token}, Key: keyOf(testkit.UniqueCluster(t)),
			Holder: "x"})
	start := time.Now()
	var session string
	err = l.Lead(t.Context(), standbyIgnored, func(ctx context.Context) error {
		session = l.session
		away.Store(true)
		<-ctx.Done()
		return ctx.Err()
	})
	if took := time.Since(start); !isLost(err) || took < lockTTL-time.Second {
		t.Errorf("%v after %s", err, took)
	}
	away.Store(false)
	err = l.Lead(t.Context(), standbyIgnored, func(ctx context.Context) error {
		if l.session != session {
			t.Error("another session: it would have waited for the end of the first")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestRefusedLeadershipLock: what a token may not do is no reason to wait.
func TestRefusedLeadershipLock(t *testing.T) {
	t.Parallel()
	c, cluster := client(t, secured.Require(t), secured.Token), testkit.UniqueCluster(t)
	key := keyOf(cluster)
	for name, tt := range map[string]struct{ rules, want, rule string }{
		"read": {`session_prefix "" { policy = "write" }`, `read the lock "` + key + `"`,
			`key_prefix "consul-ecs/" { policy = "write" }`},
		"session": {`key_prefix "" { policy = "write" }`, "create the leader's session",
			`session_prefix "" { policy = "write" }`},
		"lock": {`key_prefix "" { policy = "read" } session_prefix "" { policy = "write" }`,
			`lock "` + key + `"`, `key_prefix "consul-ecs/" { policy = "write" }`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy, _, err := c.ACL().PolicyCreate(
				&api.ACLPolicy{Name: fmt.Sprintf("refused-%s-%d", name, time.Now().UnixNano()), Rules: tt.rules}, nil)
			if err != nil {
				t.Fatal(err)
			}
			token, _, err := c.ACL().TokenCreate(&api.ACLToken{Policies: []*api.ACLLink{{ID: policy.ID}}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			l := newLock(t,
				LockOptions{Consul: Options{Address: secured.HTTPAddr, Token: token.SecretID}, Key: keyOf(cluster)})
			err = l.Lead(t.Context(), standbyIgnored, nil)
			testkit.Equal(t, "class", Classify(err), retry.Permanent)
			if !strings.HasPrefix(fmt.Sprint(err), tt.want) {
				t.Errorf("got %v, want a refusal to %s", err, tt.want)
			}
			if !strings.HasSuffix(fmt.Sprint(err), "give the token of CONSUL_HTTP_TOKEN a policy with: "+tt.rule) {
				t.Errorf("got %v, want it to name %s", err, tt.rule)
			}
		})
	}
}

func TestLeadershipWithUnknownToken(t *testing.T) {
	t.Parallel()
	l := newLock(t, LockOptions{
		Consul: Options{Address: secured.Require(t).HTTPAddr, Token: "00000000-0000-4000-8000-00000000000f"},
		Key:    keyOf(testkit.UniqueCluster(t)),
	})
	err := l.Lead(t.Context(), standbyIgnored, nil)
	if err == nil || !strings.HasSuffix(err.Error(), "correct CONSUL_HTTP_TOKEN or CONSUL_HTTP_TOKEN_FILE") {
		t.Errorf("got %v", err)
	}
}

// TestLeadershipEndsDuringLockAcquisition: the answer to the request that locks the key does
// not arrive. The next leader does not wait for the session, nor for the lock's delay.
func TestLeadershipEndsDuringLockAcquisition(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	cluster := testkit.UniqueCluster(t)
	l := candidate(t, cluster, "first", func(next http.RoundTripper) http.RoundTripper {
		return testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err == nil && r.URL.Query().Has("acquire") {
				resp.Body.Close()
				end()
				return nil, context.Canceled
			}
			return resp, err
		})
	})
	err := l.Lead(ctx, standbyIgnored, func(context.Context) error {
		t.Error("it leads")
		return nil
	})
	if err == nil || ctx.Err() == nil {
		t.Fatalf("got %v", err)
	}
	pair, _, err := client(t, secured.Require(t), secured.Token).KV().Get(keyOf(cluster), nil)
	if err != nil || pair == nil {
		t.Fatalf("the key was never locked: %v, %v", pair, err)
	}
	if pair.Session != "" {
		t.Errorf("%s still has the lock", pair.Value)
	}
}
