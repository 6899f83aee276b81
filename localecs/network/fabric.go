package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"

	"github.com/meshtask/consul-ecs/localecs/runtime/hostcap"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// ErrClosed means that the fabric is closed.
var ErrClosed = errors.New("the network is closed")

// Options describe a VPC.
type Options struct {
	// Subnet is an IPv4 CIDR block, /16 to /28; empty is DefaultSubnet. It
	// exists only inside the VPC namespace, so it may be in use on the host.
	Subnet string
	// Region makes DNS names; empty is us-west-2.
	Region string
}

// Fabric is the VPC: a namespace that every task is linked to.
type Fabric struct {
	plan   plan
	pool   *pool
	home   netns.NsHandle
	link   *netlink.Handle
	bridge netlink.Link
	infra  *Namespace
	links  atomic.Uint64
	// metadata is the listener at MetadataIP.
	metadata *exchange

	mu     sync.Mutex
	closed bool
	tasks  map[string]*Namespace
}

// Needs are the capabilities that New asks for.
func Needs() []hostcap.Cap { return []hostcap.Cap{hostcap.NetAdmin(), hostcap.SysAdmin()} }

// New makes the VPC. The error is a *hostcap.MissingError when the host lacks
// a privilege or a kernel feature.
func New(o Options) (*Fabric, error) {
	p, err := newPlan(o.Subnet, o.Region)
	if err != nil {
		return nil, err
	}
	if err := hostcap.Check("make a task network", "", Needs()...); err != nil {
		return nil, err
	}
	home, err := netns.Get()
	if err != nil {
		return nil, fmt.Errorf("open own network namespace: %w", err)
	}
	f := &Fabric{plan: p, pool: newPool(p), home: home, tasks: map[string]*Namespace{}}
	if err := f.open(); err != nil {
		f.release()
		return nil, err
	}
	return f, nil
}

func (f *Fabric) open() error {
	vpc, err := newNamespace(f.home)
	if err != nil {
		return hostcap.Explain("make the VPC", "network namespaces", "", err)
	}
	f.infra = f.namespace(f.plan.at(1), vpc, "localecs-vpc")
	f.infra.close = func() error { return nil } // it ends with the fabric
	if f.link, err = openLink(f.infra); err != nil {
		return hostcap.Explain("make the VPC", "netlink", "", err)
	}
	if err := setUpLoopback(f.link); err != nil {
		return err
	}
	if f.bridge, err = addBridge(f.link, "br0", f.infra.MAC); err != nil {
		return err
	}
	bits := f.plan.subnet.Bits()
	for _, own := range []netip.Prefix{
		netip.PrefixFrom(f.infra.Gateway, bits), netip.PrefixFrom(f.infra.Resolver, bits), netip.MustParsePrefix(MetadataIP + "/32"),
	} {
		if err := addAddress(f.link, f.bridge, own); err != nil {
			return err
		}
	}
	listener, err := f.infra.Listen("tcp", net.JoinHostPort(MetadataIP, "80"))
	if err != nil {
		return fmt.Errorf("listen for task metadata: %w", err)
	}
	f.metadata = newExchange(listener)
	// The bridge has no ports: it is where the VPC's own addresses are. Tasks
	// reach each other through the gateway, and a packet for the outside gets
	// "unreachable" for an answer instead of none.
	err = f.infra.Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0) })
	return hostcap.Explain("let the VPC's gateway forward", "a writable /proc/sys", "", err)
}

// namespace wraps a descriptor. It owns ns from here on.
func (f *Fabric) namespace(ip netip.Addr, ns netns.NsHandle, name string) *Namespace {
	return &Namespace{
		Addressing: f.plan.addressing(ip), home: f.home, file: os.NewFile(uintptr(ns), name),
		metadata: func() (net.Listener, error) { return f.metadata.listen(ip) },
	}
}

// Infra is the VPC's own namespace: simulator services and infrastructure
// processes such as Consul servers live here, at the gateway's address and
// those of AddInfraAddress. Its Close does nothing.
func (f *Fabric) Infra() *Namespace { return f.infra }

