package registrar_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

// subject is a registrar under test and the way to look behind it.
type subject struct {
	Registrar registrar.Registrar
	// Servers makes the workloads those of tasks without an agent.
	Servers *config.ConsulServers
	// Token may register any workload.
	Token string
	// Check returns what Consul holds of a check; ok is false when nothing.
	Check func(t *testing.T, id string) (status, output string, ok bool)
	// Forget removes a service and its checks, as an agent that lost its
	// state, or an operator, would.
	Forget func(t *testing.T, serviceID string)
}

// Service returns a workload with a sidecar whose first synced check is that of the container
// app.
func (s subject) Service(t testing.TB, name, taskID string) workload.Workload {
	t.Helper()
	return build(t, &config.Config{
		ConsulServers: s.Servers,
		Service:       &config.Service{Name: name, Port: 9090, Tags: []string{"a"}},
		Proxy: &config.Proxy{PublicListenerPort: 20000,
			Config: map[string]any{"envoy_prometheus_bind_addr": "0.0.0.0:9102"}},
		HealthSyncContainers: []string{"app"},
	}, taskID)
}

// Gateway returns a mesh gateway.
func (s subject) Gateway(t testing.TB, name, taskID string) workload.Workload {
	t.Helper()
	return build(t,
		&config.Config{ConsulServers: s.Servers, Gateway: &config.Gateway{Kind: bootstrap.MeshGateway, Name: name}},
		taskID)
}

