package lease

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
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

func TestKey(t *testing.T) {
	t.Parallel()
	const arn = "arn:aws:ecs:us-west-2:111122223333:cluster/mesh"
	if got, want := Key(arn, ""), "consul-ecs/controller/arn:aws:ecs:us-west-2:111122223333:cluster/mesh/leader"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := Key(arn, "team"), "consul-ecs/controller/arn:aws:ecs:us-west-2:111122223333:cluster/mesh/team/leader"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestLeadOneAfterTheOther: a lease lets writes pass, and the end of one leader
// is the beginning of the next, at once; nothing of the first is left.
func TestLeadOneAfterTheOther(t *testing.T) {
	t.Parallel()
	key, work := uniqueKey(t), "work/"+t.Name()
	first, second := newTestCandidate(t, key, "first"), newTestCandidate(t, key, "second")
	if err := first.put(t.Context(), work); !isLost(err) {
		t.Errorf("a write before the lease: %v", err)
	}
	waiting, told := make(chan struct{}), ""
	var once sync.Once
	leads := make(chan error, 1)
	verdict := errors.New("verdict")
	err := first.Lead(t.Context(), nobody, func(ctx context.Context) error {
		if err := first.put(ctx, work); err != nil {
			t.Errorf("a write with the lease: %v", err)
		}
		if left := first.Guard.Remaining(); left <= 0 || left > TTL {
			t.Errorf("the lease lasts %s", left)
		}
		go func() {
			leads <- second.Lead(t.Context(), func(holder string) error {
				once.Do(func() { told = holder; close(waiting) })
				return nil
			}, func(ctx context.Context) error { return second.put(ctx, work) })
		}()
		<-waiting
		if err := second.put(ctx, work); !isLost(err) {
			t.Errorf("a write of the one that waits: %v", err)
		}
		return verdict
	})
	ended := time.Now()
	if err != verdict || told != "first" {
		t.Errorf("got %v; the second was told of %q", err, told)
	}
	if err := first.put(t.Context(), work); !isLost(err) {
		t.Errorf("a write after the end: %v", err)
	}
	if err := <-leads; err != nil {
		t.Errorf("second: %v", err)
	}
	if took := time.Since(ended); took > undelayed {
		t.Errorf("the second led %s after the end of the first", took)
	}
	testkit.Eventually(t, "no session is left", func() bool { return first.session == "" && holder(t, key) == "" })
	sessions, _, err := admin(t).Session().List(nil)
	if err != nil {
		t.Fatal(err)
	}
	pair, _, err := admin(t).KV().Get(key, nil)
	if err != nil || pair == nil || len(pair.Value) > 0 {
		t.Errorf("%+v, %v: want a key without a holder", pair, err)
	}
	for _, s := range sessions {
		if s.ID == pair.Session {
			t.Errorf("session %+v", s)
		}
	}
}

// TestStandbyMayGiveUp: as gc does, which does not wait for a leader.
func TestStandbyMayGiveUp(t *testing.T) {
	t.Parallel()
	key := uniqueKey(t)
	first, second := newTestCandidate(t, key, "first"), newTestCandidate(t, key, "second")
	err := first.Lead(t.Context(), nobody, func(ctx context.Context) error {
		return second.Lead(ctx, func(holder string) error { return errors.New("held by " + holder) }, nil)
	})
	if err == nil || err.Error() != "held by first" {
		t.Errorf("got %v", err)
	}
}

// TestLeadLosesTheKey: whoever deletes the key or ends the session ends the
// term, though the other of them lives on; then the same process may lead again.
func TestLeadLosesTheKey(t *testing.T) {
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
			c := newTestCandidate(t, uniqueKey(t), "x")
			terms := 0
			for terms < 2 {
				err := c.Lead(t.Context(), nobody, func(ctx context.Context) error {
					if terms++; terms == 2 {
						return c.put(ctx, "work/"+t.Name())
					}
					if err := take(admin(t), c.Lock); err != nil {
						return err
					}
					<-ctx.Done()
					// Though by the clock the lease has seconds left.
					if err := c.put(context.Background(), "work/"+t.Name()); !isLost(err) {
						t.Errorf("a write after the loss: %v", err)
					}
					return ctx.Err()
				})
				if terms == 1 && !isLost(err) || terms == 2 && err != nil {
					t.Fatalf("term %d: %v", terms, err)
				}
			}
		})
	}
}

