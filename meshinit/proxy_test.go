package meshinit_test

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
)

// requests counts requests to Consul and fails those that a test selects.
type requests struct {
	mu   sync.Mutex
	seen []string
	// queries are those of the requests in seen.
	queries []url.Values
	// spoil answers a request in Consul's place by returning true.
	spoil func(w http.ResponseWriter, r *http.Request) bool
	// after runs when Consul has answered a request, before the caller has
	// the answer.
	after func(r *http.Request)
}

func (q *requests) before(target string) http.Handler {
	u, _ := url.Parse(target)
	proxy := httputil.NewSingleHostReverseProxy(u)
	proxy.ModifyResponse = func(resp *http.Response) error {
		if q.after != nil {
			q.after(resp.Request)
		}
		return nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q.mu.Lock()
		q.seen = append(q.seen, fmt.Sprintf("%s %s", r.Method, r.URL.Path))
		q.queries = append(q.queries, r.URL.Query())
		q.mu.Unlock()
		if q.spoil != nil && q.spoil(w, r) {
			return
		}
		proxy.ServeHTTP(w, r)
	})
}

func (q *requests) list() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.seen)
}

// query returns the query of the first such request.
func (q *requests) query(request string) url.Values {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.seen, request); i >= 0 {
		return q.queries[i]
	}
	return nil
}

func (q *requests) count(request string) int {
	n := 0
	for _, seen := range q.list() {
		if seen == request {
			n++
		}
	}
	return n
}
