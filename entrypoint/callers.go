package entrypoint

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/envoy"
	"github.com/meshtask/consul-ecs/internal/logkey"
)

const (
	// idleTime is how long no caller must have been seen.
	idleTime = 500 * time.Millisecond
	// callersPause is the time between two looks at Envoy, callersTimeout bounds one.
	callersPause   = 100 * time.Millisecond
	callersTimeout = time.Second
)

// sidecarCalls selects the counters that only callers in the mesh can change: TLS
// handshakes, which Consul's listener for callers alone asks for, and its HTTP requests,
// HTTP/2 and gRPC included. Probes that connect without a certificate change none, nor do
// connections that stay open without a new request.
//
// gatewayCalls does so for gateways. A mesh gateway passes TLS on: there they are
// connections less those whose server name leads nowhere, and HTTP requests where it ends
// TLS for a peer. A terminating gateway and an API gateway have counters of what lies
// behind them, which in a sidecar are the application's own calls.
const (
	sidecarCalls = `/stats?filter=^(listener\..*\.ssl\.handshake|http\.public_listener\.downstream_rq_total)$`
	gatewayCalls = `/stats?filter=^(listener\..*\.ssl\.handshake|http\.(mesh_gateway_|ingress_upstream_|upstream\.).*\.downstream_rq_total|tcp\.(mesh_gateway_|upstream\.).*\.downstream_cx_(total|no_route))$`
)

// noRoute ends the name of a counter of connections that are no callers'.
const noRoute = ".downstream_cx_no_route"

// Calls returns a function that counts what callers have asked an Envoy for:
// connections, and requests where Envoy sees them. It is an error when Envoy has no
// listener for callers.
func Calls(p envoy.Proxy) func(context.Context) (uint64, error) {
	path := sidecarCalls
	if p.Gateway {
		path = gatewayCalls
	}
	return func(ctx context.Context) (uint64, error) {
		ctx, cancel := context.WithTimeout(ctx, callersTimeout)
		defer cancel()
		answer, err := envoy.Ask(ctx, http.MethodGet, p.Admin, path)
		var stats map[string]uint64
		if err == nil {
			stats, err = envoy.ParseStats(answer)
		}
		if err == nil && len(stats) == 0 {
			err = errors.New("envoy has no listener for callers")
		}
		if err != nil {
			return 0, fmt.Errorf("count envoy's callers: %w", err)
		}
		var calls uint64
		for name, n := range stats {
			if strings.HasSuffix(name, noRoute) {
				n = -n
			}
			calls += n
		}
		return calls, nil
	}
}

// Callers is how an automatic shutdown delay observes the callers.
type Callers struct {
	// Calls is a counter that grows with each connection and request of a caller.
	Calls func(context.Context) (uint64, error)
	// Proxied reports whether the task has a proxy that runs; nil when it has none.
	Proxied func(context.Context) bool
	// MinDelay is how long callers need to learn of a change in Consul.
	MinDelay time.Duration
}

// idleCallers is the state of the callers, in times since TERM.
type idleCallers struct {
	calls uint64
	// since is when the calls were last seen to change.
	since time.Duration
}

// observe takes a new count.
func (q idleCallers) observe(calls uint64, at time.Duration) idleCallers {
	if calls != q.calls {
		return idleCallers{calls, at}
	}
	return q
}

// elapsed reports whether no callers remain: all had the time to learn of the end, and
// none has called since for the idle time. Calls that last longer than minDelay
// show that the change is late, so the idle time starts with the last of them.
func (q idleCallers) elapsed(minDelay, at time.Duration) bool {
	return at >= minDelay && at-q.since >= idleTime
}

// await returns nil when no callers remain, or when the task has no proxy through
// which they could come. Where that cannot be found out it returns with ctx only.
func (c Callers) await(ctx context.Context, log hclog.Logger) error {
	start := time.Now()
	calls, err := c.Calls(ctx)
	if err != nil {
		if c.Proxied == nil || !c.Proxied(ctx) {
			log.Info("the task has no proxy, so there are no callers to wait for")
			return nil
		}
		log.Warn("cannot read envoy's counts of callers, waiting for the whole shutdown delay unless that changes",
			logkey.Error, err)
	}
	q := idleCallers{calls, time.Since(start)}
	tick := time.NewTicker(callersPause)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		calls, err := c.Calls(ctx)
		at := time.Since(start)
		if err != nil {
			q.since = at // not an idle time
			continue
		}
		if q = q.observe(calls, at); q.elapsed(c.MinDelay, at) {
			log.Info("no caller for a while", logkey.Elapsed, at.Round(time.Millisecond))
			return nil
		}
	}
}

// Proxied returns a function that reports whether the task has a proxy that runs, as
// far as is known: unreadable metadata proves nothing.
func Proxied(m Metadata) func(context.Context) bool {
	return func(ctx context.Context) bool {
		task, err := m.Task(ctx)
		return err != nil || task.Proxied()
	}
}
