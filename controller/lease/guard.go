package lease

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// Clock is the time since some moment that stays. It never goes back, and goes
// on while this process is stopped.
type Clock func() time.Duration

// LostError says why this process does not lead any more.
type LostError struct{ Err error }

func (e *LostError) Error() string { return "not the leader any more: " + e.Err.Error() }
func (e *LostError) Unwrap() error { return e.Err }

// Guard lets writes pass while there is a lease. It is safe for concurrent use.
type Guard struct {
	clock Clock
	until atomic.Int64 // on the clock
	open  atomic.Bool
}

// NewGuard has no lease yet.
func NewGuard(clock Clock) *Guard { return &Guard{clock: clock} }

// Remaining is how long the lease lasts; without one it is 0.
func (g *Guard) Remaining() time.Duration {
	if !g.open.Load() {
		return 0
	}
	return max(0, time.Duration(g.until.Load())-g.clock())
}

// begin gives a lease until a moment of the clock.
func (g *Guard) begin(until time.Duration) {
	g.until.Store(int64(until))
	g.open.Store(true)
}

// extend makes a lease last until a moment of the clock. One that was ended stays
// so: the answer to a renewal may come late.
func (g *Guard) extend(until time.Duration) { g.until.Store(int64(until)) }

func (g *Guard) close() { g.open.Store(false) }

// Transport wraps a client's transport (consulutil.Options.Wrap). A request
// that is not a GET or HEAD needs a lease, and ends with the lease that it began
// with, by a *LostError. The lock's own requests pass.
func (g *Guard) Transport(next http.RoundTripper) http.RoundTripper {
	return transport{g, next}
}

type transport struct {
	guard *Guard
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Context().Value(ownRequest{}) != nil {
		return t.next.RoundTrip(r)
	}
	left := t.guard.Remaining()
	if left <= 0 {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, &LostError{errors.New("the request was not sent, as the lease has ended")}
	}
	over := &LostError{errors.New("the lease ended before the answer came")}
	ctx, cancel := context.WithTimeoutCause(r.Context(), left, over)
	resp, err := t.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		if context.Cause(ctx) == over {
			err = over
		}
		cancel()
		return nil, err
	}
	resp.Body = &bounded{resp.Body, cancel}
	return resp, nil
}

// bounded is a body that is read below the request's limit.
type bounded struct {
	io.ReadCloser
	done context.CancelFunc
}

// Close releases the limit.
func (b *bounded) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}

// ownRequest marks the context of the lock's own requests, which make the lease
// and so cannot need it.
type ownRequest struct{}
