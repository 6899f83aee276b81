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

// Namespace is a task's network, or the VPC's own (Fabric.Infra).
type Namespace struct {
	Addressing

	home     netns.NsHandle
	file     *os.File
	link     int // index of the VPC's end of eth1
	metadata func() (net.Listener, error)
	close    func() error
	once     sync.Once
	err      error
}

// File is the network namespace, for a container that joins it. It stays
// owned by the Namespace and is closed by Close.
func (n *Namespace) File() *os.File { return n.file }

// Do runs fn on a thread inside the namespace and returns its error. What fn
// does by its own goroutine is inside; goroutines it starts are not.
func (n *Namespace) Do(fn func() error) error {
	return visit(n.home, n.enter, fn)
}

// enter moves the calling thread. Control keeps the descriptor from being
// closed, and its number from being used again, under our feet.
func (n *Namespace) enter() error {
	raw, err := n.file.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = raw.Control(func(fd uintptr) { set = netns.Set(netns.NsHandle(fd)) })
	return errors.Join(err, set)
}

// Listen is net.Listen inside the namespace. A host in address must be an IP
// address: names are resolved by other threads, outside. The caller closes the
// listener; until then the kernel keeps the namespace.
func (n *Namespace) Listen(network, address string) (net.Listener, error) {
	var l net.Listener
	err := n.literal(network, address, func() error {
		var err error
		l, err = net.Listen(network, address)
		return err
	})
	return l, err
}

// ListenMetadata listens where the task's containers find their metadata and
// credentials, MetadataIP and port 80. Only this task's connections arrive. The
// caller closes the listener, before the Namespace.
func (n *Namespace) ListenMetadata() (net.Listener, error) { return n.metadata() }

// ListenPacket is net.ListenPacket inside the namespace, under Listen's terms.
func (n *Namespace) ListenPacket(network, address string) (net.PacketConn, error) {
	var c net.PacketConn
	err := n.literal(network, address, func() error {
		var err error
		c, err = net.ListenPacket(network, address)
		return err
	})
	return c, err
}

// DialContext dials from inside the namespace; the host in address must be an
// IP address. It has the signature of http.Transport.DialContext.
func (n *Namespace) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	var c net.Conn
	err := n.literal(network, address, func() error {
		var err error
		c, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return c, err
}

// literal runs fn inside when address needs no resolver.
func (n *Namespace) literal(network, address string, fn func() error) error {
	if !strings.HasPrefix(network, "unix") {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return err
		}
		if _, err := netip.ParseAddr(host); host != "" && err != nil {
			return fmt.Errorf("address %q in a task network: want an IP address, names are not resolved here", address)
		}
	}
	return n.Do(fn)
}

// Close takes the task's address away, frees it and closes File. Stop the
// containers and close the listeners first: the kernel keeps the namespace
// while a process or an open socket is inside. Further calls return the first
// one's error.
func (n *Namespace) Close() error {
	n.once.Do(func() { n.err = n.close() })
	return n.err
}
