package clientagent

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	// holdPause is the time between two looks at the agent, and viewPause between two at what it
	// has for Envoy, which costs both of them more.
	holdPause = 50 * time.Millisecond
	viewPause = 250 * time.Millisecond
	// listenLimit is how long an agent may take until it listens for xDS.
	listenLimit = time.Minute
	// holdLimit is when Envoy gets the agent's view in any case: an agent whose HTTP
	// API is not where we look for it, or that never joins, must not be without Envoy.
	holdLimit = 3 * time.Minute
	// settleBase is the longest pause that the agent makes after its fourth failure to
	// ask the servers, 4 s, and a second for the answer.
	settleBase = 5 * time.Second
	// incompleteGrace is how much longer Envoy is held back from an agent that lacks what
	// Envoy has: its servers may answer late, or what it lacks may be gone from the mesh.
	incompleteGrace = 25 * time.Second
)

// settleTime is how long an agent needs after it has joined, that long after its
// start, until it has asked the servers for everything that its proxies need.
//
// Until it has joined each of its watches fails. It is repeated at once three times, then
// after 2 to 4 s, 4 to 8 s, 8 to 16 s and so on (agent/cache/watch.go of Consul 1.20,
// backOffWait). The pause in which the agent joins has started before that, and is at
// most 4 s and twice the time of its start.
func settleTime(joined time.Duration) time.Duration { return settleBase + 2*joined }

// view is a comparison of what Envoy has with what the agent has for it.
type view struct {
	// missing is what the agent lacks, and err why Envoy cannot be asked.
	missing string
	err     error
	// joined is when the agent had joined, counted from its start, and age how long ago
	// that was.
	joined, age time.Duration
}

// served reports whether Envoy gets the agent's view now: when it loses nothing by that,
// or when further waiting cannot help.
func (v view) served() bool {
	switch {
	case v.err != nil:
		return v.age >= settleTime(v.joined)
	case v.missing != "":
		return v.age >= settleTime(v.joined)+incompleteGrace
	}
	return true
}

// holdXDS keeps Envoy's view of the mesh through a restart of the agent: xDS of the
// agent is on the given port of the loopback address, Envoy's connections to workload.AgentGRPCPort
// are accepted, but forwarded only when the agent has all that Envoy has. A proxy's
// snapshot in the agent is valid, and served, before the discovery chains of its upstreams
// are known: until they are, Envoy would lose the upstreams' listeners and clusters.
//
// It returns when ctx ends, or when the agent does not serve xDS at that port, since the
// user's configuration has another.
func (r *run) holdXDS(ctx context.Context, port int) {
	start := time.Now()
	agent := net.JoinHostPort(loopback, strconv.Itoa(port))
	if !r.awaitListener(ctx, agent, listenLimit) {
		return
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(workload.AgentGRPCPort)))
	if err != nil {
		r.Log.Warn("cannot hold xDS back; Envoy may lose upstreams until the agent has joined", logkey.Error, err)
		return
	}
	context.AfterFunc(ctx, func() { listener.Close() })
	ready, serve := context.WithCancel(ctx)
	go func() {
		defer serve()
		r.awaitView(ctx, agent, start)
	}()
	forward(ctx, listener, agent, ready.Done())
}

// awaitListener reports whether the agent listens at the address within the limit.
func (r *run) awaitListener(ctx context.Context, agent string, limit time.Duration) bool {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := poll(limited, func(ctx context.Context) error {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", agent)
		if err == nil {
			err = c.Close()
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		r.Log.Warn("the agent does not serve xDS on its configured port, so a later file or -agent-config-file overrides it; xDS is not held back", logkey.Address, agent)
	}
	return err == nil
}

// awaitView returns when Envoy is to get the view of the agent that was started then.
func (r *run) awaitView(parent context.Context, agent string, start time.Time) {
	ctx, cancel := context.WithDeadline(parent, start.Add(holdLimit))
	defer cancel()
	v := view{err: errors.New("the agent is not known to have joined")}
	if poll(ctx, r.Joined) == nil {
		v.joined = time.Since(start)
		for ctx.Err() == nil {
			v.missing, v.err = r.Missing(ctx, r.path(workload.FileBootstrap), agent)
			v.age = time.Since(start) - v.joined
			if v.served() || retry.Sleep(ctx, viewPause) != nil {
				break
			}
		}
	}
	elapsed := time.Since(start).Round(time.Millisecond)
	switch {
	case parent.Err() != nil: // the agent ends
	case v.err != nil:
		r.Log.Warn("agent serves xDS again; its resources could not be compared with Envoy's", logkey.Elapsed, elapsed, logkey.Reason, v.err)
	case v.missing != "":
		r.Log.Warn("agent serves xDS again; Envoy loses resources that are no longer in the mesh", logkey.Elapsed, elapsed, logkey.Missing, v.missing)
	default:
		r.Log.Info("agent serves xDS again, with all resources that Envoy has", logkey.Elapsed, elapsed)
	}
}

// poll calls try until it succeeds; an error is that of ctx.
func poll(ctx context.Context, try func(context.Context) error) error {
	for {
		if try(ctx) == nil {
			return nil
		}
		if err := retry.Sleep(ctx, holdPause); err != nil {
			return err
		}
	}
}

// forward connects each connection to the address, from ready on, until ctx ends.
func forward(ctx context.Context, listener net.Listener, address string, ready <-chan struct{}) {
	for {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			select {
			case <-ready:
			case <-ctx.Done():
				return
			}
			agent, err := new(net.Dialer).DialContext(ctx, "tcp", address)
			if err != nil {
				return
			}
			defer agent.Close()
			stop := context.AfterFunc(ctx, func() { c.Close() })
			defer stop()
			join(c, agent)
		}()
	}
}

// join copies between two connections until one of them ends.
func join(a, b net.Conn) {
	ended := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{a, b}, {b, a}} {
		go func() {
			io.Copy(pair[0], pair[1])
			ended <- struct{}{}
		}()
	}
	<-ended
}

// An agent that ends within portTime may have found the port of its xDS taken, and is
// started at most portAttempts times.
const (
	portTime     = 10 * time.Second
	portAttempts = 3
)

// lostPort reports whether an agent that ended with that code may have done so because
// another process took the port that freePort had found. A configuration that is wrong
// ends it as early, but this one worked before.
func (r *run) lostPort(code int) bool {
	return r.heldPort != 0 && code == 1 && r.stopRequested.IsZero() && time.Since(r.started) < portTime
}

// freePort returns a port of the loopback address that no process listens on.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
