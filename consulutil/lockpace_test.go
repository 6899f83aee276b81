package consulutil

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
)

// slowConsul is Consul as the lock uses it, for virtual time: another process has the
// key until freed, and no session can lock it for LockDelay after that.
type slowConsul struct {
	start  time.Time
	freed  time.Duration
	mu     sync.Mutex
	hangs  bool // from now on
	holder string
}

// RoundTrip implements http.RoundTripper.
func (s *slowConsul) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hangs {
		s.mu.Unlock()
		<-r.Context().Done()
		s.mu.Lock()
		return nil, r.Context().Err()
	}
	index, body, query := 1, "true", r.URL.Query()
	switch {
	case strings.HasSuffix(r.URL.Path, "/session/create"):
		body = `{"ID":"ours"}`
	case strings.Contains(r.URL.Path, "/session/renew/"):
		body = `[{"ID":"ours","TTL":"10s"}]`
	case r.Method == http.MethodGet:
		if s.holder == "theirs" && query.Get("index") == "1" {
			s.wait(r.Context(), min(lockWait, s.freed-time.Since(s.start)))
		} else if s.holder == "" && query.Get("index") == "2" || s.holder == "ours" && query.Get("index") == "3" {
			s.wait(r.Context(), lockWait)
		}
		if s.holder == "theirs" && time.Since(s.start) >= s.freed {
			s.holder = ""
		}
		index = map[string]int{"theirs": 1, "": 2, "ours": 3}[s.holder]
		body = fmt.Sprintf(`[{"Key":"k","Value":%q,"Session":%q,"Flags":%d}]`,
			base64.StdEncoding.EncodeToString([]byte(s.holder)), s.holder, uint64(api.LockFlagValue))
	case query.Has("acquire"):
		if time.Since(s.start) < s.freed+LockDelay {
			body = "false"
		} else {
			s.holder = "ours"
		}
	}
	return &http.Response{
		StatusCode: http.StatusOK, Request: r, Body: io.NopCloser(strings.NewReader(body)),
		Header: http.Header{"X-Consul-Index": {fmt.Sprint(index)}, "X-Consul-Lastcontact": {"0"}},
	}, nil
}

// afterMonitor is when api.Lock has given up reading the key.
const afterMonitor = 2 * time.Minute

// wait waits without the mutex.
func (s *slowConsul) wait(ctx context.Context, d time.Duration) {
	s.mu.Unlock()
	defer s.mu.Lock()
	retry.Sleep(ctx, d)
}

// TestPaceOfTheLock: a standby has the key within 2*lockTTL, LockDelay and lockWait of its
// leader's death, whenever Consul ends the session, and TERM ends a leader that Consul
// does not answer after releaseLimit.
func TestPaceOfTheLock(t *testing.T) {
	t.Parallel()
	for freed := time.Duration(0); freed < 2*lockTTL; freed += 777 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			s := &slowConsul{start: time.Now(), freed: freed, holder: "theirs"}
			l := newLock(t, LockOptions{Key: keyOf("c"), Holder: "ours", Consul: Options{
				Address: "192.0.2.1:8500", Wrap: func(http.RoundTripper) http.RoundTripper { return s },
			}})
			var ended time.Time
			err := l.Lead(t.Context(), standbyIgnored, func(context.Context) error {
				late := time.Since(s.start) - freed - LockDelay
				if late < 0 || late > lockWait {
					t.Errorf("freed at %s: had %s after the delay", freed, late)
				}
				s.mu.Lock()
				s.hangs = true
				s.mu.Unlock()
				ended = time.Now()
				return nil
			})
			if took := time.Since(ended); err != nil || took != releaseLimit {
				t.Errorf("ended after %s, %v, want %s", took, err, releaseLimit)
			}
			<-time.After(afterMonitor)
		})
	}
}

// TestLoserOfALockRaceFindsTheLeaderAtOnce: another process locks the key after this one has
// read that none holds it.
func TestLoserOfALockRaceFindsTheLeaderAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slowConsul{start: time.Now(), freed: time.Hour}
		l := newLock(t, LockOptions{Key: keyOf("c"), Holder: "ours", Consul: Options{
			Address: "192.0.2.1:8500", Wrap: func(http.RoundTripper) http.RoundTripper {
				return testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
					if r.URL.Query().Has("acquire") {
						s.mu.Lock()
						s.holder = "theirs"
						s.mu.Unlock()
					}
					return s.RoundTrip(r)
				})
			},
		}})
		err := l.Lead(t.Context(), func(holder string) error { return errors.New("led by " + holder) }, nil)
		testkit.Equal(t, "error", fmt.Sprint(err), "led by theirs")
		testkit.Equal(t, "time", time.Since(s.start), 0)
	})
}

// TestDeposedLeaderStops: Consul answers nothing from some moment on, as after a pause
// of a machine whose connections are gone. The term ends before another process that
// takes over does so for long: at most 15 s after the session's end is possible.
func TestDeposedLeaderStops(t *testing.T) {
	t.Parallel()
	for moment := time.Duration(0); moment < lockTTL; moment += 777 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			s := &slowConsul{start: time.Now(), freed: -LockDelay}
			l := newLock(t, LockOptions{Key: keyOf("c"), Holder: "ours", Consul: Options{
				Address: "192.0.2.1:8500", Wrap: func(http.RoundTripper) http.RoundTripper { return s },
			}})
			err := l.Lead(t.Context(), standbyIgnored, func(ctx context.Context) error {
				<-time.After(moment)
				s.mu.Lock()
				s.hangs = true
				s.mu.Unlock()
				silent := time.Now()
				<-ctx.Done()
				if took := time.Since(silent); took > 15*time.Second {
					t.Errorf("silent from %s on: led for %s", moment, took)
				}
				return ctx.Err()
			})
			if !isLost(err) {
				t.Errorf("got %v", err)
			}
			<-time.After(afterMonitor)
		})
	}
}
