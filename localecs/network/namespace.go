package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"

	"github.com/vishvananda/netns"
)

// Namespace is a task's network, or what is no task's (Fabric.Infra).
type Namespace struct {
	Addressing
	// vpc is the VPC, and ns the namespace in it; nil with host networking.
	vpc *vpc
	ns  *os.File
	// from is the address that dials; empty leaves that to the kernel.
	from netip.Addr
	link *Task // nil where nothing can be impaired

	ports   *portRegistry // of the host's ports; nil where ports are the task's own
	mu      sync.Mutex
	claimed []Port

	close func() error
	once  sync.Once
	err   error
}

// File returns the network namespace, for a container that joins it; nil is the
// host's. It stays owned by the Namespace and is closed by Close.
func (n *Namespace) File() *os.File { return n.ns }

// Do runs fn on a thread inside the namespace and returns its error. What fn
// does by its own goroutine is inside; goroutines it starts are not.
func (n *Namespace) Do(fn func() error) error {
	if n.ns == nil {
		return fn()
	}
	return visit(n.vpc.home, n.enter, fn)
}

// enter moves the calling thread. Control keeps the descriptor from being
// closed, and its number from being used again, under our feet.
func (n *Namespace) enter() error {
	raw, err := n.ns.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = raw.Control(func(fd uintptr) { set = netns.Set(netns.NsHandle(fd)) })
	return errors.Join(err, set)
}

// ErrHostNetwork means that there is nothing between the tasks that could be bad.
var ErrHostNetwork = errors.New("with -network host tasks share the host's network: none can be partitioned or have a slow link; leave -network host out")

// Link returns the task's link to the VPC, which can be impaired until Close. Host: the error is ErrHostNetwork.
func (n *Namespace) Link() (*Task, error) {
	if n.link == nil {
		return nil, ErrHostNetwork
	}
	return n.link, nil
}

// Reserve claims a port until Close, for an owner with a readable name. Awsvpc: there is nothing to claim. Host: the
// error is a *ports.Error when it is taken.
func (n *Namespace) Reserve(p Port, owner string) error {
	if n.ports == nil {
		return nil
	}
	if err := n.ports.Take(p, owner); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.claimed = append(n.claimed, p)
	return nil
}

// Listen calls net.Listen inside the namespace. A host in address must be an IP address: names are resolved by other
// threads, outside. The caller closes the listener; until then the kernel keeps the namespace.
func (n *Namespace) Listen(network, address string) (net.Listener, error) {
	return inside(n, network, address, func() (net.Listener, error) { return net.Listen(network, address) })
}

// ListenMetadata listens where the task's containers find their metadata and credentials. Awsvpc: at MetadataIP and
// port 80, and only this task's connections arrive. Host: at 127.0.0.1 and a free port, for every program: the SDK for
// JavaScript takes no other loopback address for credentials (GREENGRASS_HOSTS in its container provider). The caller
// closes the listener, before the Namespace.
func (n *Namespace) ListenMetadata() (net.Listener, error) {
	if n.vpc == nil {
		return net.Listen("tcp", "127.0.0.1:0")
	}
	return n.vpc.metadata.Listen(n.IP)
}

// ListenService listens for simulator services at an address of Infra. Awsvpc:
// at port 80. Host: at a free one, since port 80 is an application's.
func (n *Namespace) ListenService(ip netip.Addr) (net.Listener, error) {
	port := "80"
	if n.vpc == nil {
		port = "0"
	}
	return n.Listen("tcp", net.JoinHostPort(ip.String(), port))
}

// ListenPacket calls net.ListenPacket inside the namespace, under Listen's terms.
func (n *Namespace) ListenPacket(network, address string) (net.PacketConn, error) {
	return inside(n, network, address, func() (net.PacketConn, error) { return net.ListenPacket(network, address) })
}

// DialContext dials from inside the namespace; the host in address must be an
// IP address. It has the signature of http.Transport.DialContext.
func (n *Namespace) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return inside(n, network, address, func() (net.Conn, error) { return n.dialer(network).DialContext(ctx, network, address) })
}

func (n *Namespace) dialer(network string) *net.Dialer {
	switch {
	case !n.from.IsValid():
	case strings.HasPrefix(network, "tcp"):
		return &net.Dialer{LocalAddr: &net.TCPAddr{IP: n.from.AsSlice()}}
	case strings.HasPrefix(network, "udp"):
		return &net.Dialer{LocalAddr: &net.UDPAddr{IP: n.from.AsSlice()}}
	}
	return &net.Dialer{}
}

// inside calls open in the namespace, if address needs no resolver.
func inside[T any](n *Namespace, network, address string, open func() (T, error)) (opened T, err error) {
	if !strings.HasPrefix(network, "unix") {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return opened, err
		}
		if _, err := netip.ParseAddr(host); host != "" && err != nil {
			return opened, fmt.Errorf("address %q in a task network: want an IP address, names are not resolved here", address)
		}
	}
	err = n.Do(func() (err error) { opened, err = open(); return err })
	return opened, err
}

// Close takes the task's address away, frees it and its ports and closes File. Stop the containers and close the
// listeners first: the kernel keeps the namespace while a process or an open socket is inside. Further calls return the
// first one's error.
func (n *Namespace) Close() error {
	n.once.Do(func() { n.err = n.close() })
	return n.err
}