// TestLeaseEndsWithoutRenewals: Consul is away longer than the lease, the term
// ends at the lease's end, and it begins again with the same session when
// Consul is back.
func TestLeaseEndsWithoutRenewals(t *testing.T) {
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
	c, err := newCandidate(server.URL, secured.Token, uniqueKey(t), "x", hclog.New(&hclog.LoggerOptions{Output: t.Output()}))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	var session string
	err = c.Lead(t.Context(), nobody, func(ctx context.Context) error {
		session = c.session
		away.Store(true)
		<-ctx.Done()
		if err := c.put(context.Background(), "work/"+t.Name()); !isLost(err) {
			t.Errorf("a write without a lease: %v", err)
		}
		return ctx.Err()
	})
	if took := time.Since(start); !isLost(err) || took < TTL-time.Second {
		t.Errorf("%v after %s", err, took)
	}
	away.Store(false)
	err = c.Lead(t.Context(), nobody, func(ctx context.Context) error {
		if c.session != session {
			t.Error("another session: it would have waited for the end of the first")
		}
		return c.put(ctx, "work/"+t.Name())
	})
	if err != nil {
		t.Error(err)
	}
}

// TestRenewalThatComesLate: the answer to a renewal that arrives when lead has
// returned opens nothing.
func TestRenewalThatComesLate(t *testing.T) {
	t.Parallel()
	target, err := url.Parse("http://" + secured.Require(t).HTTPAddr)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{})
	var once sync.Once
	c, err := newCandidate(target.String(), secured.Token, uniqueKey(t), "x", hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	late, err := consulutil.NewClient(consulutil.Options{Address: target.String(), Token: secured.Token, Wrap: func(next http.RoundTripper) http.RoundTripper {
		return testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.Contains(r.URL.Path, "/renew/") {
				once.Do(func() { close(asked) })
				<-r.Context().Done()
				r = r.WithContext(context.WithoutCancel(r.Context()))
			}
			return next.RoundTrip(r)
		})
	}})
	if err != nil {
		t.Fatal(err)
	}
	c.Client = late
	err = c.Lead(t.Context(), nobody, func(context.Context) error {
		<-asked
		return nil
	})
	if left := c.Guard.Remaining(); err != nil || left != 0 {
		t.Errorf("%v, the lease lasts %s after the lead", err, left)
	}
}

// TestLeadRefused: what a token may not do is no reason to wait.
func TestLeadRefused(t *testing.T) {
	t.Parallel()
	c := admin(t)
	key := uniqueKey(t)
	for name, tt := range map[string]struct{ rules, want, rule string }{
		"read":    {`session_prefix "" { policy = "write" }`, `read the lock "` + key + `"`, `key_prefix "consul-ecs/" { policy = "write" }`},
		"session": {`key_prefix "" { policy = "write" }`, "make the leader's session", `session_prefix "" { policy = "write" }`},
		"lock":    {`key_prefix "" { policy = "read" } session_prefix "" { policy = "write" }`, `lock "` + key + `"`, `key_prefix "consul-ecs/" { policy = "write" }`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy, _, err := c.ACL().PolicyCreate(&api.ACLPolicy{Name: fmt.Sprintf("refused-%s-%d", name, time.Now().UnixNano()), Rules: tt.rules}, nil)
			if err != nil {
				t.Fatal(err)
			}
			token, _, err := c.ACL().TokenCreate(&api.ACLToken{Policies: []*api.ACLLink{{ID: policy.ID}}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			x, err := newCandidate(secured.HTTPAddr, token.SecretID, key, "x", hclog.NewNullLogger())
			if err != nil {
				t.Fatal(err)
			}
			err = x.Lead(t.Context(), nobody, nil)
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) || consulutil.Classify(err) != retry.Permanent {
				t.Errorf("got %v, want a refusal to %s", err, tt.want)
			}
			if !strings.HasSuffix(err.Error(), "give the token of CONSUL_HTTP_TOKEN a policy with: "+tt.rule) {
				t.Errorf("got %v, want it to ask for %s", err, tt.rule)
			}
		})
	}
}

func TestLeadWithAnUnknownToken(t *testing.T) {
	t.Parallel()
	x, err := newCandidate(secured.Require(t).HTTPAddr, "00000000-0000-4000-8000-00000000000f", uniqueKey(t), "x", hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	err = x.Lead(t.Context(), nobody, nil)
	if err == nil || !strings.HasSuffix(err.Error(), "correct CONSUL_HTTP_TOKEN or CONSUL_HTTP_TOKEN_FILE") {
		t.Errorf("got %v", err)
	}
}

func isLost(err error) bool {
	var lost *LostError
	return errors.As(err, &lost)
}

// TestLeadInAPartition: the community server has none, and the user hears what to
// leave out.
func TestLeadInAPartition(t *testing.T) {
	t.Parallel()
	c := newTestCandidate(t, uniqueKey(t), "x")
	c.Partition = "default"
	err := c.Lead(t.Context(), nobody, nil)
	if err == nil || !strings.Contains(err.Error(), "leave out -partitions-enabled") || consulutil.Classify(err) != retry.Permanent {
		t.Errorf("got %v", err)
	}
}
