package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/meshtask/consul-ecs/localecs/host"
)

// wayRound is for hosts where namespaces with links between them are not possible.
const wayRound = "-network host does not need this; it prints its limitations"

// vpc is a namespace that routes, and a namespace per task linked to it.
type vpc struct {
	home netns.NsHandle
	// namespace makes them, see Options.Namespace.
	namespace func(owner, hostname string) (*os.File, error)
	own       *Namespace
	a         Addressing // of the gateway
	link      *netlink.Handle
	bridge    netlink.Link
	links     atomic.Uint64
	// metadata listens at MetadataIP for all tasks. The address is outside of
	// them, as on Fargate: inside, port 80 of 0.0.0.0 would be taken, and that
	// is what many an application listens on.
	metadata *exchange

	mu       sync.Mutex
	ready    bool         // prepare has run
	used     map[int]bool // priorities of routing rules
	services []netip.Addr
}

func newVPC(gateway Addressing, namespace func(owner, hostname string) (*os.File, error)) (*vpc, error) {
	if err := host.CheckCaps("make a task network", wayRound, AWSVPC.Needs()...); err != nil {
		return nil, err
	}
	home, err := ownNamespace()
	if err != nil {
		return nil, &host.MissingError{What: "open own network namespace", Need: "a /proc with this process", Instead: "mount it", Err: err}
	}
	v := &vpc{home: home, namespace: namespace, a: gateway, used: map[int]bool{}}
	if namespace == nil {
		v.namespace = func(owner, _ string) (*os.File, error) { return newNamespace(home, owner) }
	}
	if err := v.open(); err != nil {
		return nil, errors.Join(err, v.close())
	}
	return v, nil
}

// ownNamespace opens the network namespace of this process. In the /proc of another PID namespace
// its number may be that of another process.
func ownNamespace() (netns.NsHandle, error) {
	self, err := os.Readlink("/proc/self")
	if err != nil {
		return netns.None(), err
	}
	if self != strconv.Itoa(os.Getpid()) {
		return netns.None(), errors.New("/proc is that of another PID namespace")
	}
	return netns.Get()
}

func (v *vpc) open() error {
	const what = "make the VPC"
	ns, err := v.namespace("vpc", v.a.PrivateDNSName)
	if err != nil {
		return host.Explain(what, "network namespaces", wayRound, host.Shortage(err, "net"))
	}
	// Connections of the simulator differ from those of services by their address.
	v.own = &Namespace{Addressing: v.a, vpc: v, ns: ns, from: v.a.IP, close: func() error { return nil }}
	if v.link, err = openLink(v.own); err != nil {
		return host.Explain(what, "netlink", wayRound, err)
	}
	if err := setUpLoopback(v.link); err != nil {
		return err
	}
	if v.bridge, err = addBridge(v.link, "br0", v.a.MAC); err != nil {
		return err
	}
	bits := v.a.CIDR.Bits()
	for _, own := range []netip.Prefix{
		netip.PrefixFrom(v.a.Gateway, bits), netip.PrefixFrom(v.a.Resolver, bits), netip.MustParsePrefix(MetadataIP + "/32"),
	} {
		if err := addAddress(v.link, v.bridge, own); err != nil {
			return err
		}
	}
	l, err := v.own.Listen("tcp", net.JoinHostPort(MetadataIP, "80"))
	if err != nil {
		return fmt.Errorf("listen for task metadata: %w", err)
	}
	v.metadata = newExchange(l)
	// The bridge has no ports: it is where the VPC's own addresses are. Tasks
	// reach each other through the gateway, and a packet for the outside gets
	// "unreachable" for an answer instead of none.
	err = v.own.Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0) })
	return host.Explain("let the VPC's gateway forward", "a writable /proc/sys", wayRound, err)
}

func (v *vpc) add(ip netip.Addr) error {
	if err := addAddress(v.link, v.bridge, netip.PrefixFrom(ip, v.a.CIDR.Bits())); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.services = append(v.services, ip)
	return nil
}

func (v *vpc) attach(taskID string, a Addressing) (*Namespace, error) {
	ns, err := v.namespace(taskID, a.PrivateDNSName)
	if err != nil {
		return nil, host.Explain("make a network namespace", "network namespaces", "", host.Shortage(err, "net"))
	}
	n := &Namespace{Addressing: a, vpc: v, ns: ns}
	n.close = func() error { return v.detach(n) }
	if err := v.connect(n, a); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

// connect links the namespace with the VPC, eth0 before eth1, so that
// interface numbers are in Fargate's order.
func (v *vpc) connect(n *Namespace, a Addressing) error {
	ns := netns.NsHandle(n.ns.Fd())
	// Numbers are not used again: the links of a task that has ended are there
	// until the kernel gets round to them.
	number := v.links.Add(1)
	leg, err := v.addLink(fmt.Sprint("leg", number), "eth0", ns, net.HardwareAddr{0x0a, 0xed, a.MAC[2], a.MAC[3], a.MAC[4], a.MAC[5]})
	if err != nil {
		return err
	}
	eni, err := v.addLink(fmt.Sprint("eni", number), "eth1", ns, a.MAC)
	if err != nil {
		return err
	}
	n.link = &Task{vpc: v, ns: n, name: eni.Name, index: eni.Index, ends: map[int]func() error{}}
	h, err := openLink(n)
	if err != nil {
		return err
	}
	defer h.Close()
	for _, configure := range []func() error{
		func() error { return setUpLoopback(h) },
		func() error { return cutLinkLocalOff(h) },
		func() error { return configureLinkLocalLeg(h) },
		func() error { return configureENI(h, a, v.a.MAC) },
		func() error { return routeTask(v.link, eni.Index, a) },
		func() error { return waitUp(h, "eth0", "eth1") },
		func() error { return waitUp(v.link, leg.Name, eni.Name) },
	} {
		if err := configure(); err != nil {
			return err
		}
	}
	return nil
}

// addLink makes a pair of interfaces: name here, with the gateway's hardware
// address, and peer in the task's namespace.
func (v *vpc) addLink(name, peer string, ns netns.NsHandle, mac net.HardwareAddr) (*netlink.LinkAttrs, error) {
	veth := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: peer, PeerHardwareAddr: mac, PeerNamespace: netlink.NsFd(ns)}
	veth.Name, veth.HardwareAddr = name, v.a.MAC
	if err := v.link.LinkAdd(veth); err != nil {
		return nil, host.Explain("add link "+name, "the kernel's veth driver", wayRound, err)
	}
	return veth.Attrs(), setUp(v.link, veth)
}

// detach takes the task's route away. The links are left to the kernel, which
// removes them with the namespace, many at a time; asking for each takes 50 ms
// in which no other link can be made.
func (v *vpc) detach(n *Namespace) error {
	var err error
	if n.link != nil {
		err = errors.Join(n.link.Close(), unrouteTask(v.link, n.link.index, n.Addressing))
	}
	return errors.Join(err, n.ns.Close())
}

func (v *vpc) close() error {
	var errs []error
	if v.metadata != nil {
		errs = append(errs, v.metadata.Close())
	}
	if v.link != nil {
		v.link.Close()
	}
	if v.own != nil {
		errs = append(errs, v.own.ns.Close())
	}
	home := v.home // a copy, because a late Namespace.Do may read it
	return errors.Join(append(errs, home.Close())...)
}
