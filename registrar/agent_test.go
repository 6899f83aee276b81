package registrar

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/workload"
)

// TestRequests pins methods, paths, queries and tokens: namespace and partition
// are in the bodies of registrations and in the query of everything else.
func TestRequests(t *testing.T) {
	t.Parallel()
	var got []string
	client := fakeAgent(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, fmt.Sprintf("%s %s %s", r.Method, r.URL, r.Header.Get("X-Consul-Token")))
		if r.URL.Path == "/v1/status/leader" {
			fmt.Fprint(w, `"127.0.0.1:8300"`)
			return
		}
		switch {
		case strings.HasPrefix(r.URL.Path, "/v1/health/node/"):
			fmt.Fprint(w, `[{"CheckID": "c1", "Status": "critical"}, {"CheckID": "alias", "Status": "critical"}]`)
		case r.URL.Path == "/v1/agent/checks":
			fmt.Fprint(w, `{"c1": {"Node": "n", "CheckID": "c1", "Status": "critical", "ServiceID": "web-1"},
				"alias": {"CheckID": "alias", "Status": "critical", "ServiceID": "web-1-sidecar-proxy"}}`)
		default:
			fmt.Fprint(w, `{"Kind":"connect-proxy"}`)
		}
	})
	r := New(&config.Config{}, client)
	ctx := context.Background()
	w := workload.Workload{ID: "web-1", Name: "web", Namespace: "ns",
		Partition: "part", Proxy: workload.Proxy{ID: "web-1-sidecar-proxy"}}
	set := func(u Update) error { return r.Set(ctx, "tok", w, []Update{u})[0].Err }
	update := Update{Check: workload.SyncCheck{ID: "c1"}, Status: "critical", Output: "out"}
	first, refresh, last := update, update, update
	first.First, refresh.Refresh, last.Last = true, true, true
	reason := refresh
	reason.Output = "another reason"
	lastAgain := last
	lastAgain.Refresh = true
	const (
		read  = "GET /v1/agent/checks?ns=ns&partition=part tok"
		write = "PUT /v1/agent/check/update/c1?ns=ns&partition=part tok"

		register = "PUT /v1/agent/check/register tok"
	)
	steps := []struct {
		name string
		do   func() error
		want []string
	}{
		{"register", func() error { return r.Register(ctx, "tok", w) },
			[]string{"PUT /v1/agent/service/register tok", "PUT /v1/agent/service/register tok"}},
		{"register without a token", func() error { return r.Register(ctx, "", w) },
			[]string{"GET /v1/status/leader ", "PUT /v1/agent/service/register ", "PUT /v1/agent/service/register "}},
		{"register gateway", func() error {
			return r.Register(ctx, "",
				workload.Workload{Gateway: "mesh-gateway", ID: "gw-1", Proxy: workload.Proxy{ID: "gw-1"}})
		}, []string{"PUT /v1/agent/service/register "}},
		{"proxy", func() error { _, err := r.Proxy(ctx, "tok", w); return err },
			[]string{"GET /v1/agent/service/web-1-sidecar-proxy?ns=ns&partition=part tok"}},
		{
			"refresh after a registration, whose changes the agent may not have sent",
			func() error { return set(refresh) },
			[]string{read, "GET /v1/health/node/n?ns=ns&partition=part&stale= tok"},
		},
		{"refresh", func() error { return set(refresh) }, []string{read, write}},
		{
			"set", func() error { return set(update) },
			[]string{write, read, "GET /v1/health/node/n?ns=ns&partition=part&stale= tok"},
		},
		{"set for the last time", func() error { return set(last) }, []string{write, read, write}},
		{"set once more after that", func() error { return set(lastAgain) }, []string{write}},
		{"set for the first time", func() error { return set(first) }, []string{write, register, read, write}},
		{"refresh after that", func() error { return set(refresh) }, []string{read, write}},
		{"another reason", func() error { return set(reason) }, []string{write, register, read, write}},
		{"refresh of that", func() error { return set(reason) }, []string{read, write}},
	}
	for _, s := range steps {
		got = nil
		if err := s.do(); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
		if !slices.Equal(got, s.want) {
			t.Errorf("%s:\n got %q\nwant %q", s.name, got, s.want)
		}
	}
}

