package scenario

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// The check of "no request failed" is worth something only if losses are seen.
func TestTrafficSeesEveryLoss(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1)%4 == 0 {
			http.Error(w, "lost", http.StatusBadGateway)
		}
	}))
	defer server.Close()
	var reported atomic.Int64
	tr := New(server.URL, new(net.Dialer).DialContext, func(Failure) { reported.Add(1) })
	var each, bad atomic.Int64
	tr.Each = func(r Request) {
		each.Add(1)
		if r.Err != nil {
			bad.Add(1)
		}
		if r.Start.IsZero() || r.End.Before(r.Start) {
			t.Errorf("from %s to %s", r.Start, r.End)
		}
	}
	if tr.Rate() != 0 || tr.URL() != server.URL {
		t.Errorf("before the start: %d a second to %s", tr.Rate(), tr.URL())
	}
	tr.Start(t.Context(), 200)
	if tr.Rate() != 200 {
		t.Errorf("rate %d, want 200", tr.Rate())
	}
	until(t, "40 requests", func() bool { answered, failed, _ := tr.Totals(); return answered+failed >= 40 })
	tr.Stop()
	tr.Stop() // twice is fine
	if tr.Rate() != 0 {
		t.Errorf("rate %d after the end", tr.Rate())
	}
	answered, failed, slowest := tr.Totals()
	if slowest <= 0 {
		t.Errorf("slowest %s", slowest)
	}
	if int(each.Load()) != answered+failed || int(bad.Load()) != failed {
		t.Errorf("reported of %d requests, %d of them failed; counted %d and %d", each.Load(), bad.Load(), answered, failed)
	}
	if total := int(n.Load()); answered+failed != total || failed != total/4 || int(reported.Load()) != failed {
		t.Errorf("%d requests arrived: counted %d answered, %d failed, reported of %d", total, answered, failed, reported.Load())
	}
}

func TestTrafficSeesRefusedAndCutConnections(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { // one connection is cut, then nothing listens
		if c, err := l.Accept(); err == nil {
			c.Close()
		}
		l.Close()
	}()
	tr := New("http://"+l.Addr().String(), new(net.Dialer).DialContext, func(Failure) {})
	tr.Start(t.Context(), 100)
	until(t, "3 failures", func() bool { _, failed, _ := tr.Totals(); return failed >= 3 })
	tr.Stop()
	if answered, _, _ := tr.Totals(); answered != 0 {
		t.Errorf("%d answered, want none", answered)
	}
}

func TestAwaitFirstWaitsAndGivesUpWithTheContext(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) < 4 {
			http.Error(w, "not yet", http.StatusBadGateway)
		}
	}))
	defer server.Close()
	tr := New(server.URL, new(net.Dialer).DialContext, func(Failure) { t.Error("counted as a loss") })
	if err := tr.AwaitFirst(t.Context()); err != nil || n.Load() != 4 {
		t.Errorf("got %v after %d requests, want success at the fourth", err, n.Load())
	}
	if answered, failed, _ := tr.Totals(); answered+failed != 0 {
		t.Errorf("counted %d and %d before the start", answered, failed)
	}
	n.Store(-1 << 40)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := tr.AwaitFirst(ctx); err == nil || !strings.Contains(err.Error(), "not yet") {
		t.Errorf("got %v, want the last answer", err)
	}
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(testkit.Patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: not within %s", what, testkit.Patience)
		}
	}
}
