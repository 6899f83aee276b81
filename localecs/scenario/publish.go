package scenario

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// Addresses returns the addresses of this machine that the plan publishes ports at.
func (p *Plan) Addresses() []netip.AddrPort {
	var all []netip.AddrPort
	for _, port := range p.published {
		all = append(all, port.Address)
	}
	return all
}

// publish forwards the published ports until the context ends.
func (r *runner) publish(ctx context.Context, listeners map[netip.AddrPort]*net.TCPListener, watching *sync.WaitGroup,
	log hclog.Logger) {
	for _, p := range r.plan.published {
		f := &network.Forwarder{
			Listener: listeners[p.Address], Targets: func() []string { return r.targets(p) }, Wait: 10 * time.Second,
			Dial: r.ecs.cluster.Dial, Log: log,
		}
		watching.Go(func() { f.Serve(ctx) })
		r.progress.emit(Event{Kind: KindPublished, Address: p.Address.String(), Task: p.Name,
			Text: fmt.Sprintf("%s leads to port %d of %s", p.Address, p.Port, p.Name)})
	}
}

// targets returns the addresses of the tasks that a published port leads to: a task while it runs, those of a
// service that are healthy, too.
func (r *runner) targets(p file.Published) (addresses []string) {
	for _, t := range r.tasks.Started() {
		v := t.View()
		runs := v.DesiredStatus == scheduler.StatusRunning && v.KnownStatus == scheduler.StatusRunning
		if health := v.CheckedHealth(); t.Service == p.Name && health != "" {
			runs = runs && health == scheduler.HealthHealthy
		}
		if runs && (t.Name == p.Name || t.Service == p.Name) {
			addresses = append(addresses, net.JoinHostPort(t.IP(), strconv.Itoa(int(p.Port))))
		}
	}
	return addresses
}
