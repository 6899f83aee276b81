package consulutil

import (
	"context"
	"net/http"
	"time"
)

type limitKey struct{}

// WithLimit returns a context whose requests have that limit in place of their client's. It
// is for a request that must not be repeated blindly, such as a login: servers that have
// many to answer do each of them, also when the client no longer waits. A shorter limit that
// ctx has stays.
func WithLimit(ctx context.Context, limit time.Duration) context.Context {
	if shorter, ok := ctx.Value(limitKey{}).(time.Duration); ok && shorter < limit {
		return ctx
	}
	return context.WithValue(ctx, limitKey{}, limit)
}

// limited bounds each request, answer included.
type limited struct {
	next  http.RoundTripper
	limit time.Duration
}

// RoundTrip implements http.RoundTripper.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	limit, own := r.Context().Value(limitKey{}).(time.Duration)
	if !own {
		limit = l.limit
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	resp, err := l.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &attemptBody{resp.Body, cancel}
	return resp, nil
}
