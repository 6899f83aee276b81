package registrar

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/workload"
)

// bound is a task whose session is kept, in virtual time, at servers with session checks.
type bound struct {
	*servers
	t   *testing.T
	c   *catalog
	w   workload.Workload
	log testkit.Log

	mu sync.Mutex
	// answer takes the place of the servers' answer when it is not nil.
	answer func(r *http.Request) (*http.Response, error)
	// vouched is what credentials report.
	vouched bool
}

func inBound(t *testing.T, test func(b *bound)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bound{servers: &servers{checks: map[string]health{}, version: "1.22.2"}, t: t, vouched: true}
		client, err := consulutil.NewClient(consulutil.Options{
			Address: "10.0.0.1:8500",
			Wrap:    func(http.RoundTripper) http.RoundTripper { return testkit.RoundTripper(b.serve) },
		})
		if err != nil {
			t.Fatal(err)
		}
		b.c = newCatalog(client).(*catalog)
		b.w = catalogWorkload(t, func(*config.Config) {})
		ctx, cancel := context.WithCancel(t.Context())
		ended := b.c.Hold(ctx, hclog.New(&hclog.LoggerOptions{Output: &b.log}), func() (string, bool) {
			b.mu.Lock()
			defer b.mu.Unlock()
			return "tok", b.vouched
		}, b.w)
		defer func() {
			cancel()
			<-ended
		}()
		test(b)
	})
}

func (b *bound) serve(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	answer := b.answer
	b.mu.Unlock()
	if answer != nil {
		if resp, err := answer(r); resp != nil || err != nil {
			return resp, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	w := httptest.NewRecorder()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	b.ServeHTTP(w, r)
	return w.Result(), nil
}

func (b *bound) setAnswer(f func(r *http.Request) (*http.Response, error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = f
}

// set writes all checks with the status.
func (b *bound) set(status string, refresh bool) []Result {
	var updates []Update
	for _, check := range b.w.SyncChecks {
		updates = append(updates, Update{Check: check, Status: status, Output: "fine", Refresh: refresh})
	}
	results := b.c.Set(context.Background(), "tok", b.w, updates)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, check := range b.w.SyncChecks {
		b.checks[check.ID] = health{status, "fine"}
	}
	for _, id := range sessionCheckIDs(b.w) {
		b.checks[id] = health{"passing", ""}
	}
	return results
}

// wants compares the requests since the last call.
func (b *bound) wants(want ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.want(b.t, want...)
}

// name returns that of the session.
func (b *bound) name() string {
	_, name, _ := b.c.session.state()
	return name
}

// advance lets time go by.
func (b *bound) advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// count returns how many requests since the last call begin so, and forgets all.
func (b *bound) count(prefixes ...string) []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	counts := make([]int, len(prefixes))
	for i, prefix := range prefixes {
		for _, request := range b.requests {
			if strings.HasPrefix(request, prefix) {
				counts[i]++
			}
		}
	}
	b.requests, b.bodies = nil, nil
	return counts
}

// session returns the body of the last registration with session checks.
func (b *bound) session() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, body := range slices.Backward(b.bodies) {
		if strings.Contains(string(body), "SessionName") {
			return string(body)
		}
	}
	return ""
}

const (
	creates = "PUT /v1/session/create?ns=ns&partition=part tok"
	renews  = "PUT /v1/session/renew/s1?ns=ns&partition=part tok"
	lists   = "GET /v1/session/node/"
)

// answers answers requests whose path begins so.
func answers(path string, status int, body string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		if !strings.HasPrefix(r.URL.Path, path) {
			return nil, nil
		}
		w := httptest.NewRecorder()
		w.WriteHeader(status)
		w.WriteString(body)
		return w.Result(), nil
	}
}

// hangs answers nothing to requests whose path begins so.
func hangs(path string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		if !strings.HasPrefix(r.URL.Path, path) {
			return nil, nil
		}
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
}
