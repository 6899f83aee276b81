package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"time"
)

// exchange is one request that was answered.
type exchange struct {
	method, path string
	body         string
	start, end   time.Time
}

// recorder notes every request that passes through it. It is safe for
// concurrent use.
type recorder struct {
	mu   sync.Mutex
	seen []exchange
}

// around records what h answers.
func (r *recorder) around(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		e := exchange{method: req.Method, path: req.URL.Path, start: time.Now()}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return // the client is gone
		}
		e.body = string(body)
		req.Body = io.NopCloser(bytes.NewReader(body))
		h.ServeHTTP(w, req)
		e.end = time.Now()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.seen = append(r.seen, e)
	})
}

// proxy records what the server at that address answers.
func (r *recorder) proxy(address string) http.Handler {
	return r.around(httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address}))
}

// take returns the record so far and begins a new one.
func (r *recorder) take() []exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen
	r.seen = nil
	return seen
}

// busy returns the time during which at least one exchange was under way: what a program that waits for its answers
// spent on others. Consul asks STS while it handles a login, so exchanges overlap.
func busy(es []exchange) time.Duration {
	sorted := slices.SortedFunc(slices.Values(es), func(a, b exchange) int { return a.start.Compare(b.start) })
	var total time.Duration
	var until time.Time
	for _, e := range sorted {
		from := e.start
		if from.Before(until) {
			from = until
		}
		if e.end.After(from) {
			total += e.end.Sub(from)
			until = e.end
		}
	}
	return total
}
