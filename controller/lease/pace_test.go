package lease

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/consulutil"
)

// slowConsul is Consul as the lock sees it, for fake time: somebody else has the
// key until freed, and LockDelay later it can be had.
type slowConsul struct {
	start  time.Time
	freed  time.Duration
	hangs  atomic.Bool // from now on
	holder string
}

// RoundTrip implements http.RoundTripper.
func (s *slowConsul) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.hangs.Load() {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	index, body, query := 1, "true", r.URL.Query()
	switch {
	case strings.HasSuffix(r.URL.Path, "/session/create"):
		body = `{"ID":"ours"}`
	case strings.Contains(r.URL.Path, "/session/renew/"):
		body = "[]"
	case r.Method == http.MethodGet:
		if s.holder == "theirs" && query.Get("index") == "1" {
			s.wait(r.Context(), min(watch, s.freed-time.Since(s.start)))
		} else if s.holder == "ours" && query.Get("index") == "3" {
			s.wait(r.Context(), watch)
		}
		if s.holder == "theirs" && time.Since(s.start) >= s.freed {
			s.holder = ""
		}
		index = map[string]int{"theirs": 1, "": 2, "ours": 3}[s.holder]
		body = fmt.Sprintf(`[{"Key":"k","Value":%q,"Session":%q}]`, base64.StdEncoding.EncodeToString([]byte(s.holder)), s.holder)
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

func (s *slowConsul) wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// TestPaceOfTheLock: a standby has the key within a pause of its being free,
// whenever that is, and a leader whom Consul does not answer any more is gone
// after releaseLimit.
func TestPaceOfTheLock(t *testing.T) {
	t.Parallel()
	for freed := time.Duration(0); freed < 2*TTL; freed += 777 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			s := &slowConsul{start: time.Now(), freed: freed, holder: "theirs"}
			guard := bubbleGuard()
			client, err := consulutil.NewClient(consulutil.Options{
				Address: "192.0.2.1:8500",
				Wrap:    func(http.RoundTripper) http.RoundTripper { return guard.Transport(s) },
			})
			if err != nil {
				t.Fatal(err)
			}
			l := New(Options{Client: client, Key: "k", Holder: "ours", Guard: guard, Log: hclog.NewNullLogger()})
			var ended time.Time
			err = l.Lead(t.Context(), nobody, func(context.Context) error {
				late := time.Since(s.start) - freed - LockDelay
				if late < 0 || late > contendPause*5/4 {
					t.Errorf("freed at %s: had %s after the delay", freed, late)
				}
				s.hangs.Store(true)
				ended = time.Now()
				return nil
			})
			if took := time.Since(ended); err != nil || took != releaseLimit {
				t.Errorf("ended after %s, %v, want %s", took, err, releaseLimit)
			}
		})
	}
}
