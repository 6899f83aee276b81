package subcommand

import (
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// TestFailingServersCostLittle: a task whose servers fail sends them three times as many requests as an idle
// one, at most, and writes to the catalog ten times after TERM, at most.
func TestFailingServersCostLittle(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	m := newFrontMesh(t, testkit.ConsulOptions{Newest: true})
	m.permitSessions()
	for name, status := range map[string]func(*http.Request) int{
		"the leader is lost": func(r *http.Request) int {
			if r.Method == http.MethodGet {
				return 0
			}
			return http.StatusInternalServerError
		},
		"all requests fail":  func(*http.Request) int { return http.StatusInternalServerError },
		"there are too many": func(*http.Request) int { return http.StatusTooManyRequests },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testRequests(m.beside(t), status)
		})
	}
}

// testRequests compares the requests in 90 s while the servers fail with those before.
func testRequests(m *vpcMesh, status func(*http.Request) int) {
	fronts := m.Fronts(m.consul, 3)
	k := m.task(true, addresses(fronts)...)
	p := k.healthSync()
	requests := func() (n int) {
		for _, f := range fronts {
			n += f.Requests(k.host)
		}
		return n
	}
	counted := func() int {
		before := requests()
		<-time.After(90 * time.Second)
		return requests() - before
	}
	<-time.After(20 * time.Second) // what a start causes is over
	idle := counted()
	var writes atomic.Int64
	for _, f := range fronts {
		f.Fail(func(r *http.Request) int {
			if strings.HasPrefix(r.URL.Path, "/v1/catalog/") {
				writes.Add(1)
			}
			return status(r)
		})
	}
	failing := counted()
	writes.Store(0)
	k.container("STOPPED", "UNHEALTHY")
	p.Signal(syscall.SIGTERM)
	p.Wait()
	m.t.Logf("%d requests in 90 s, %d before; %d writes after TERM", failing, idle, writes.Load())
	if failing > 3*idle {
		m.t.Errorf("%d requests, want %d at most", failing, 3*idle)
	}
	if writes.Load() > 10 {
		m.t.Errorf("%d writes after TERM, want 10 at most", writes.Load())
	}
}
