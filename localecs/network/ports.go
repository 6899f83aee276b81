package network

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/taskdef"
	"github.com/vishvananda/netlink"
)

// Port is a port that a program will listen on.
type Port struct {
	Number int
	// Protocol is tcp or udp; empty is tcp.
	Protocol string
	// Address is the only one that it is for; the zero one means all of them.
	Address netip.Addr
}

// Declared returns the ports of a mapping: one, or a range such as 8000-8010.
func Declared(m taskdef.PortMapping) []Port {
	var first, last int
	if m.ContainerPort != nil {
		first, last = *m.ContainerPort, *m.ContainerPort
	} else if _, err := fmt.Sscanf(m.ContainerPortRange, "%d-%d", &first, &last); err != nil {
		return nil
	}
	var all []Port
	for n := max(first, 1); n <= min(last, 65535); n++ {
		all = append(all, Port{Number: n, Protocol: m.Protocol})
	}
	return all
}

// String returns 8080/tcp, and 127.42.0.254:8500/tcp for one address.
func (p Port) String() string {
	if p.Address.IsValid() {
		return fmt.Sprintf("%s/%s", p.hostPort(), p.protocol())
	}
	return fmt.Sprintf("%d/%s", p.Number, p.protocol())
}

func (p Port) protocol() string {
	return cmp.Or(p.Protocol, "tcp")
}

func (p Port) hostPort() string {
	address := "0.0.0.0"
	if p.Address.IsValid() {
		address = p.Address.String()
	}
	return net.JoinHostPort(address, strconv.Itoa(p.Number))
}

func (p Port) meets(other Port) bool {
	same := p.Number == other.Number && p.protocol() == other.protocol()
	return same && (p.Address == other.Address || !p.Address.IsValid() || !other.Address.IsValid())
}

// Error is a port that is not available.
type Error struct {
	Port Port
	// Owner is the owner that wanted it, Holder the one that has it: an owner's name,
	// or what the kernel reports. Holder is empty when it is unknown.
	Owner, Holder string
	// Err is the system's error; nil when the list of ports had it.
	Err error
}

// Error names the port, its owner and its holder.
func (e *Error) Error() string {
	why := e.Holder + " has it"
	if e.Holder == "" {
		why = e.Err.Error()
	}
	return fmt.Sprintf("port %s of %s is not available: %s", e.Port, e.Owner, why)
}

func (e *Error) advice() string {
	switch {
	case errors.Is(e.Err, unix.EACCES):
		return "use ports above net.ipv4.ip_unprivileged_port_start, or give localecs CAP_NET_BIND_SERVICE"
	case e.Port.Address.IsValid():
		return "stop what has it; if that is another localecs, use another subnet"
	}
	return "stop what has it first, or use another containerPort"
}

// Unwrap returns the system's error.
func (e *Error) Unwrap() error { return e.Err }

// Join joins errors of Take as errors.Join does: what they have in common, that ports are shared and the way round, is
// said once at the end.
func Join(errs ...error) error {
	joined := errors.Join(errs...)
	var advice []string
	for _, err := range errs {
		if e, ok := errors.AsType[*Error](err); ok && !slices.Contains(advice, e.advice()) {
			advice = append(advice, e.advice())
		}
	}
	if len(advice) == 0 {
		return joined
	}
	return fmt.Errorf("%w\nwith host networking all tasks share the ports of this host: %s", joined, strings.Join(advice, "; "))
}

// portRegistry records the owner of each claimed port. The zero value is empty and ready; it is
// safe for concurrent use.
type portRegistry struct {
	mu    sync.Mutex
	taken map[Port]string
}

// Take claims a port for its owner, a readable name. The error is an *Error
// when it is taken, in the list of ports or on this host.
func (b *portRegistry) Take(p Port, owner string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for other, holder := range b.taken {
		if p.meets(other) {
			return &Error{Port: p, Owner: owner, Holder: holder}
		}
	}
	if err := try(p); err != nil {
		return &Error{Port: p, Owner: owner, Holder: holder(p, err), Err: err}
	}
	if b.taken == nil {
		b.taken = map[Port]string{}
	}
	b.taken[p] = owner
	return nil
}

// Release removes claims.
func (b *portRegistry) Release(claims ...Port) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range claims {
		delete(b.taken, p)
	}
}

// try listens for a moment. The kernel refuses a wildcard when one address is
// in use, and an address when the wildcard is.
func try(p Port) error {
	if p.protocol() == "udp" {
		c, err := net.ListenPacket("udp4", p.hostPort())
		if err != nil {
			return err
		}
		return c.Close()
	}
	l, err := net.Listen("tcp4", p.hostPort())
	if err != nil {
		return err
	}
	return l.Close()
}

// Holder says which process listens at a TCP address that another listener was refused for; empty when it is unknown.
func Holder(address netip.AddrPort, err error) string {
	return holder(Port{Number: int(address.Port()), Address: specific(address.Addr())}, err)
}

func holder(p Port, err error) string {
	if !errors.Is(err, unix.EADDRINUSE) {
		return ""
	}
	list, listening := netlink.SocketDiagTCP, uint8(netlink.TCP_LISTEN)
	if p.protocol() == "udp" {
		list, listening = netlink.SocketDiagUDP, netlink.TCP_CLOSE // without a peer
	}
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		sockets, _ := list(family) // an error means that there is no such family
		for _, s := range sockets {
			ip, _ := netip.AddrFromSlice(s.ID.Source)
			at := netip.AddrPortFrom(ip.Unmap(), s.ID.SourcePort)
			if s.State == listening && p.meets(Port{Number: int(at.Port()), Protocol: p.protocol(), Address: specific(at.Addr())}) {
				return fmt.Sprintf("%s that listens on %s", process(s.INode), at)
			}
		}
	}
	return "something on this host"
}

// process returns the name of a process that has a socket, as far as this user may look.
func process(inode uint32) string {
	descriptors, _ := filepath.Glob("/proc/[0-9]*/fd/[0-9]*") // an error is that of a bad pattern
	for _, d := range descriptors {
		if to, err := os.Readlink(d); err != nil || to != fmt.Sprintf("socket:[%d]", inode) {
			continue
		}
		pid := strings.Split(d, "/")[2]
		if name, err := os.ReadFile("/proc/" + pid + "/comm"); err == nil {
			return fmt.Sprintf("process %s (%s)", pid, strings.TrimSpace(string(name)))
		}
	}
	return "something on this host"
}

// specific returns the address, or the zero one for a wildcard.
func specific(a netip.Addr) netip.Addr {
	if a.IsUnspecified() {
		return netip.Addr{}
	}
	return a
}
