package healthsync

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	appCheck      = "web-0f9de17a-app-consul-ecs"
	listenerCheck = "listener"
	aliasCheck    = "alias"
)

// agentAPI is the HTTP API of an agent that has synchronized: the alias check of the proxy
// follows that of the service, and the servers have both, a moment after a write.
type agentAPI struct {
	mu       sync.Mutex
	requests []string
	checks   map[string]*api.AgentCheck
	servers  map[string]string // the statuses that they have
}

func newAgentAPI(w workload.Workload, listener string) *agentAPI {
	a := &agentAPI{checks: map[string]*api.AgentCheck{}, servers: map[string]string{}}
	add := func(id, service, kind, status string) {
		a.checks[id] = &api.AgentCheck{Node: "node", CheckID: id, ServiceID: service, Type: kind, Status: status}
	}
	add(appCheck, w.ID, "ttl", api.HealthCritical)
	add(aliasCheck, w.Proxy.ID, "alias", api.HealthCritical)
	add(listenerCheck, w.Proxy.ID, "tcp", listener)
	a.send()
	return a
}

func (a *agentAPI) send() {
	for id, c := range a.checks {
		a.servers[id] = c.Status
	}
}

// RoundTrip implements http.RoundTripper.
func (a *agentAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, r.Method+" "+r.URL.Path)
	var answer any
	switch {
	case strings.HasPrefix(r.URL.Path, "/v1/agent/check/update/"):
		var update struct{ Status string }
		if err := json.NewDecoder(r.Body).Decode(&update); err != nil {
			return nil, err
		}
		a.checks[appCheck].Status = update.Status
		time.AfterFunc(5*time.Millisecond, a.follow)
	case r.URL.Path == "/v1/agent/checks":
		answer = a.checks
	case r.URL.Path == "/v1/health/node/node":
		var known []api.HealthCheck
		for id, status := range a.servers {
			known = append(known, api.HealthCheck{CheckID: id, Status: status})
		}
		answer = known
	}
	body, err := json.Marshal(answer)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), Request: r,
	}, err
}

func (a *agentAPI) follow() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.checks[aliasCheck].Status = a.checks[appCheck].Status
	a.send()
}

func (a *agentAPI) status() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.checks[appCheck].Status
}

// count returns how many requests began so since the last call.
func (a *agentAPI) count(prefix string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, r := range a.requests {
		if strings.HasPrefix(r, prefix) {
			n++
		}
	}
	a.requests = nil
	return n
}

// withAgentAPI runs a test with a healthy task whose proxy's listener has each status.
func withAgentAPI(t *testing.T, test func(*testing.T, *fixture, *agentAPI)) {
	for _, listener := range []string{api.HealthPassing, api.HealthCritical} {
		t.Run("listener "+listener, func(t *testing.T) {
			t.Parallel()
			inBubble(t, []string{"app"}, func(r *fixture) {
				w, err := workload.New(r.cfg, workload.Task{TaskARN: taskARN, Family: "web"}, "")
				if err != nil {
					t.Fatal(err)
				}
				a := newAgentAPI(w, listener)
				client, err := consulutil.NewClient(consulutil.Options{
					Address: "127.0.0.1:8500",
					Wrap:    func(http.RoundTripper) http.RoundTripper { return testkit.RoundTripper(a.RoundTrip) },
				})
				if err != nil {
					t.Fatal(err)
				}
				r.registrar = registrar.New(&config.Config{}, client)
				r.metadata.set(map[string]string{"app": "HEALTHY"}, nil)
				r.run()
				r.advance(5 * time.Second)
				a.count("")
				test(t, r, a)
			})
		})
	}
}

func TestAgentIsAskedTwelveTimesAMinuteAtRest(t *testing.T) {
	t.Parallel()
	withAgentAPI(t, func(t *testing.T, r *fixture, a *agentAPI) {
		r.advance(30 * time.Second)
		a.count("")
		const minutes = 10
		r.advance(minutes * time.Minute)
		if got := a.count(""); got > 12*minutes {
			t.Errorf("%d requests in %d min, want at most %d", got, minutes, 12*minutes)
		}
	})
}

// TestChangeIsWrittenOnce: and soon, also while an earlier change has not reached the proxy.
func TestChangeIsWrittenOnce(t *testing.T) {
	t.Parallel()
	const changes = 40
	withAgentAPI(t, func(t *testing.T, r *fixture, a *agentAPI) {
		for i := range changes {
			health, want := "HEALTHY", api.HealthPassing
			if i%2 == 0 {
				health, want = "UNHEALTHY", api.HealthCritical
			}
			r.metadata.set(map[string]string{"app": health}, nil)
			r.advance(tick + 100*time.Millisecond)
			if got := a.status(); got != want {
				t.Errorf("change %d: the check is %s after %s, want %s", i, got, tick, want)
			}
		}
		r.advance(3 * time.Second)
		if got := a.count("PUT "); got != changes {
			t.Errorf("%d writes for %d changes", got, changes)
		}
	})
}
