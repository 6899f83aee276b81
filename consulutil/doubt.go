package consulutil

import (
	"context"
	"sync/atomic"
)

type doubtKey struct{}

// WithDoubt returns a context whose requests set doubt when an attempt of theirs was sent and
// not answered. Its server may carry it out later, although another one has answered: a
// server that was paused does what it had received.
func WithDoubt(ctx context.Context) (_ context.Context, doubt *atomic.Bool) {
	doubt = new(atomic.Bool)
	return context.WithValue(ctx, doubtKey{}, doubt), doubt
}

// recordDoubt records an attempt without an answer.
func recordDoubt(ctx context.Context) {
	if doubt, ok := ctx.Value(doubtKey{}).(*atomic.Bool); ok {
		doubt.Store(true)
	}
}