func build(t testing.TB, cfg *config.Config, taskID string) workload.Workload {
	t.Helper()
	w, err := workload.New(cfg, workload.Task{
		TaskARN: "arn:aws:ecs:us-west-2:123456789012:task/default/" + taskID, Family: "family",
		Containers: []workload.Container{{Networks: []workload.Network{{IPv4Addresses: []string{"10.0.0.9"}}}}},
	}, "us-west-2")
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// runSuite checks that the registrar keeps its interface's promises. Task IDs begin
// with prefix, so that subjects can share a server.
func runSuite(t *testing.T, s subject, prefix string) {
	for name, test := range map[string]func(*testing.T, subject, workload.Workload){
		"proxy can be read back":           proxyReadBack,
		"new check is critical":            newCheckIsCritical,
		"registering again keeps status":   registerKeepsStatus,
		"status and output are set":        statusIsSet,
		"refreshing keeps status":          refreshKeepsStatus,
		"first write sets an old one":      firstWriteSets,
		"first write finds a lost service": firstWriteRestores,
		"refresh finds a lost service":     refreshRestores,
		"change finds a lost service":      changeRestores,
		"last write finds a lost service":  lastWriteRestoresNothing,
		"results are in order":             resultsAreInOrder,
		"unregistered proxy is gone":       unknownProxyIsGone,
		"deregistering removes all, twice": deregisterRemoves,
	} {
		t.Run(name, func(t *testing.T) {
			id := prefix + "-" + strings.ReplaceAll(name, " ", "-")
			test(t, s, s.Service(t, "web", id))
		})
	}
	t.Run("gateway deregistered", func(t *testing.T) {
		w := s.Gateway(t, "gateway", prefix+"-gateway-deregistered")
		deregisterRemoves(t, s, w)
	})
	t.Run("gateway", func(t *testing.T) { gateway(t, s, s.Gateway(t, "gateway", prefix+"-gateway")) })
}

func register(t *testing.T, s subject, w workload.Workload) {
	t.Helper()
	if err := s.Registrar.Register(context.Background(), s.Token, w); err != nil {
		t.Fatal(err)
	}
}

// set writes one check, with what is due at once after it, and returns whether it was restored.
func set(t *testing.T, s subject, w workload.Workload, u registrar.Update) (restored bool) {
	t.Helper()
	for {
		results := s.Registrar.Set(t.Context(), s.Token, w, []registrar.Update{u})
		if len(results) != 1 {
			t.Fatalf("results = %+v", results)
		}
		if err := results[0].Err; err != nil {
			t.Fatal(err)
		}
		restored = restored || results[0].Restored
		if s.Registrar.Refresh() != 0 {
			return restored
		}
		if err := retry.Sleep(t.Context(), nextTick); err != nil {
			t.Fatal(err)
		}
		u.First, u.Refresh = false, true
	}
}

// nextTick is the time until health-sync sets again what is due at once.
const nextTick = 500 * time.Millisecond

func wantCheck(t *testing.T, s subject, id, status, output string) {
	t.Helper()
	gotStatus, gotOutput, ok := s.Check(t, id)
	if got, want := fmt.Sprintf("%s %q %v", gotStatus, gotOutput, ok),
		fmt.Sprintf("%s %q true", status, output); got != want {
		t.Errorf("status, output and existence of check %s are %s, want %s", id, got, want)
	}
}

func wantGone(t *testing.T, err error) {
	t.Helper()
	if err == nil || consulutil.Classify(err) != retry.Gone {
		t.Errorf("error = %v, want one of class Gone", err)
	}
}

func proxyReadBack(t *testing.T, s subject, w workload.Workload) {
	register(t, s, w)
	p, err := s.Registrar.Proxy(context.Background(), s.Token, w)
	if err != nil {
		t.Fatal(err)
	}
	if p.Kind != bootstrap.ConnectProxy || p.Service != "web-sidecar-proxy" || p.Destination != "web" ||
		p.Datacenter != "dc1" {
		t.Errorf("proxy = %+v", p)
	}
	if p.Config["envoy_prometheus_bind_addr"] != "0.0.0.0:9102" {
		t.Errorf("config = %v", p.Config)
	}
}

func newCheckIsCritical(t *testing.T, s subject, w workload.Workload) {
	register(t, s, w)
	for _, c := range w.SyncChecks {
		if status, _, ok := s.Check(t, c.ID); !ok || status != "critical" {
			t.Errorf("check %s is %s (exists %v)", c.ID, status, ok)
		}
	}
}

func registerKeepsStatus(t *testing.T, s subject, w workload.Workload) {
	register(t, s, w)
	set(t, s, w, registrar.Update{Check: w.SyncChecks[0], Status: "passing", Output: "fine"})
	register(t, s, w)
	wantCheck(t, s, w.SyncChecks[0].ID, "passing", "fine")
}

func deregisterRemoves(t *testing.T, s subject, w workload.Workload) {
	register(t, s, w)
	for range 2 {
		if err := s.Registrar.Deregister(context.Background(), s.Token, w); err != nil {
			t.Fatal(err)
		}
		_, err := s.Registrar.Proxy(context.Background(), s.Token, w)
		wantGone(t, err)
		for _, c := range w.SyncChecks {
			if status, _, ok := s.Check(t, c.ID); ok {
				t.Errorf("check %s is still there, %s", c.ID, status)
			}
		}
	}
}

func statusIsSet(t *testing.T, s subject, w workload.Workload) {
	register(t, s, w)
	for _, status := range []string{"passing", "critical", "passing"} {
		if set(t, s, w, registrar.Update{Check: w.SyncChecks[0], Status: status, Output: "is " + status}) {
			t.Error("a check that was there counts as restored")
		}
		wantCheck(t, s, w.SyncChecks[0].ID, status, "is "+status)
	}
}

func refreshKeepsStatus(t *testing.T, s subject, w workload.Workload) {
	register(t, s, w)
	u := registrar.Update{Check: w.SyncChecks[0], Status: "passing", Output: "fine"}
	set(t, s, w, u)
	u.Refresh = true
	for range 2 {
		if set(t, s, w, u) {
			t.Error("a check that was there counts as restored")
		}
		wantCheck(t, s, u.Check.ID, "passing", "fine")
	}
}

func firstWriteSets(t *testing.T, s subject, w workload.Workload) {
	register(t, s, w)
	for _, status := range []string{"passing", "critical"} {
		if set(t, s, w, registrar.Update{Check: w.SyncChecks[0], Status: status, Output: status, First: true}) {
			t.Error("a check that was there counts as restored")
		}
		wantCheck(t, s, w.SyncChecks[0].ID, status, status)
	}
}

func firstWriteRestores(t *testing.T, s subject, w workload.Workload) {
	restores(t, s, w, registrar.Update{Check: w.SyncChecks[0], Status: "passing", Output: "back", First: true})
}

func refreshRestores(t *testing.T, s subject, w workload.Workload) {
	restores(t, s, w, registrar.Update{Check: w.SyncChecks[0], Status: "passing", Output: "back", Refresh: true})
}

func changeRestores(t *testing.T, s subject, w workload.Workload) {
	restores(t, s, w, registrar.Update{Check: w.SyncChecks[0], Status: "passing", Output: "back"})
}

// lastWriteRestoresNothing: a task that ends stays deregistered, and a check that is lost
// alone is critical.
func lastWriteRestoresNothing(t *testing.T, s subject, w workload.Workload) {
	register(t, s, w)
	last := registrar.Update{Check: w.SyncChecks[0], Status: api.HealthCritical, Output: "ends", Last: true}
	set(t, s, w, last)
	wantCheck(t, s, w.SyncChecks[0].ID, api.HealthCritical, "ends")
	s.Forget(t, w.Proxy.ID)
	s.Forget(t, w.ID)
	for _, first := range []bool{false, true} {
		last.First = first
		wantGone(t, s.Registrar.Set(t.Context(), s.Token, w, []registrar.Update{last})[0].Err)
		if _, _, ok := s.Check(t, w.SyncChecks[0].ID); ok {
			t.Error("the check is there again")
		}
	}
}

// restores loses the workload again and again, the first time before it was registered.
func restores(t *testing.T, s subject, w workload.Workload, u registrar.Update) {
	for range 2 {
		if !set(t, s, w, u) {
			t.Error("not reported as restored")
		}
		wantCheck(t, s, u.Check.ID, "passing", "back")
		if _, err := s.Registrar.Proxy(context.Background(), s.Token, w); err != nil {
			t.Errorf("the proxy is not back: %v", err)
		}
		s.Forget(t, w.Proxy.ID)
		s.Forget(t, w.ID)
	}
}

func resultsAreInOrder(t *testing.T, s subject, w workload.Workload) {
	register(t, s, w)
	var updates []registrar.Update
	for i, c := range w.SyncChecks {
		updates = append(updates, registrar.Update{Check: c, Status: "passing", Output: fmt.Sprint(i)})
	}
	results := s.Registrar.Set(context.Background(), s.Token, w, updates)
	if len(results) != len(updates) ||
		slices.ContainsFunc(results, func(r registrar.Result) bool { return r.Err != nil || r.Restored }) {
		t.Errorf("results = %+v", results)
	}
	for i, c := range w.SyncChecks {
		wantCheck(t, s, c.ID, "passing", fmt.Sprint(i))
	}
}

func unknownProxyIsGone(t *testing.T, s subject, w workload.Workload) {
	_, err := s.Registrar.Proxy(context.Background(), s.Token, w)
	wantGone(t, err)
}

func gateway(t *testing.T, s subject, w workload.Workload) {
	register(t, s, w)
	p, err := s.Registrar.Proxy(context.Background(), s.Token, w)
	if err != nil {
		t.Fatal(err)
	}
	if p.Kind != bootstrap.MeshGateway || p.Service != "gateway" || p.Destination != "" {
		t.Errorf("proxy = %+v", p)
	}
}
