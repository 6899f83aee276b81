package clientagent

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	// holdPause lies between two looks at the agent.
	holdPause = 50 * time.Millisecond
	// holdLimit is when Envoy gets the agent's view in any case: an agent whose HTTP
	// API is not where we look for it, or that never joins, must not be without Envoy.
	holdLimit = 3 * time.Minute
	// settleBase is the longest pause that the agent makes after its fourth failure to
	// ask the servers, 4 s, and a second for the answer.
	settleBase = 5 * time.Second
)

// settleTime is how long an agent needs after it has joined, that long after its
// start, until it has asked the servers for everything that its proxies need.
//
// Until it has joined each of its watches fails. It is repeated at once three times, then
// after 2 to 4 s, 4 to 8 s, 8 to 16 s and so on (agent/cache/watch.go of Consul 1.20,
// backOffWait). The pause in which the agent joins has started before that, and is at
// most 4 s and twice the time of its start.
func settleTime(joined time.Duration) time.Duration { return settleBase + 2*joined }

// holdXDS keeps Envoy's view of the mesh through a restart of the agent: xDS of the
// agent is on the given port of the loopback address, Envoy's connections to workload.AgentGRPCPort
// are accepted, but forwarded only when the agent knows all that it has to
// serve. An agent that knows less removes upstreams from Envoy, whose requests fail
// until the rest has come.
//
// It returns when ctx ends, or when the agent serves xDS elsewhere, since the user's
// configuration has another port.
func (r *run) holdXDS(ctx context.Context, port int) {
	start := time.Now()
	agent := net.JoinHostPort(loopback, strconv.Itoa(port))
	if poll(ctx, func(ctx context.Context) error {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", agent)
		if err == nil {
			err = c.Close()
		}
		return err
	}) != nil {
		return
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(workload.AgentGRPCPort)))
	if err != nil {
		r.Log.Warn("cannot hold xDS back; Envoy may lose upstreams until the agent has joined", logkey.Error, err)
		return
	}
	context.AfterFunc(ctx, func() { listener.Close() })
	ready, settled := context.WithCancel(ctx)
	go func() {
		defer settled()
		r.awaitSettled(ctx, start)
	}()
	forward(ctx, listener, agent, ready.Done())
}

// awaitSettled returns when the agent that was started then can serve its proxies.
func (r *run) awaitSettled(ctx context.Context, start time.Time) {
	ctx, cancel := context.WithDeadline(ctx, start.Add(holdLimit))
	defer cancel()
	if poll(ctx, r.Joined) == nil {
		joined := time.Since(start)
		select {
		case <-time.After(settleTime(joined)):
		case <-ctx.Done():
		}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		r.Log.Warn("the agent is not known to have joined; Envoy gets its view all the same", logkey.Elapsed, holdLimit)
		return
	}
	r.Log.Info("the agent serves Envoy again", logkey.Elapsed, time.Since(start).Round(time.Millisecond))
}

// poll calls try until it succeeds; an error is that of ctx.
func poll(ctx context.Context, try func(context.Context) error) error {
	for {
		if try(ctx) == nil {
			return nil
		}
		select {
		case <-time.After(holdPause):
		case <-ctx.Done():
			return ctx.Err()
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

// freePort returns a port of the loopback address that no process listens on.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
