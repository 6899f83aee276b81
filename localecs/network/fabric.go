package network

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"sync"

	"github.com/meshtask/consul-ecs/internal/inflight"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// errClosed means that the fabric is closed.
var errClosed = errors.New("the network is closed")

// Options describe a network of tasks.
type Options struct {
	Mode Mode
	// Subnet is an IPv4 CIDR block, /16 to /28. Awsvpc: it exists only inside the VPC namespace, so it may be in use on
	// the host; empty is defaultSubnet. Host: a part of 127.0.0.0/8.
	Subnet string
	// Namespace makes the network namespaces for awsvpc: empty, but for lo, and owned by the Fabric then. owner is a
	// task's ID or "vpc", hostname what it will be called. Nil makes anonymous ones.
	Namespace func(owner, hostname string) (*os.File, error)
	// Region makes DNS names; empty is us-west-2.
	Region string
}

// Fabric is what connects tasks: a VPC, or the host's own network.
type Fabric struct {
	plan  plan
	pool  *shapes.Pool
	vpc   *vpc         // nil with host networking
	ports portRegistry // the ports of the host
	infra *Namespace

	changes inflight.Group // of addresses and tasks
	mu      sync.Mutex
	tasks   map[*Namespace]bool
	hosts   map[string]netip.Addr // by name
}

// New makes the network of the mode. The error is a *host.MissingError when
// the host lacks a privilege or a kernel feature.
func New(o Options) (*Fabric, error) {
	p, err := newPlan(o)
	if err != nil {
		return nil, err
	}
	f := &Fabric{plan: p, pool: shapes.NewPool(p.subnet), tasks: map[*Namespace]bool{}, hosts: map[string]netip.Addr{}}
	gateway := p.addressing(p.at(1))
	if o.Mode == Host {
		if err := checkLoopback(gateway); err != nil {
			return nil, err
		}
		f.infra = f.share(gateway)
		return f, nil
	}
	if f.vpc, err = newVPC(gateway, o.Namespace); err != nil {
		return nil, err
	}
	f.infra = f.vpc.own
	return f, nil
}

// Infra returns the namespace of everything that is no task's: simulator services and infrastructure processes such as
// Consul servers live here, at the gateway's address and those of AddInfraAddress. Its Close does nothing.
func (f *Fabric) Infra() *Namespace { return f.infra }

// AddInfraAddress gives Infra one more address, from the subnet's end. It stays until the fabric is closed.
func (f *Fabric) AddInfraAddress() (netip.Addr, error) {
	end, ok := f.changes.Begin()
	if !ok {
		return netip.Addr{}, errClosed
	}
	defer end()
	ip, err := f.pool.TakeHigh()
	if err != nil || f.vpc == nil { // Linux answers at every loopback address
		return ip, err
	}
	if err := f.vpc.add(ip); err != nil {
		f.pool.Release(ip)
		return netip.Addr{}, err
	}
	return ip, nil
}

// AddHost gives a name, in lower case, an address of Infra, or returns the one that it has.
func (f *Fabric) AddHost(name string) (netip.Addr, error) {
	if ip, ok := f.Host(name); ok {
		return ip, nil
	}
	ip, err := f.AddInfraAddress()
	if err != nil {
		return ip, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hosts[name] = ip
	return ip, nil
}

// Host returns the address of a name of AddHost.
func (f *Fabric) Host(name string) (ip netip.Addr, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ip, ok = f.hosts[name]
	return ip, ok
}

// Attach makes the network of one task.
func (f *Fabric) Attach(taskID string) (*Namespace, error) {
	end, ok := f.changes.Begin()
	if !ok {
		return nil, errClosed
	}
	defer end()
	n, err := f.attach(taskID)
	if err != nil {
		return nil, fmt.Errorf("attach task %q to the network: %w", taskID, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tasks[n] = true
	return n, nil
}

func (f *Fabric) attach(taskID string) (n *Namespace, err error) {
	ip, err := f.pool.Take()
	if err != nil {
		return nil, err
	}
	a := f.plan.addressing(ip)
	if f.vpc == nil {
		n = f.share(a)
	} else if n, err = f.vpc.attach(taskID, a); err != nil {
		f.pool.Release(ip)
		return nil, err
	}
	detach := n.close
	n.close = func() error {
		f.mu.Lock()
		delete(f.tasks, n)
		f.mu.Unlock()
		err := detach()
		f.pool.Release(ip)
		return err
	}
	return n, nil
}

// Close detaches every task and takes the rest away. Stop the containers first:
// the kernel keeps a namespace while a process is inside.
func (f *Fabric) Close() error {
	first, wait := f.changes.Close()
	if !first {
		return nil
	}
	wait()
	f.mu.Lock()
	tasks := slices.Collect(maps.Keys(f.tasks))
	f.mu.Unlock()
	var errs []error
	for _, n := range tasks {
		errs = append(errs, n.Close())
	}
	if f.vpc != nil {
		errs = append(errs, f.vpc.close())
	}
	return errors.Join(errs...)
}
