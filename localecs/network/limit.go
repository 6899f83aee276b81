package network

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/localecs/host"
)

const (
	// packet is what a link may always send at once, in bytes: a full one.
	packet = 1600
	// burst is the share of a second's bytes that it may send at once if that is more.
	burst = 20
	// waiting is how many packets wait for a slow link; what comes then is lost, as
	// in a router. The interfaces' own thousand would hold minutes.
	waiting = 32
	// queue is the interfaces' own.
	queue = 1000
)

// Offsets in an IPv4 header.
const (
	source      = 12
	destination = 16
)

// Limit lets through so many kbit/s, in each direction; of several limits the lowest counts. Packets wait, and are lost
// when too many do. The error is a *host.MissingError when the kernel cannot.
func (t *Task) Limit(kbits int) (end func() error, err error) {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil, ErrGone
	}
	limit := &kbits
	t.limits = append(t.limits, limit)
	err = t.shape()
	t.mu.Unlock()
	end = func() error {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.limits = slices.DeleteFunc(t.limits, func(l *int) bool { return l == limit })
		return t.shape()
	}
	if err != nil {
		return nil, errors.Join(err, end())
	}
	return t.keep(end)
}

// shape makes both directions as slow as the lowest limit says. The lock is held.
func (t *Task) shape() error {
	kbits := 0
	for _, l := range t.limits {
		if kbits == 0 || *l < kbits {
			kbits = *l
		}
	}
	inside, err := openLink(t.ns)
	if err != nil {
		return fmt.Errorf("open the task's network: %w", err)
	}
	defer inside.Close()
	eth1, err := inside.LinkByName("eth1")
	if err != nil {
		return fmt.Errorf("find link eth1: %w", err)
	}
	ours, err := t.vpc.link.LinkByIndex(t.index)
	if err != nil {
		return fmt.Errorf("find link %s: %w", t.name, err)
	}
	return errors.Join(t.shapeLink(t.vpc.link, ours, kbits, source), t.shapeLink(inside, eth1, kbits, destination))
}

// shapeLink limits what goes out by a link; 0 takes the limit away. Packets that
// have the metadata address at the offset pass.
func (t *Task) shapeLink(h *netlink.Handle, link netlink.Link, kbits int, offset int32) error {
	root := netlink.NewHtb(netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT})
	root.Defcls = 1
	// What is there goes with all that waits in it; there may be nothing.
	if err := h.QdiscDel(root); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("remove the limit of %s: %w", link.Attrs().Name, err)
	}
	if kbits == 0 {
		return nil
	}
	if err := h.QdiscAdd(root); err != nil {
		return missing("limit "+link.Attrs().Name, "the HTB scheduler of packets (sch_htb)", err)
	}
	if err := h.LinkSetTxQLen(link, waiting); err != nil {
		return fmt.Errorf("set the queue length of %s: %w", link.Attrs().Name, err)
	}
	bytes := uint32(kbits) * 1000 / 8
	room := max(packet, bytes/burst)
	class := netlink.NewHtbClass(
		netlink.ClassAttrs{LinkIndex: link.Attrs().Index, Parent: root.Handle, Handle: netlink.MakeHandle(1, 1)},
		netlink.HtbClassAttrs{Rate: uint64(kbits) * 1000, Buffer: room, Cbuffer: room, Quantum: packet},
	)
	if err := errors.Join(h.ClassAdd(class), h.LinkSetTxQLen(link, queue)); err != nil {
		return missing("limit "+link.Attrs().Name, "the HTB scheduler of packets (sch_htb)", err)
	}
	pass := &netlink.U32{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: link.Attrs().Index, Parent: root.Handle, Priority: 1, Protocol: unix.ETH_P_IP},
		ClassId:     root.Handle,
		Sel: &netlink.TcU32Sel{
			Flags: netlink.TC_U32_TERMINAL, Nkeys: 1,
			Keys: []netlink.TcU32Key{{Mask: 0xffffffff, Val: binary.BigEndian.Uint32(netip.MustParseAddr(MetadataIP).AsSlice()), Off: offset}},
		},
	}
	return missing("limit "+link.Attrs().Name, "the u32 classifier of packets (cls_u32)", h.FilterAdd(pass))
}

// missing returns host.Explain's error, and knows what the kernel says when it has no module of the name.
func missing(what, need string, err error) error {
	if errors.Is(err, unix.ENOENT) {
		return &host.MissingError{What: what, Need: need, Err: err}
	}
	return host.Explain(what, need, "", err)
}
