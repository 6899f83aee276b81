package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync/atomic"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/meshtask/consul-ecs/localecs/host"
)

// wayRound is for hosts that cannot give namespaces with links between them.
const wayRound = "-network host does without, and says what is lost then"

// vpc is a namespace that routes, and a namespace per task linked to it.
type vpc struct {
	home netns.NsHandle
	// namespace makes them, see Options.Namespace.
	namespace func(owner, hostname string) (*os.File, error)
	own       *inside
	a         Addressing // of the gateway
	link      *netlink.Handle
	bridge    netlink.Link
	links     atomic.Uint64
	// impaired are the links that faults impair.
	impaired *VPC
	// metadata listens at MetadataIP for all tasks. The address is outside of
	// them, as on Fargate: inside, port 80 of 0.0.0.0 would be taken, and that
	// is what many an application listens on.
	metadata *Exchange
}

// inside is a namespace of the kernel's.
type inside struct {
	home netns.NsHandle
	ns   *os.File
	vpc  *vpc
	ip   netip.Addr
	link int // index of the VPC's end of eth1, 0 without
	// impaired is nil before there are links.
	impaired *Task
}

func (i *inside) file() *os.File { return i.ns }

func (i *inside) do(fn func() error) error { return visit(i.home, i.enter, fn) }

// enter moves the calling thread. Control keeps the descriptor from being
// closed, and its number from being used again, under our feet.
func (i *inside) enter() error {
	raw, err := i.ns.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = raw.Control(func(fd uintptr) { set = netns.Set(netns.NsHandle(fd)) })
	return errors.Join(err, set)
}

func (i *inside) listenMetadata() (net.Listener, error) { return i.vpc.metadata.Listen(i.ip) }

func (i *inside) servicePort() string { return "80" }

// reserve has nothing to do: a port in here belongs to the task.
func (i *inside) reserve(Port, string) error { return nil }

func newVPC(gateway Addressing, namespace func(owner, hostname string) (*os.File, error)) (*vpc, error) {
	if err := host.CheckCaps("make a task network", wayRound, AWSVPC.Needs()...); err != nil {
		return nil, err
	}
	home, err := netns.Get()
	if err != nil {
		return nil, &host.MissingError{What: "open own network namespace", Need: "a /proc with this process", Instead: "mount it", Err: err}
	}
	v := &vpc{home: home, namespace: namespace, a: gateway}
	if namespace == nil {
		v.namespace = func(owner, _ string) (*os.File, error) { return newNamespace(home, owner) }
	}
	if err := v.open(); err != nil {
		return nil, errors.Join(err, v.close())
	}
	return v, nil
}

func (v *vpc) open() error {
	const what = "make the VPC"
	ns, err := v.namespace("vpc", v.a.PrivateDNSName)
	if err != nil {
		return host.Explain(what, "network namespaces", wayRound, host.Shortage(err, "net"))
	}
	v.own = v.inside(ns, v.a.IP)
	if v.link, err = openLink(v.own); err != nil {
		return host.Explain(what, "netlink", wayRound, err)
	}
	v.impaired = NewVPC(v.link, Own{Gateway: v.a.Gateway, Resolver: v.a.Resolver, Metadata: netip.MustParseAddr(MetadataIP)})
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
	if err := v.listen(); err != nil {
		return err
	}
	// The bridge has no ports: it is where the VPC's own addresses are. Tasks
	// reach each other through the gateway, and a packet for the outside gets
	// "unreachable" for an answer instead of none.
	err = v.own.do(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0) })
	return host.Explain("let the VPC's gateway forward", "a writable /proc/sys", wayRound, err)
}

func (v *vpc) listen() error {
	var l net.Listener
	err := v.own.do(func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(MetadataIP, "80"))
		return err
	})
	if err != nil {
		return fmt.Errorf("listen for task metadata: %w", err)
	}
	v.metadata = NewExchange(l)
	return nil
}

// inside wraps a namespace. It owns ns from here on.
func (v *vpc) inside(ns *os.File, ip netip.Addr) *inside {
	return &inside{home: v.home, ns: ns, vpc: v, ip: ip}
}

func (v *vpc) infra() place { return v.own }

func (v *vpc) add(ip netip.Addr) error {
	err := addAddress(v.link, v.bridge, netip.PrefixFrom(ip, v.a.CIDR.Bits()))
	if err == nil {
		v.impaired.AddService(ip)
	}
	return err
}

func (v *vpc) attach(taskID string, a Addressing) (place, *Task, func() error, error) {
	ns, err := v.namespace(taskID, a.PrivateDNSName)
	if err != nil {
		return nil, nil, nil, host.Explain("make a network namespace", "network namespaces", "", host.Shortage(err, "net"))
	}
	i := v.inside(ns, a.IP)
	detach := func() error { return v.detach(i, a) }
	if err := v.connect(i, a); err != nil {
		return nil, nil, nil, errors.Join(err, detach())
	}
	return i, i.impaired, detach, nil
}

// connect links the namespace with the VPC, eth0 before eth1, so that
// interface numbers are in Fargate's order.
func (v *vpc) connect(i *inside, a Addressing) error {
	ns := netns.NsHandle(i.ns.Fd())
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
	i.link = eni.Index
	i.impaired = v.impaired.Attach(a.IP, eni.Name, eni.Index, func() (*netlink.Handle, error) { return openLink(i) })
	h, err := openLink(i)
	if err != nil {
		return err
	}
	defer h.Close()
	for _, configure := range []func() error{
		func() error { return setUpLoopback(h) },
		func() error { return cutLinkLocalOff(h) },
		func() error { return configureLinkLocalLeg(h) },
		func() error { return configureENI(h, a, v.a.MAC) },
		func() error { return routeTask(v.link, i.link, a) },
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
func (v *vpc) detach(i *inside, a Addressing) error {
	var err error
	if i.link != 0 {
		err = errors.Join(i.impaired.Close(), unrouteTask(v.link, i.link, a))
	}
	return errors.Join(err, i.ns.Close())
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
	return errors.Join(append(errs, v.home.Close())...)
}
