package scenario

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/localecs/host"
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

// connect reads which ports are published and which addresses tasks may reach.
func (p *Plan) connect() error {
	published, err := p.file.PublishedPorts()
	outside, outsideErr := p.file.OutsideAddresses()
	if len(outside) > 0 && p.network != network.Host && host.Inside() {
		outsideErr = errors.Join(outsideErr, errors.New("outside: without root the run has no way to this machine's "+
			"network: run as root, or with -network host"))
	}
	p.published, p.outside = published, outside
	return errors.Join(err, outsideErr)
}

// publish forwards the published ports until the context ends.
func (r *runner) publish(ctx context.Context, listeners map[netip.AddrPort]*net.TCPListener, watching *sync.WaitGroup) {
	for _, p := range r.plan.published {
		f := &network.Forwarder{
			Listener: listeners[p.Address], Targets: func() []string { return r.targets(p) }, Wait: 10 * time.Second,
			Dial: r.ecs.cluster.Fabric().Infra().DialContext, Log: r.log,
		}
		watching.Go(func() { f.Serve(ctx) })
		r.progress.emit(Event{Kind: KindPublished, Address: p.Address.String(), Task: p.Name,
			Text: fmt.Sprintf("%s leads to port %d of %s", p.Address, p.Port, p.Name)})
	}
}

// openOutside gives the addresses that tasks may reach outside of the run a name in the VPC, and forwards what
// connects to it until the context ends.
func (r *runner) openOutside(ctx context.Context, watching *sync.WaitGroup) error {
	fabric := r.ecs.cluster.Fabric()
	for _, o := range r.plan.outside {
		ip, err := fabric.AddHost(o.Name)
		if err != nil {
			return fmt.Errorf("outside address %s: %w", o.Name, err)
		}
		at := netip.AddrPortFrom(ip, o.Port)
		l, err := fabric.Infra().Listen("tcp", at.String())
		if err != nil {
			return fmt.Errorf("outside address %s: %w", o.Name, err)
		}
		f := &network.Forwarder{
			Listener: l.(*net.TCPListener), Targets: func() []string { return []string{o.Target} },
			Wait: 5 * time.Second, Dial: new(net.Dialer).DialContext, Log: r.log,
		}
		watching.Go(func() {
			defer l.Close()
			f.Serve(ctx)
		})
		r.progress.emit(Event{Kind: KindOutside, Address: at.String(),
			Text: fmt.Sprintf("%s:%d leads out to %s", o.Name, o.Port, o.Target)})
	}
	return nil
}

// targets returns the addresses of the tasks that a published port leads to: a task while it runs, those of a
// service that are healthy, too.
func (r *runner) targets(p file.Published) (addresses []string) {
	for _, t := range r.tasks.Started() {
		v := t.View()
		if t.Name == p.Name && v.Runs() || t.Service == p.Name && v.Serves() {
			addresses = append(addresses, net.JoinHostPort(t.IP(), strconv.Itoa(int(p.Port))))
		}
	}
	return addresses
}
