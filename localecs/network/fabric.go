package network

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
)

// ErrClosed means that the fabric is closed.
var ErrClosed = errors.New("the network is closed")

// Options describe a network of tasks.
type Options struct {
	Mode Mode
	// Subnet is an IPv4 CIDR block, /16 to /28. Awsvpc: it exists only inside
	// the VPC namespace, so it may be in use on the host; empty is
	// DefaultSubnet. Host: a part of 127.0.0.0/8.
	Subnet string
	// Namespace makes the network namespaces for awsvpc: empty, but for lo, and
	// owned by the Fabric then. owner is a task's ID or "vpc", hostname what it will
	// be called. Nil makes anonymous ones.
	Namespace func(owner, hostname string) (*os.File, error)
	// Region makes DNS names; empty is us-west-2.
	Region string
}

// Fabric is what connects tasks: a VPC, or the host's own network.
type Fabric struct {
	plan      plan
	pool      *pool
	wires     wires
	infra     *Namespace
	attaching sync.WaitGroup // what Close waits for

	mu     sync.Mutex
	closed bool
	tasks  map[string]*Namespace
}

// wires are how namespaces come to be: what the modes differ in.
type wires interface {
	// infra is where everything is that is no task's.
	infra() place
	// attach makes the network of a task; detach takes it away. link is what can be
	// impaired, nil where nothing can.
	attach(taskID string, a Addressing) (p place, link *Task, detach func() error, err error)
	// add gives infra one more address.
	add(ip netip.Addr) error
	close() error
}

// New makes the network of the mode. The error is a *host.MissingError when
// the host lacks a privilege or a kernel feature.
func New(o Options) (*Fabric, error) {
	p, err := newPlan(o)
	if err != nil {
		return nil, err
	}
	f := &Fabric{plan: p, pool: newPool(p), tasks: map[string]*Namespace{}}
	gateway := p.addressing(p.at(1))
	if o.Mode == Host {
		f.wires, err = newShared(gateway)
	} else {
		f.wires, err = newVPC(gateway, o.Namespace)
	}
	if err != nil {
		return nil, err
	}
	f.infra = &Namespace{Addressing: gateway, place: f.wires.infra(), close: func() error { return nil }}
	if o.Mode != Host {
		// The simulator's connections differ from those of services.
		f.infra.from = gateway.IP
	}
	return f, nil
}

// Infra is where everything is that is no task's: simulator services and
// infrastructure processes such as Consul servers live here, at the gateway's
// address and those of AddInfraAddress. Its Close does nothing.
func (f *Fabric) Infra() *Namespace { return f.infra }

// AddInfraAddress gives Infra one more address, from the subnet's end. It stays
// until the fabric is closed.
func (f *Fabric) AddInfraAddress() (netip.Addr, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return netip.Addr{}, ErrClosed
	}
	ip, err := f.pool.takeHigh()
	if err != nil {
		return netip.Addr{}, err
	}
	if err := f.wires.add(ip); err != nil {
		f.pool.release(ip)
		return netip.Addr{}, err
	}
	return ip, nil
}

// Attach makes the network of one task. taskID must not be in use.
func (f *Fabric) Attach(taskID string) (*Namespace, error) {
	if err := f.reserve(taskID); err != nil {
		return nil, err
	}
	defer f.attaching.Done()
	n, err := f.attach(taskID)
	if err != nil {
		f.enter(taskID, nil)
		return nil, fmt.Errorf("attach task %q to the network: %w", taskID, err)
	}
	if !f.enter(taskID, n) {
		return nil, errors.Join(ErrClosed, n.Close())
	}
	return n, nil
}

// enter replaces a reservation by the task's network; nil withdraws it. It
// returns false when the fabric was closed meanwhile.
func (f *Fabric) enter(taskID string, n *Namespace) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n == nil || f.closed {
		delete(f.tasks, taskID)
		return false
	}
	f.tasks[taskID] = n
	return true
}

func (f *Fabric) reserve(taskID string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return ErrClosed
	}
	if _, ok := f.tasks[taskID]; ok {
		return fmt.Errorf("attach task %q to the network: it has one already", taskID)
	}
	f.tasks[taskID] = nil
	f.attaching.Add(1)
	return nil
}

func (f *Fabric) attach(taskID string) (*Namespace, error) {
	ip, err := f.pool.take()
	if err != nil {
		return nil, err
	}
	n := &Namespace{Addressing: f.plan.addressing(ip)}
	place, link, detach, err := f.wires.attach(taskID, n.Addressing)
	if err != nil {
		f.pool.release(ip)
		return nil, err
	}
	n.place, n.link = place, link
	n.close = func() error {
		f.mu.Lock()
		if f.tasks[taskID] == n {
			delete(f.tasks, taskID)
		}
		f.mu.Unlock()
		err := detach()
		f.pool.release(ip)
		return err
	}
	return n, nil
}

// Close detaches every task and takes the rest away. Stop the containers first:
// the kernel keeps a namespace while a process is inside.
func (f *Fabric) Close() error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil
	}
	f.closed = true
	var open []*Namespace
	for _, n := range f.tasks {
		if n != nil {
			open = append(open, n)
		}
	}
	f.mu.Unlock()
	f.attaching.Wait()
	var errs []error
	for _, n := range open {
		errs = append(errs, n.Close())
	}
	return errors.Join(append(errs, f.wires.close())...)
}