// TestRefreshWithAnAgentThatHasJustStarted: the agent sends to the servers what it has at a
// write. Its check of the listener is critical until that has run, and its alias check may
// stay so until a check of the service is registered.
func TestRefreshWithAnAgentThatHasJustStarted(t *testing.T) {
	t.Parallel()
	const listener, alias, register, write = "listener", "alias",
		"PUT /v1/agent/check/register", "PUT /v1/agent/check/update/c1"
	for name, tt := range map[string]struct {
		critical string
		want     []string
	}{
		"all passing":                {"", []string{write}},
		"listener not checked yet":   {listener, []string{write}},
		"alias check that is behind": {alias, []string{register, write, write}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			looks, critical := 0, tt.critical
			var got []string
			client := fakeAgent(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPut {
					if got = append(got, r.Method+" "+r.URL.Path); got[len(got)-1] == register {
						critical = ""
					}
					return
				}
				if looks++; looks > 2 && critical == listener {
					critical = ""
				}
				checks := map[string]*api.AgentCheck{"c1": {ServiceID: "web-1", Type: "ttl", Status: "passing"}}
				for _, kind := range []string{listener, alias} {
					checks[kind] = &api.AgentCheck{ServiceID: "web-1-sidecar-proxy", Type: kind, Status: "passing"}
				}
				if critical != "" {
					checks[critical].Status = "critical"
				}
				if err := json.NewEncoder(w).Encode(checks); err != nil {
					t.Error(err)
				}
			})
			w := workload.Workload{ID: "web-1", Name: "web", Proxy: workload.Proxy{ID: "web-1-sidecar-proxy"}}
			refresh := []Update{{Check: workload.SyncCheck{ID: "c1"}, Status: "passing", Refresh: true}}
			r := &agent{client: client}
			for result := r.Set(t.Context(), "", w, refresh)[0]; ; result = r.Set(t.Context(), "", w, refresh)[0] {
				if result.Err != nil {
					t.Fatal(result.Err)
				}
				if r.Refresh() != 0 {
					break
				}
				if len(got) != 0 {
					t.Errorf("wrote %q before the proxy followed", got)
				}
				r.behind = r.behind.Add(-followLimit / 3) // so much time passes
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("wrote %q, want %q", got, tt.want)
			}
			if critical != "" {
				t.Errorf("%s check is still critical", critical)
			}
		})
	}
}

// fakeAgent returns a client of an agent that answers so.
func fakeAgent(t *testing.T, answer http.HandlerFunc) *api.Client {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	client, err := consulutil.NewClient(consulutil.Options{Address: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestAnAgentThatHasNotJoinedIsNoMatterOfTags: its answers about a token say nothing about the token.
func TestAnAgentThatHasNotJoinedIsNoMatterOfTags(t *testing.T) {
	t.Parallel()
	for answer, status := range map[string]int{
		`Permission denied: token with AccessorID 'primary-dc-down' lacks permission 'service:write' on "web"`: 403,
		"No known Consul servers": 500,
	} {
		client := fakeAgent(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, answer, status) })
		w := workload.Workload{Name: "web", ID: "web-1", Proxy: workload.Proxy{ID: "web-1-sidecar-proxy"}}
		err := New(&config.Config{}, client).Register(context.Background(), "tok", w)
		testkit.ErrorContains(t, err, consulutil.NotJoined)
		if strings.Contains(err.Error(), config.TagServiceName) {
			t.Errorf("error %v, want no tag in it", err)
		}
		testkit.Equal(t, "class", consulutil.Classify(err), retry.NotYet)
	}
}

// TestRefusedDeregistrationNamesItsRemedy: of each service.
func TestRefusedDeregistrationNamesItsRemedy(t *testing.T) {
	t.Parallel()
	client := fakeAgent(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `Permission denied: token with AccessorID 'a' lacks permission 'service:write' on "gw"`,
			http.StatusForbidden)
	})
	gateway := workload.Workload{Gateway: "mesh-gateway", Name: "gw", ID: "gw-1", Proxy: workload.Proxy{ID: "gw-1"}}
	err := New(&config.Config{}, client).Deregister(context.Background(), "tok", gateway)
	if want := `the token needs a service identity for "gw"`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q in it", err, want)
	}
}
