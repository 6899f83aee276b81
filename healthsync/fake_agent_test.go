package healthsync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

// op is one write as the agent saw it; At is virtual time since the start.
type op struct {
	At     time.Duration
	Verb   string // ensure or set, publish without checks, of a gateway register or deregister
	Check  string // the container's name
	Status string
}

// ttlCheck behaves like an agent's: critical when its TTL has run out.
type ttlCheck struct {
	status, output string
	ttl            time.Duration
	at             time.Time
}

// agent is the narrowest fake of a Consul agent: it records every write and
// keeps its checks' state.
type agent struct {
	mu     sync.Mutex
	start  time.Time
	lost   bool // no check can be registered
	out    bool // a gateway is not registered
	checks map[string]*ttlCheck
	ops    []op
	// registered are the tokens of registrations.
	registered []string
	// token is the only one that is accepted; empty accepts all.
	token string
	// answer decides about a write before it is applied; nil accepts all.
	// errHang keeps it until the caller goes away.
	answer func(op) error
	// late is how long after its caller went away a hanging write is still
	// applied; zero is never.
	late time.Duration
}

var errHang = errors.New("hang")

func newAgent() *agent {
	return &agent{start: time.Now(), checks: map[string]*ttlCheck{}}
}

func (a *agent) write(ctx context.Context, token, verb, container, status string, apply func() error) error {
	a.mu.Lock()
	o := op{time.Since(a.start), verb, container, status}
	a.ops = append(a.ops, o)
	answer, denied := a.answer, a.token != "" && a.token != token
	a.mu.Unlock()
	if denied {
		return errDenied
	}
	if answer != nil {
		if err := answer(o); errors.Is(err, errHang) {
			<-ctx.Done()
			if a.late > 0 {
				time.AfterFunc(a.late, func() {
					a.mu.Lock()
					defer a.mu.Unlock()
					apply()
				})
			}
			return fmt.Errorf("put: %w", ctx.Err())
		} else if err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return apply()
}

func (a *agent) Refresh() time.Duration { return 10 * time.Second }

// Set writes each check by itself, as a registrar with an agent does.
func (a *agent) Set(
	ctx context.Context, token string, _ workload.Workload, updates []registrar.Update,
) []registrar.Result {
	results := make([]registrar.Result, len(updates))
	var wg sync.WaitGroup
	for i, u := range updates {
		wg.Go(func() { results[i] = a.setOne(ctx, token, u) })
	}
	wg.Wait()
	return results
}

func (a *agent) setOne(ctx context.Context, token string, u registrar.Update) registrar.Result {
	if !u.First {
		if err := a.setStatus(ctx, token, u.Check, u.Status, u.Output); !errors.Is(err, errGone) {
			return registrar.Result{Err: err, Unsure: unsure(err)}
		}
	}
	err := a.ensureCheck(ctx, token, u.Check, u.Status, u.Output)
	return registrar.Result{Err: err, Unsure: unsure(err), Restored: !u.First}
}

// unsure reports whether a write was cut off.
func unsure(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func (a *agent) ensureCheck(ctx context.Context, token string, c workload.SyncCheck, status, output string) error {
	return a.write(ctx, token, "ensure", c.Container, status, func() error {
		if a.lost {
			return errGone
		}
		a.checks[c.Container] = &ttlCheck{status, output, 30 * time.Second, time.Now()}
		return nil
	})
}

func (a *agent) setStatus(ctx context.Context, token string, c workload.SyncCheck, status, output string) error {
	return a.write(ctx, token, "set", c.Container, status, func() error {
		check := a.checks[c.Container]
		if check == nil {
			return errGone
		}
		check.status, check.output, check.at = status, output, time.Now()
		return nil
	})
}

// Proxy answers by the registration alone.
func (a *agent) Proxy(context.Context, string, workload.Workload) (bootstrap.Proxy, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.out {
		return bootstrap.Proxy{}, errGone
	}
	return bootstrap.Proxy{}, nil
}

func (a *agent) Register(ctx context.Context, token string, w workload.Workload) error {
	a.mu.Lock()
	a.registered = append(a.registered, token)
	a.mu.Unlock()
	return a.write(ctx, token, "register", w.ID, "", func() error {
		a.out = false
		return nil
	})
}

func (a *agent) Deregister(ctx context.Context, token string, w workload.Workload) error {
	return a.write(ctx, token, "deregister", w.ID, "", func() error {
		a.out = true
		return nil
	})
}

func (a *agent) publish(ctx context.Context, token string, w workload.Workload) error {
	return a.write(ctx, token, "publish", w.ID, "", func() error { return nil })
}

// registrations returns the tokens of the registrations so far.
func (a *agent) registrations() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.registered)
}

// status returns what the agent reports for a check now.
func (a *agent) status(container string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.checks[container]
	switch {
	case c == nil:
		return "absent"
	case time.Since(c.at) >= c.ttl:
		return "critical"
	default:
		return c.status
	}
}

// forget makes the agent lose its state.
func (a *agent) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.checks = map[string]*ttlCheck{}
}

func (a *agent) setAnswer(f func(op) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = f
}

// recorded returns the writes so far, and forgets them.
func (a *agent) recorded() []op {
	a.mu.Lock()
	defer a.mu.Unlock()
	ops := a.ops
	a.ops = nil
	return ops
}
