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
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// The check of "no request failed" is worth something only if losses are seen.
func TestTrafficReportsEveryLostRequest(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1)%4 == 0 {
			http.Error(w, "lost", http.StatusBadGateway)
		}
	}))
	defer server.Close()
	var each, bad atomic.Int64
	tr := newTraffic(server.URL, new(net.Dialer).DialContext, func(r trafficRequest) {
		each.Add(1)
		if r.Err != nil {
			bad.Add(1)
		}
		if r.Start.IsZero() || r.End.Before(r.Start) {
			t.Errorf("from %s to %s", r.Start, r.End)
		}
	})
	tr.Start(t.Context(), 200)
	until(t, "40 requests", func() bool { answered, failed, _ := totals(tr); return answered+failed >= 40 })
	tr.Stop()
	tr.Stop() // twice is fine
	answered, failed, slowest := totals(tr)
	if slowest <= 0 {
		t.Errorf("slowest %s", slowest)
	}
	if int(each.Load()) != answered+failed || int(bad.Load()) != failed {
		t.Errorf("reported of %d requests, %d of them failed; counted %d and %d", each.Load(), bad.Load(), answered,
			failed)
	}
	if total := int(n.Load()); answered+failed != total || failed != total/4 {
		t.Errorf("%d requests arrived: counted %d answered, %d failed", total, answered, failed)
	}
}

func TestTrafficReportsRefusedAndCutConnections(t *testing.T) {
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
	tr := newTraffic("http://"+l.Addr().String(), new(net.Dialer).DialContext, func(trafficRequest) {})
	tr.Start(t.Context(), 100)
	until(t, "3 failures", func() bool { _, failed, _ := totals(tr); return failed >= 3 })
	tr.Stop()
	if answered, _, _ := totals(tr); answered != 0 {
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
	tr := newTraffic(server.URL, new(net.Dialer).DialContext, func(trafficRequest) { t.Error("counted") })
	if err := tr.AwaitFirst(t.Context()); err != nil || n.Load() != 4 {
		t.Errorf("got %v after %d requests, want success at the fourth", err, n.Load())
	}
	if answered, failed, _ := totals(tr); answered+failed != 0 {
		t.Errorf("counted %d and %d before the start", answered, failed)
	}
	for limit := 100 * time.Millisecond; ; limit *= 10 { // within which there is an answer
		n.Store(-1 << 40)
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		err := tr.AwaitFirst(ctx)
		cancel()
		if err != nil && strings.Contains(err.Error(), "not yet") {
			break
		}
		if err == nil || limit > testkit.Patience {
			t.Fatalf("got %v, want the last answer", err)
		}
	}
}

// totals returns the requests that have ended so far.
func totals(s *trafficStream) (answered, failed int, slowest time.Duration) {
	p := s.Phase("", file.Limits{})
	return p.Answered, p.Failed, p.Slowest
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
