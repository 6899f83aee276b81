package broker

import (
	"maps"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// addressRate and addressBurst limit requests of one address.
	addressRate, addressBurst = 5, 10
	// taskEvery and taskBurst limit the requests of one task: 6 in 10 min. Only requests
	// that come from the task count, so that no other task can use them up.
	taskEvery, taskBurst = 100 * time.Second, 6
	// rotateEvery and rotateBurst limit its rotations, which prove the current token: a
	// TTL of 1 min takes more than 6 in 10 min.
	rotateEvery, rotateBurst = 10 * time.Second, 6
	// maxRegrants is how many tokens a task may get in place of one that still lives,
	// within regrantWindow: a restarted container has lost it.
	maxRegrants, regrantWindow = 3, time.Hour
	// maxAddresses bounds the addresses that are remembered.
	maxAddresses = 100_000
)

// addresses limits the rate per address.
type addresses struct {
	mu       sync.Mutex
	limiters map[netip.Addr]*rate.Limiter
}

// allow counts one request.
func (a *addresses) allow(ip netip.Addr) error {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.limiters == nil {
		a.limiters = map[netip.Addr]*rate.Limiter{}
	}
	if len(a.limiters) >= maxAddresses {
		a.purge(now)
	}
	l := a.limiters[ip]
	if l == nil {
		l = rate.NewLimiter(addressRate, addressBurst)
		a.limiters[ip] = l
	}
	if !l.AllowN(now, 1) {
		return later(http.StatusTooManyRequests, "rate", time.Second, "too many requests from %s", ip)
	}
	return nil
}

// purge forgets addresses that have their whole burst, or all of them if that is none.
func (a *addresses) purge(now time.Time) {
	maps.DeleteFunc(a.limiters, func(_ netip.Addr, l *rate.Limiter) bool { return l.TokensAt(now) >= addressBurst })
	if len(a.limiters) >= maxAddresses {
		clear(a.limiters)
	}
}
