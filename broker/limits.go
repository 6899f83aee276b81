package broker

import (
	"context"
	"maps"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

const (
	// addressRate and addressBurst limit requests of one address.
	addressRate, addressBurst = 5, 10
	// refusalEvery and refusalBurst limit the lines about refused requests of one task, and
	// strangerRate and strangerBurst those of all callers that are no task.
	refusalEvery, refusalBurst  = 10 * time.Second, 6
	strangerRate, strangerBurst = 5, 50
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
	// revokesAtOnce and laterRevokesAtOnce bound the revocations under way; see slots.
	revokesAtOnce, laterRevokesAtOnce = 64, 8
	// failurePause is how long a revocation that failed keeps its slot.
	failurePause = time.Second
)

// slots bound the calls of the backend under way. A call that fails keeps its slot for failurePause:
// thousands of tokens whose revocation is refused cost the backend a few calls a second, and are
// revoked as fast as it works once it accepts.
type slots chan struct{}

// call calls the function when there is a slot.
func (c slots) call(ctx context.Context, do func() error) error {
	select {
	case c <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := do()
	if err != nil {
		time.AfterFunc(failurePause, func() { <-c })
	} else {
		<-c
	}
	return err
}

// addresses limits a rate for each address. It is safe for concurrent use.
type addresses struct {
	limit rate.Limit
	burst int

	mu       sync.Mutex
	limiters map[netip.Addr]*rate.Limiter
}

func newAddresses(limit rate.Limit, burst int) *addresses {
	return &addresses{limit: limit, burst: burst, limiters: map[netip.Addr]*rate.Limiter{}}
}

// allow counts one event of an address, and reports whether it is within the limit. A host may
// have all IPv6 addresses of a network of 64 bits.
func (a *addresses) allow(ip netip.Addr) bool {
	if ip.Is6() {
		ip = netip.PrefixFrom(ip, 64).Masked().Addr()
	}
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.limiters) >= maxAddresses {
		a.purge(now)
	}
	l := a.limiters[ip]
	if l == nil {
		l = rate.NewLimiter(a.limit, a.burst)
		a.limiters[ip] = l
	}
	return l.AllowN(now, 1)
}

// purge forgets addresses that have their whole burst, or all of them if that is none.
func (a *addresses) purge(now time.Time) {
	maps.DeleteFunc(a.limiters, func(_ netip.Addr, l *rate.Limiter) bool { return l.TokensAt(now) >= float64(a.burst) })
	if len(a.limiters) >= maxAddresses {
		clear(a.limiters)
	}
}

// refusals limits the lines of the logs about refused requests: those of each task's address,
// and those of all other callers together. It is safe for concurrent use.
type refusals struct {
	tasks     *addresses
	strangers *rate.Limiter
	omitted   atomic.Int64
}

func newRefusals() *refusals {
	return &refusals{
		tasks: newAddresses(rate.Every(refusalEvery), refusalBurst), strangers: rate.NewLimiter(strangerRate,
			strangerBurst),
	}
}

// allow reports whether a refusal gets a line, and how many got none since the last line.
func (f *refusals) allow(r *request) (omitted int, ok bool) {
	if r.fromTask && r.caller.known() {
		ok = f.tasks.allow(r.caller.client)
	} else {
		ok = f.strangers.Allow()
	}
	if !ok {
		f.omitted.Add(1)
		return 0, false
	}
	return int(f.omitted.Swap(0)), true
}
