package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/meshtask/consul-ecs/localecs/runtime/hostcap"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// addrGenModeNone is the kernel's IN6_ADDR_GEN_MODE_NONE.
const addrGenModeNone = 1

// linkTimeout is how long the kernel may take to notice a link. It needs
// milliseconds; more than a second and something is wrong.
const linkTimeout = 5 * time.Second

// openLink opens a netlink socket that stays in the namespace.
func openLink(n *Namespace) (*netlink.Handle, error) {
	var h *netlink.Handle
	err := n.Do(func() error {
		var err error
		h, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
	return h, err
}

func linkAttrs(name string) netlink.LinkAttrs {
	a := netlink.NewLinkAttrs()
	a.Name = name
	return a
}

// setUp brings a link up without an IPv6 address of its own: tasks of this VPC
// are IPv4, and with 200 of them on one bridge the neighbour discovery of
// addresses that nobody uses is most of the traffic.
func setUp(h *netlink.Handle, l netlink.Link) error {
	// A kernel without IPv6 refuses, and then there is nothing to turn off.
	_ = h.LinkSetIP6AddrGenMode(l, addrGenModeNone)
	if err := h.LinkSetUp(l); err != nil {
		return fmt.Errorf("set link %s up: %w", l.Attrs().Name, err)
	}
	return nil
}

func setUpLoopback(h *netlink.Handle) error {
	lo, err := h.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find link lo: %w", err)
	}
	if err := h.LinkSetUp(lo); err != nil {
		return fmt.Errorf("set link lo up: %w", err)
	}
	return nil
}

func addBridge(h *netlink.Handle, name string, mac net.HardwareAddr) (netlink.Link, error) {
	br := &netlink.Bridge{LinkAttrs: linkAttrs(name)}
	br.HardwareAddr = mac
	if err := h.LinkAdd(br); err != nil {
		return nil, hostcap.Explain("add link "+name, "the kernel's bridge driver", instead, err)
	}
	return br, setUp(h, br)
}

func addAddress(h *netlink.Handle, l netlink.Link, p netip.Prefix) error {
	addr := &netlink.Addr{IPNet: ipNet(p)}
	if err := h.AddrAdd(l, addr); err != nil {
		return fmt.Errorf("add address %s to %s: %w", p, l.Attrs().Name, err)
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// addMetadataAddress puts the metadata address on lo, where the simulator
// listens from inside the namespace, and cuts the rest of link-local off.
func addMetadataAddress(h *netlink.Handle) error {
	lo, err := h.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find link lo: %w", err)
	}
	if err := addAddress(h, lo, netip.PrefixFrom(netip.MustParseAddr(MetadataIP), 32)); err != nil {
		return err
	}
	off := netip.MustParsePrefix(linkLocalAll)
	if err := h.RouteAdd(&netlink.Route{Dst: ipNet(off), Type: unix.RTN_UNREACHABLE}); err != nil {
		return fmt.Errorf("add unreachable route %s: %w", off, err)
	}
	return nil
}

// addLinkLocalLeg makes eth0. Nothing is behind it. A dummy is the honest
// device for that; a bridge without ports does where the kernel has no dummy,
// and bridges are there anyway.
func addLinkLocalLeg(h *netlink.Handle, mac net.HardwareAddr) error {
	var leg netlink.Link
	dummy := &netlink.Dummy{LinkAttrs: linkAttrs("eth0")}
	dummy.HardwareAddr = mac
	switch err := h.LinkAdd(dummy); {
	case err == nil:
		leg = dummy
	case errors.Is(err, unix.EOPNOTSUPP):
		var err error
		if leg, err = addBridge(h, "eth0", mac); err != nil {
			return err
		}
	default:
		return hostcap.Explain("add link eth0", "CAP_NET_ADMIN", instead, err)
	}
	if err := addAddress(h, leg, netip.MustParsePrefix(linkLocalLeg)); err != nil {
		return err
	}
	return setUp(h, leg)
}

// configureENI gives eth1 the task's address and the default route.
func configureENI(h *netlink.Handle, a Addressing) error {
	eni, err := h.LinkByName("eth1")
	if err != nil {
		return fmt.Errorf("find link eth1: %w", err)
	}
	if err := addAddress(h, eni, netip.PrefixFrom(a.IP, a.CIDR.Bits())); err != nil {
		return err
	}
	if err := setUp(h, eni); err != nil {
		return err
	}
	if err := h.RouteAdd(&netlink.Route{LinkIndex: eni.Attrs().Index, Gw: a.Gateway.AsSlice()}); err != nil {
		return fmt.Errorf("add default route by %s: %w", a.Gateway, err)
	}
	return nil
}

// removeENIAddress makes a namespace deaf to the task's address, also when a
// socket that is still open keeps the namespace and its link alive.
func removeENIAddress(n *Namespace) error {
	h, err := openLink(n)
	if err != nil {
		return err
	}
	defer h.Close()
	eni, err := h.LinkByName("eth1")
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil // it did not come that far
	}
	if err != nil {
		return err
	}
	addrs, err := h.AddrList(eni, netlink.FAMILY_V4)
	if err != nil {
		return err
	}
	for _, a := range addrs {
		if err := h.AddrDel(eni, &a); err != nil {
			return err
		}
	}
	return nil
}

// waitUp waits until the kernel has noticed that the links carry. It does so
// in the background, and what is sent before is lost: the first connection of
// a task would take the second until TCP or ARP tries again.
func waitUp(h *netlink.Handle, names ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), linkTimeout)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for _, name := range names {
		for {
			l, err := h.LinkByName(name)
			if err != nil {
				return fmt.Errorf("find link %s: %w", name, err)
			}
			if l.Attrs().OperState == netlink.OperUp {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("link %s did not come up in %s", name, linkTimeout)
			case <-tick.C:
			}
		}
	}
	return nil
}
