package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/localecs/host"
)

const addrGenModeNone = 1

// linkTimeout is how long the kernel may take to notice a link. It needs
// milliseconds; more than a second and something is wrong.
const linkTimeout = 5 * time.Second

func openLink(n *Namespace) (*netlink.Handle, error) {
	var h *netlink.Handle
	err := n.Do(func() error {
		var err error
		h, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
	return h, err
}

// setUp brings a link up without an IPv6 address: tasks of this VPC
// are IPv4, and with 200 of them on one bridge the neighbour discovery of
// addresses that are not in use is most of the traffic.
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
	br := &netlink.Bridge{LinkAttrs: netlink.NewLinkAttrs()}
	br.Name, br.HardwareAddr = name, mac
	if err := h.LinkAdd(br); err != nil {
		return nil, host.Explain("add link "+name, "the kernel's bridge driver", wayRound, err)
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

// cutLinkLocalOff makes all of link-local unreachable but what configureENI
// lets through.
func cutLinkLocalOff(h *netlink.Handle) error {
	off := netip.MustParsePrefix(linkLocalAll)
	if err := h.RouteAdd(&netlink.Route{Dst: ipNet(off), Type: unix.RTN_UNREACHABLE}); err != nil {
		return fmt.Errorf("add unreachable route %s: %w", off, err)
	}
	return nil
}

// configureLinkLocalLeg gives eth0 its address. Nothing is behind the link.
func configureLinkLocalLeg(h *netlink.Handle) error {
	leg, err := h.LinkByName("eth0")
	if err != nil {
		return fmt.Errorf("find link eth0: %w", err)
	}
	if err := addAddress(h, leg, netip.MustParsePrefix(linkLocalLeg)); err != nil {
		return err
	}
	return setUp(h, leg)
}

// configureENI gives eth1 the task's address and sends everything, the task's
// own subnet and the metadata address too, to the gateway, whose hardware
// address is known. A neighbour
// table is shared by all namespaces of a host and holds 1024 entries unless
// the host says otherwise: 200 tasks that talk to each other would fill it
// with their neighbours, and then no address is found any more.
func configureENI(h *netlink.Handle, a Addressing, gateway net.HardwareAddr) error {
	eni, err := h.LinkByName("eth1")
	if err != nil {
		return fmt.Errorf("find link eth1: %w", err)
	}
	address := netip.PrefixFrom(a.IP, a.CIDR.Bits())
	if err := h.AddrAdd(eni, &netlink.Addr{IPNet: ipNet(address), Flags: unix.IFA_F_NOPREFIXROUTE}); err != nil {
		return fmt.Errorf("add address %s to eth1: %w", address, err)
	}
	if err := setUp(h, eni); err != nil {
		return err
	}
	if err := addNeighbour(h, eni.Attrs().Index, a.Gateway, gateway); err != nil {
		return err
	}
	onLink := &netlink.Route{LinkIndex: eni.Attrs().Index, Dst: ipNet(netip.PrefixFrom(a.Gateway, 32)), Scope: netlink.SCOPE_LINK, Src: a.IP.AsSlice()}
	if err := h.RouteAdd(onLink); err != nil {
		return fmt.Errorf("add route to gateway %s: %w", a.Gateway, err)
	}
	for _, to := range []*net.IPNet{nil, ipNet(netip.MustParsePrefix(MetadataIP + "/32"))} {
		if err := h.RouteAdd(&netlink.Route{LinkIndex: eni.Attrs().Index, Dst: to, Gw: a.Gateway.AsSlice()}); err != nil {
			return fmt.Errorf("add route to %v by %s: %w", to, a.Gateway, err)
		}
	}
	return nil
}

func taskRoute(index int, a Addressing) *netlink.Route {
	return &netlink.Route{LinkIndex: index, Dst: ipNet(netip.PrefixFrom(a.IP, 32)), Scope: netlink.SCOPE_LINK, Src: a.Gateway.AsSlice()}
}

// routeTask makes the VPC send a task's packets to its link. The route of the
// address's last owner may still be there, on a link that is about to go.
func routeTask(h *netlink.Handle, index int, a Addressing) error {
	if err := addNeighbour(h, index, a.IP, a.MAC); err != nil {
		return err
	}
	if err := h.RouteReplace(taskRoute(index, a)); err != nil {
		return fmt.Errorf("add route to %s: %w", a.IP, err)
	}
	return nil
}

func unrouteTask(h *netlink.Handle, index int, a Addressing) error {
	if err := h.RouteDel(taskRoute(index, a)); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("remove route to %s: %w", a.IP, err)
	}
	return nil
}

// addNeighbour makes an entry that does not count and is not asked for.
func addNeighbour(h *netlink.Handle, index int, ip netip.Addr, mac net.HardwareAddr) error {
	n := &netlink.Neigh{LinkIndex: index, State: netlink.NUD_PERMANENT, Family: netlink.FAMILY_V4, IP: ip.AsSlice(), HardwareAddr: mac}
	if err := h.NeighSet(n); err != nil {
		return fmt.Errorf("add neighbour %s: %w", ip, err)
	}
	return nil
}

// waitUp waits until the kernel has noticed that the links carry. It does so
// in the background, and what is sent before is lost: the first connection of
// a task would take the second until TCP or ARP tries again.
func waitUp(h *netlink.Handle, names ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), linkTimeout)
	defer cancel()
	for _, name := range names {
		for up := false; !up; {
			l, err := h.LinkByName(name)
			if err != nil {
				return fmt.Errorf("find link %s: %w", name, err)
			}
			if up = l.Attrs().OperState == netlink.OperUp; !up && retry.Sleep(ctx, time.Millisecond) != nil {
				return fmt.Errorf("link %s did not come up in %s", name, linkTimeout)
			}
		}
	}
	return nil
}
