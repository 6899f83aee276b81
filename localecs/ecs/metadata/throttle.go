package metadata

import (
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// The ECS agent's rate limit.
const (
	requestsPerSecond = 40
	burst             = 60
	// idle is how long an unused bucket is kept; a full one is no loss.
	idle = time.Minute
)

// throttle lets each client address ask for each path 40 times a second, 60
// at once, and answers 429 to more.
func throttle(next http.Handler) http.Handler {
	b := &buckets{byKey: map[bucketKey]*bucket{}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b.allow(bucketKey{clientIP(r), r.URL.Path}, time.Now()) {
			next.ServeHTTP(w, r)
			return
		}
		TooMany(w)
	})
}

// TooMany writes the ECS agent's answer to a client that asks too often.
func TooMany(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("X-Rate-Limit-Limit", "40.00")
	w.Header().Set("X-Rate-Limit-Duration", "1")
	w.WriteHeader(http.StatusTooManyRequests)
	io.WriteString(w, "You have reached maximum request limit.")
}

// clientIP returns the peer's address without its port. Forwarding headers are not believed: nothing
// forwards inside a task.
func clientIP(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

type bucketKey struct{ ip, path string }

type bucket struct {
	limiter *rate.Limiter
	used    time.Time
}

// buckets are all token buckets; those idle for long are dropped, so that
// invented paths do not fill the memory.
type buckets struct {
	mu    sync.Mutex
	byKey map[bucketKey]*bucket
	swept time.Time
}

func (b *buckets) allow(key bucketKey, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.swept) > idle {
		for k, old := range b.byKey {
			if now.Sub(old.used) > idle {
				delete(b.byKey, k)
			}
		}
		b.swept = now
	}
	k := b.byKey[key]
	if k == nil {
		k = &bucket{limiter: rate.NewLimiter(requestsPerSecond, burst)}
		b.byKey[key] = k
	}
	// Requests may come for the lock in another order than they looked at the clock, and a
	// limiter that is set back in time refills that time twice.
	if now.After(k.used) {
		k.used = now
	}
	return k.limiter.AllowN(k.used, 1)
}