// AddInfraAddress gives the VPC's own namespace one more address, from the
// subnet's end. It stays until the fabric is closed.
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
	if err := addAddress(f.link, f.bridge, netip.PrefixFrom(ip, f.plan.subnet.Bits())); err != nil {
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
	n, err := f.attach(taskID)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err != nil:
		delete(f.tasks, taskID)
		return nil, fmt.Errorf("attach task %q to the network: %w", taskID, err)
	case f.closed:
		return nil, errors.Join(ErrClosed, n.Close())
	}
	f.tasks[taskID] = n
	return n, nil
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
	return nil
}

func (f *Fabric) attach(taskID string) (*Namespace, error) {
	ip, err := f.pool.take()
	if err != nil {
		return nil, err
	}
	ns, err := newNamespace(f.home)
	if err != nil {
		f.pool.release(ip)
		return nil, hostcap.Explain("make a network namespace", "room for another network namespace (user.max_net_namespaces)", "", err)
	}
	n := f.namespace(ip, ns, "task-"+taskID)
	n.close = func() error { return f.detach(taskID, n) }
	if err := f.connect(n, ns); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// connect links the namespace with the VPC, eth0 before eth1, so that
// interface numbers are in Fargate's order.
func (f *Fabric) connect(n *Namespace, ns netns.NsHandle) error {
	// Numbers are not used again: the links of a task that has ended are there
	// until the kernel gets round to them.
	number := f.links.Add(1)
	leg, err := f.addLink(fmt.Sprint("leg", number), "eth0", ns, net.HardwareAddr{0x0a, 0xed, n.MAC[2], n.MAC[3], n.MAC[4], n.MAC[5]})
	if err != nil {
		return err
	}
	eni, err := f.addLink(fmt.Sprint("eni", number), "eth1", ns, n.MAC)
	if err != nil {
		return err
	}
	n.link = eni.Index
	h, err := openLink(n)
	if err != nil {
		return err
	}
	defer h.Close()
	for _, configure := range []func() error{
		func() error { return setUpLoopback(h) },
		func() error { return cutLinkLocalOff(h) },
		func() error { return configureLinkLocalLeg(h) },
		func() error { return configureENI(h, n.Addressing, f.infra.MAC) },
		func() error { return routeTask(f.link, n.link, n.Addressing) },
		func() error { return waitUp(h, "eth0", "eth1") },
		func() error { return waitUp(f.link, leg.Name, eni.Name) },
	} {
		if err := configure(); err != nil {
			return err
		}
	}
	return nil
}

// addLink makes a pair of interfaces: name here, with the gateway's hardware
// address, and peer in the task's namespace.
func (f *Fabric) addLink(name, peer string, ns netns.NsHandle, mac net.HardwareAddr) (*netlink.LinkAttrs, error) {
	veth := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: peer, PeerHardwareAddr: mac, PeerNamespace: netlink.NsFd(ns)}
	veth.Name, veth.HardwareAddr = name, f.infra.MAC
	if err := f.link.LinkAdd(veth); err != nil {
		return nil, hostcap.Explain("add link "+name, "the kernel's veth driver", "", err)
	}
	return veth.Attrs(), setUp(f.link, veth)
}

// detach takes the task's route away and frees its address. The links are left
// to the kernel, which removes them with the namespace, many at a time; asking
// for each takes 50 ms in which no other link can be made.
func (f *Fabric) detach(taskID string, n *Namespace) error {
	f.mu.Lock()
	if f.tasks[taskID] == n {
		delete(f.tasks, taskID)
	}
	f.mu.Unlock()
	err := unrouteTask(f.link, n.link, n.Addressing)
	f.pool.release(n.IP)
	return errors.Join(err, n.file.Close())
}

// Close detaches every task and takes the VPC away. Stop the containers first:
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
	var errs []error
	for _, n := range open {
		errs = append(errs, n.Close())
	}
	return errors.Join(append(errs, f.release())...)
}

func (f *Fabric) release() error {
	if f.link != nil {
		f.link.Close()
	}
	var errs []error
	if f.metadata != nil {
		errs = append(errs, f.metadata.close())
	}
	if f.infra != nil {
		errs = append(errs, f.infra.file.Close())
	}
	return errors.Join(append(errs, f.home.Close())...)
}
