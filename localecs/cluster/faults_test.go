package cluster_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/chaos"
	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
)

// statuses asks n times.
func statuses(t *testing.T, n int, url string) string {
	t.Helper()
	var b strings.Builder
	for range n {
		resp, err := get(t.Context(), url)
		if status, _, _ := read(t, resp, err); status == 200 {
			b.WriteByte('.')
		} else {
			b.WriteByte('x')
		}
	}
	return b.String()
}

func TestASeedReplaysTheShare(t *testing.T) {
	t.Parallel()
	half := chaos.Endpoint{Name: chaos.Metadata, Status: 500, Share: 0.5}
	draw := func(seed uint64, more ...chaos.Endpoint) (web, api string) {
		w := newFixture(t)
		statuses(t, 3, w.metadata) // before it began: they do not count
		for _, e := range append(more, half) {
			w.faults.Begin(e, seed)
		}
		// The other task's requests do not change what happens to web's.
		first := statuses(t, 10, w.metadata)
		api = statuses(t, 20, w.other)
		return first + statuses(t, 10, w.metadata), api
	}
	web, api := draw(7)
	if again, other := draw(7); web != again || api != other {
		t.Errorf("seed 7: %s and %s, then %s and %s", web, api, again, other)
	}
	if another, _ := draw(8); another == web {
		t.Errorf("seeds 7 and 8 both give %s", web)
	}
	if n := strings.Count(web, "x"); n < 3 || n > 17 {
		t.Errorf("%d faults, want half of the requests: %s", n, web)
	}
	if web == api {
		t.Errorf("both tasks: %s", web)
	}
	// Another fault has its own draws.
	if with, _ := draw(7, chaos.Endpoint{Name: chaos.Metadata, Task: "web", Slow: time.Millisecond, Share: 0.5}); with != web {
		t.Errorf("alone %s, beside another fault %s", web, with)
	}
}

func TestAFaultIsOfItsTaskOrOfAll(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	end := w.faults.Begin(chaos.Endpoint{Name: chaos.Metadata, Task: "web", Status: 500}, 1)
	if web, api := statuses(t, 1, w.metadata), statuses(t, 1, w.other); web != "x" || api != "." {
		t.Errorf("a fault of web: web %s, api %s", web, api)
	}
	end()
	end() // does nothing
	all := w.faults.Begin(chaos.Endpoint{Name: chaos.Metadata, Status: 500}, 1)
	if web, api := statuses(t, 1, w.metadata), statuses(t, 1, w.other); web != "x" || api != "x" {
		t.Errorf("a fault of all: web %s, api %s", web, api)
	}
	all()
	if web, api := statuses(t, 1, w.metadata), statuses(t, 1, w.other); web != "." || api != "." {
		t.Errorf("after the faults: web %s, api %s", web, api)
	}
}

func TestOverlappingFaultsStrikeInOrder(t *testing.T) {
	t.Parallel()
	status := chaos.Endpoint{Name: chaos.Metadata, Status: 503}
	for name, c := range map[string]struct {
		faults []chaos.Endpoint
		status int
		body   string // its beginning
		cut    bool
	}{
		"the first status":        {[]chaos.Endpoint{status, {Name: chaos.Metadata, Status: 429}}, 503, `"Unable`, false},
		"no wrong with a status":  {[]chaos.Endpoint{{Name: chaos.Metadata, Wrong: chaos.Page}, status}, 503, `"Unable`, false},
		"the first wrong":         {[]chaos.Endpoint{{Name: chaos.Metadata, Wrong: chaos.Empty}, {Name: chaos.Metadata, Wrong: chaos.Page}}, 200, "{}", false},
		"half of a wrong answer":  {[]chaos.Endpoint{{Name: chaos.Metadata, Cut: true}, {Name: chaos.Metadata, Wrong: chaos.Page}}, 200, "<html>", true},
		"half of an error":        {[]chaos.Endpoint{status, {Name: chaos.Metadata, Cut: true}}, 503, `"Unable`, true},
		"late, and then an error": {[]chaos.Endpoint{{Name: chaos.Metadata, Slow: time.Millisecond}, status}, 503, `"Unable`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			for _, e := range c.faults {
				w.faults.Begin(e, 1)
			}
			resp, err := get(t.Context(), w.metadata+"/task")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			testkit.Equal(t, "status", resp.StatusCode, c.status)
			if !strings.HasPrefix(string(body), c.body) {
				t.Errorf("body %s, want %s", body, c.body)
			}
			if cut := errors.Is(err, io.ErrUnexpectedEOF); cut != c.cut {
				t.Errorf("cut %t (%v), want %t", cut, err, c.cut)
			}
		})
	}
}

// A hang has to outlive the time limits of the agent's server.
func TestHungEndpointSendsNothingUntilTheFaultEnds(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	end := w.faults.Begin(chaos.Endpoint{Name: chaos.Protection, Hang: true}, 1)
	start := time.Now()
	time.AfterFunc(metadata.Timeout+time.Second, end)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, w.protection, strings.NewReader(`{"ProtectionEnabled":true}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	status, _, body := read(t, resp, err)
	took := time.Since(start)
	if took < metadata.Timeout {
		t.Errorf("answered after %s, want %s or more", took, metadata.Timeout)
	}
	testkit.Equal(t, "status", status, 200)
	if !strings.Contains(body, `"ProtectionEnabled":true`) {
		t.Errorf("body %s, want protection", body)
	}
}

func TestWaitsEndWithTheCallerAndWithTheFault(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]chaos.Endpoint{
		"hang": {Name: chaos.Metadata, Hang: true},
		"slow": {Name: chaos.Metadata, Slow: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			end := w.faults.Begin(e, 1)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if _, err := get(ctx, w.metadata); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want silence", err)
			}
			time.AfterFunc(200*time.Millisecond, end)
			resp, err := get(t.Context(), w.metadata)
			if status, _, body := read(t, resp, err); status != 200 {
				t.Errorf("at the fault's end: %d %s", status, body)
			}
		})
	}
}

func TestSlowWaitsForTheLongest(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.faults.Begin(chaos.Endpoint{Name: chaos.Metadata, Slow: 300 * time.Millisecond}, 1)
	w.faults.Begin(chaos.Endpoint{Name: chaos.Metadata, Slow: 200 * time.Millisecond}, 1)
	start := time.Now()
	resp, err := get(t.Context(), w.metadata)
	if status, _, _ := read(t, resp, err); status != 200 || time.Since(start) < 300*time.Millisecond {
		t.Errorf("%d after %s", status, time.Since(start))
	}
}
