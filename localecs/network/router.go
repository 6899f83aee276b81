package network

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// routeWait is how long a connection waits for a task.
const routeWait = 2 * time.Second

// Router gives names to services in the VPC, and forwards what connects to them.
type Router struct {
	fabric *Fabric
	log    hclog.Logger
	end    context.CancelFunc
	work   sync.WaitGroup
	wanted chan struct{} // signals a change of targets

	mu      sync.Mutex
	targets map[routeKey][]string
}

type routeKey struct {
	name string
	port uint16
}

// NewRouter returns a Router without routes. Close it before the fabric.
func (f *Fabric) NewRouter(log hclog.Logger) *Router {
	ctx, cancel := context.WithCancel(context.Background())
	r := &Router{fabric: f, log: log, end: cancel, wanted: make(chan struct{}, 1)}
	r.work.Go(func() { r.run(ctx) })
	return r
}

// Close ends all connections and waits for their end.
func (r *Router) Close() {
	r.end()
	r.work.Wait()
}

// Route replaces the routes. It returns at once. A name that has had a route keeps its address.
func (r *Router) Route(routes []shapes.Route) {
	targets := map[routeKey][]string{}
	for _, route := range routes {
		key := routeKey{route.Name, route.Port}
		targets[key] = append(targets[key], route.Targets...)
	}
	r.mu.Lock()
	r.targets = targets
	r.mu.Unlock()
	select {
	case r.wanted <- struct{}{}:
	default:
	}
}

// run opens and closes listeners. A route that cannot be opened is not tried again while it is wanted.
func (r *Router) run(ctx context.Context) {
	open := map[routeKey]context.CancelFunc{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wanted:
		}
		r.mu.Lock()
		targets := r.targets
		r.mu.Unlock()
		for key, end := range open {
			if _, wanted := targets[key]; !wanted {
				end()
				delete(open, key)
			}
		}
		for key := range targets {
			if open[key] != nil {
				continue
			}
			end, err := r.open(ctx, key)
			if err != nil {
				r.log.Warn("service cannot be reached by its name", logkey.ServiceName, key.name, logkey.Error, err)
			}
			open[key] = end
		}
	}
}

// open listens at the address of a name. The function that it returns ends that at once, and is never nil.
func (r *Router) open(ctx context.Context, key routeKey) (context.CancelFunc, error) {
	ip, err := r.fabric.AddHost(key.name)
	if err != nil {
		return func() {}, err
	}
	infra := r.fabric.Infra()
	l, err := infra.Listen("tcp", netip.AddrPortFrom(ip, key.port).String())
	if err != nil {
		return func() {}, fmt.Errorf("port %d: %w", key.port, err)
	}
	f := &Forwarder{
		Listener: l.(*net.TCPListener), Wait: routeWait, Dial: infra.DialContext, Log: r.log,
		Targets: func() []string {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.targets[key]
		},
	}
	ctx, cancel := context.WithCancel(ctx)
	served := make(chan struct{})
	r.work.Go(func() {
		defer close(served)
		f.Serve(ctx)
		l.Close()
	})
	return func() { cancel(); <-served }, nil
}
