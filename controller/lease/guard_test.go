package lease

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// trip is a transport that tells what reaches it and answers when it is told.
type trip struct {
	got    chan *http.Request
	answer chan struct{}
}

func newTrip() trip { return trip{make(chan *http.Request, 10), make(chan struct{}, 10)} }

func (n trip) RoundTrip(r *http.Request) (*http.Response, error) {
	n.got <- r
	select {
	case <-n.answer:
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("true"))}, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func bubbleGuard() *Guard {
	start := time.Now()
	return NewGuard(func() time.Duration { return time.Since(start) })
}

func send(g *Guard, next http.RoundTripper, ctx context.Context, method string) error {
	r, err := http.NewRequestWithContext(ctx, method, "http://consul/v1/kv/x", nil)
	if err != nil {
		return err
	}
	resp, err := g.Transport(next).RoundTrip(r)
	if err != nil {
		return err
	}
	_, err = io.ReadAll(resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// TestGuardHoldsWritesBack: by method, by lease, and by whose request it is.
func TestGuardHoldsWritesBack(t *testing.T) {
	t.Parallel()
	own := context.WithValue(context.Background(), ownRequest{}, true)
	for _, tt := range []struct {
		name, method string
		ctx          context.Context
		give, pass   time.Duration
		sent         bool
	}{
		{"read without a lease", "GET", t.Context(), 0, 0, true},
		{"head without a lease", "HEAD", t.Context(), 0, 0, true},
		{"write without a lease", "PUT", t.Context(), 0, 0, false},
		{"post without a lease", "POST", t.Context(), 0, 0, false},
		{"delete without a lease", "DELETE", t.Context(), 0, 0, false},
		{"the lock's own write", "PUT", own, 0, 0, true},
		{"write with a lease", "PUT", t.Context(), 10 * time.Second, 9999 * time.Millisecond, true},
		{"write at its end", "PUT", t.Context(), 10 * time.Second, 10 * time.Second, false},
		{"write after it", "DELETE", t.Context(), 10 * time.Second, time.Hour, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var now time.Duration
			g, next := NewGuard(func() time.Duration { return now }), newTrip()
			if tt.give > 0 {
				g.begin(tt.give)
			}
			now = tt.pass
			next.answer <- struct{}{}
			err := send(g, next, tt.ctx, tt.method)
			var lost *LostError
			if sent := len(next.got) == 1; sent != tt.sent || sent != (err == nil) || !sent && !errors.As(err, &lost) {
				t.Errorf("sent %v, %v; want sent %v", sent, err, tt.sent)
			}
			if !tt.sent && consulutil.Classify(err) != retry.Retry {
				t.Error("whoever leads next may do it: no refusal of Consul's")
			}
		})
	}
}

// TestGuardBoundsWrites: a request that hangs ends with the lease that it began
// with, whatever its own limit, and says so.
func TestGuardBoundsWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, next := bubbleGuard(), newTrip()
		g.begin(10 * time.Second)
		time.AfterFunc(9*time.Second, func() { g.extend(time.Minute) }) // too late for it
		start := time.Now()
		err := send(g, next, t.Context(), "PUT")
		var lost *LostError
		if took := time.Since(start); took != 10*time.Second || !errors.As(err, &lost) {
			t.Errorf("%v after %s", err, took)
		}
	})
}

// A caller's own limit stays its own, and the body may be read until the lease
// ends.
func TestGuardLeavesTheCallersLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, next := bubbleGuard(), newTrip()
		g.begin(10 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := send(g, next, ctx, "PUT")
		var lost *LostError
		if errors.As(err, &lost) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		next.answer <- struct{}{}
		if err := send(g, next, t.Context(), "PUT"); err != nil {
			t.Error(err)
		}
		<-next.got
		if r := <-next.got; r.Context().Err() == nil {
			t.Error("the limit's timer outlives the body")
		}
	})
}

// A refused request gives its body back, as a transport must.
func TestGuardClosesTheBody(t *testing.T) {
	t.Parallel()
	body := &closed{Reader: strings.NewReader("x")}
	r := httptest.NewRequest("PUT", "http://consul/v1/kv/x", body)
	if _, err := bubbleGuard().Transport(newTrip()).RoundTrip(r); err == nil || !body.closed {
		t.Errorf("%v, closed %v", err, body.closed)
	}
}

type closed struct {
	io.Reader
	closed bool
}

func (c *closed) Close() error { c.closed = true; return nil }

func TestGuardRemaining(t *testing.T) {
	t.Parallel()
	now := 5 * time.Second
	g := NewGuard(func() time.Duration { return now })
	if g.Remaining() != 0 {
		t.Error("a lease from nowhere")
	}
	g.begin(15 * time.Second)
	if got := g.Remaining(); got != 10*time.Second {
		t.Errorf("got %s", got)
	}
	if now = time.Minute; g.Remaining() != 0 {
		t.Errorf("got %s after the end", g.Remaining())
	}
	now = 6 * time.Second
	if g.extend(26 * time.Second); g.Remaining() != 20*time.Second {
		t.Errorf("got %s after a renewal", g.Remaining())
	}
	if g.close(); g.Remaining() != 0 {
		t.Error("closed, and lasts")
	}
	if g.extend(time.Minute); g.Remaining() != 0 {
		t.Error("a late renewal has opened it")
	}
}

// TestClock: it goes on, and not by the wall.
func TestClock(t *testing.T) {
	t.Parallel()
	clock := NewClock()
	before := clock()
	start := time.Now()
	for time.Since(start) < 20*time.Millisecond {
	}
	if d := clock() - before; d < 20*time.Millisecond || before <= 0 && d <= 0 {
		t.Errorf("went on by %s in 20 ms", d)
	}
}
