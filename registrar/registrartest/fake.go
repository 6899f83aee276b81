package registrartest

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/workload"
)

// Fake is a registrar in memory. It records its calls, and fails on demand.
type Fake struct {
	mu      sync.Mutex
	ops     []string
	fail    []error
	proxies map[string]bootstrap.Proxy
	checks  map[string]check
}

type check struct{ service, status, output string }

// NewFake returns an empty one.
func NewFake() *Fake {
	return &Fake{proxies: map[string]bootstrap.Proxy{}, checks: map[string]check{}}
}

// FailNext makes the next calls fail with these errors, in order.
func (f *Fake) FailNext(errs ...error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = append(f.fail, errs...)
}

// Ops are the calls so far: "register web-1", "proxy web-1-sidecar-proxy",
// "ensure <check> passing", "set <check> critical". Failed calls count.
func (f *Fake) Ops() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.ops...)
}

// Check returns a check's state.
func (f *Fake) Check(_ *testing.T, id string) (status, output string, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, ok := f.checks[id]
	return c.status, c.output, ok
}

// Forget removes a service and its checks.
func (f *Fake) Forget(_ *testing.T, serviceID string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, c := range f.checks {
		if c.service == serviceID {
			delete(f.checks, id)
		}
	}
}

// note records an operation and returns the failure that is due.
func (f *Fake) note(format string, args ...any) error {
	f.ops = append(f.ops, fmt.Sprintf(format, args...))
	if len(f.fail) == 0 {
		return nil
	}
	err := f.fail[0]
	f.fail = f.fail[1:]
	return err
}

// Register implements registrar.Registrar.
func (f *Fake) Register(_ context.Context, _ string, w workload.Workload) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.note("register %s", w.ID); err != nil {
		return err
	}
	f.register(w)
	return nil
}

func (f *Fake) register(w workload.Workload) {
	p := bootstrap.Proxy{Kind: bootstrap.ConnectProxy, Service: w.Proxy.Name, Destination: w.Name, Datacenter: "dc1", Config: w.Proxy.Config}
	if w.IsGateway() {
		p.Kind, p.Destination = w.Gateway, ""
	}
	f.proxies[w.Proxy.ID] = p
	for _, c := range w.SyncChecks {
		if _, ok := f.checks[c.ID]; !ok {
			f.checks[c.ID] = check{service: w.ID, status: api.HealthCritical}
		}
	}
}

// Deregister implements registrar.Registrar.
func (f *Fake) Deregister(_ context.Context, _ string, w workload.Workload) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.note("deregister %s", w.ID); err != nil {
		return err
	}
	delete(f.proxies, w.Proxy.ID)
	for _, c := range w.SyncChecks {
		delete(f.checks, c.ID)
	}
	return nil
}

// Proxy implements registrar.Registrar.
func (f *Fake) Proxy(_ context.Context, _ string, w workload.Workload) (bootstrap.Proxy, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.note("proxy %s", w.Proxy.ID); err != nil {
		return bootstrap.Proxy{}, err
	}
	p, ok := f.proxies[w.Proxy.ID]
	if !ok {
		return bootstrap.Proxy{}, gone("proxy " + w.Proxy.ID)
	}
	return p, nil
}

// EnsureCheck implements registrar.Registrar.
func (f *Fake) EnsureCheck(_ context.Context, _ string, w workload.Workload, c workload.SyncCheck, status, output string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.note("ensure %s %s", c.ID, status); err != nil {
		return err
	}
	f.register(w)
	f.checks[c.ID] = check{service: w.ID, status: status, output: output}
	return nil
}

// SetStatus implements registrar.Registrar.
func (f *Fake) SetStatus(_ context.Context, _ string, w workload.Workload, c workload.SyncCheck, status, output string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.note("set %s %s", c.ID, status); err != nil {
		return err
	}
	if _, ok := f.checks[c.ID]; !ok {
		return gone("check " + c.ID)
	}
	f.checks[c.ID] = check{service: w.ID, status: status, output: output}
	return nil
}

func gone(what string) error {
	return fmt.Errorf("%s: %w", what, api.StatusError{Code: http.StatusNotFound, Body: "unknown"})
}
