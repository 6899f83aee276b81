package controller

import (
	"fmt"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/controller/lease"
)

// firstPass is how long a new leader may take for set-up and its first pass,
// which looks every task up.
const firstPass = 5 * time.Minute

// noLead is how long a controller that does not lead may hear nothing of who
// does. It is no matter of the interval: Consul tells about every 5 s, and while
// nobody leads after a leader's death, a lock's delay passes in silence.
const noLead = 2 * lease.LockDelay

// health is when there was good news, and when there must be again. It is safe
// for concurrent use.
type health struct {
	mu      sync.Mutex
	last    time.Time
	allowed time.Duration
}

// good notes good news: a pass that succeeded, a new lead, or that another leads.
func (h *health) good(now time.Time, allowed time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last, h.allowed = now, allowed
}

// check says what is wrong at a time.
func (h *health) check(now time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if since := now.Sub(h.last); since > h.allowed {
		return fmt.Errorf("nothing has succeeded for %s, at most %s are in order; the log says why", since.Round(time.Second), h.allowed.Round(time.Second))
	}
	return nil
}

// allowed is three intervals, of the pause and the duration of the last pass.
func (c *Controller) allowed(pause, took time.Duration) time.Duration {
	return 3 * (max(pause, c.Interval) + took)
}
