package controller

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/consulutil"
)

const (
	// firstPass is how long a new leader may take for its first pass, which looks up
	// every task.
	firstPass = 5 * time.Minute
	// setupLimit is how long setup may fail: in a first deployment the controller may
	// start long before Consul is ready.
	setupLimit = 5 * time.Minute
	// noLead is how long a controller that does not lead may be without an answer of
	// Consul about the leader. It does not depend on the interval: Consul answers about
	// every 5 s, and after a leader's death not until the lock's delay has passed.
	noLead = 2 * consulutil.LockDelay
)

// health is the state behind /healthz. It is safe for concurrent use.
type health struct {
	mu sync.Mutex
	// last is the last success: a completed pass, the start of leadership, or an
	// answer that names the leader. The next must follow within limit.
	last  time.Time
	limit time.Duration
	// setupFails is set while setup fails, and setupSince is since when.
	setupFails bool
	setupSince time.Time
}

// succeeded records a success.
func (h *health) succeeded(now time.Time, limit time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last, h.limit = now, limit
}

// setup records the result of a setup.
func (h *health) setup(now time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.setupFails {
		h.setupSince = now
	}
	h.setupFails = err != nil
}

// check returns why the controller is unhealthy, or nil. Any caller gets it, so that it names
// nothing of Consul or AWS.
func (h *health) check(now time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if since := now.Sub(h.last); since > h.limit {
		return fmt.Errorf("no successful pass, or as a standby no answer from Consul, for %s (limit %s); see the log",
			since.Round(time.Second), h.limit.Round(time.Second))
	}
	if since := now.Sub(h.setupSince); h.setupFails && since > setupLimit {
		return fmt.Errorf("setup has failed for %s; see the log", since.Round(time.Second))
	}
	return nil
}

// Handler answers /metrics, and /healthz with 200 or 503 and a reason.
func (c *Controller) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", c.Metrics.Handler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if err := c.health.check(time.Now()); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, err.Error()+"\n")
			return
		}
		io.WriteString(w, "ok\n")
	})
	return mux
}
