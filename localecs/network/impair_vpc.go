package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/localecs/host"
)

// The order of the routing rules. What is said of all packets of a task goes
// before what is said of some.
const (
	fromMetadata = 1
	toMetadata   = 2
	firstOfAll   = 100
	firstOfSome  = 10000
	local        = 30000
)

// Tables whose only route leads nowhere: what is sent to the loopback interface
// under a foreign address is dropped there. A rule that drops would be visible to
// a local program as an error.
const (
	nowhere     = 101 // a program without its own address gets the gateway's
	nowhereElse = 102 // it gets the service's
)

// loopback is the number of lo in every namespace.
const loopbackIndex = 1

// cut adds rules at one place of the order, and returns what removes them.
func (v *vpc) cut(first int, rules []*netlink.Rule) (end func() error, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.prepare(); err != nil {
		return nil, explain(err)
	}
	priority := first
	for v.used[priority] {
		priority++
	}
	v.used[priority] = true
	for i, r := range rules {
		r.Priority = priority
		if err := v.link.RuleAdd(r); err != nil {
			return nil, explain(errors.Join(fmt.Errorf("add %s: %w", r, err), v.remove(priority, rules[:i])))
		}
	}
	return func() error {
		v.mu.Lock()
		defer v.mu.Unlock()
		return v.remove(priority, rules)
	}, nil
}

func (v *vpc) remove(priority int, rules []*netlink.Rule) error {
	var errs []error
	for _, r := range rules {
		if err := v.link.RuleDel(r); err != nil {
			errs = append(errs, fmt.Errorf("remove %s: %w", r, err))
		}
	}
	delete(v.used, priority)
	return errors.Join(errs...)
}

func explain(err error) error {
	return host.Explain("partition a task", "policy routing (CONFIG_IP_MULTIPLE_TABLES)", "", err)
}

// prepare puts the VPC's own addresses behind the rules of cuts: the kernel
// looks at them first otherwise, and a packet for a service would come through.
// The lock is held.
func (v *vpc) prepare() error {
	if v.ready {
		return nil
	}
	metadata := netip.MustParseAddr(MetadataIP)
	rules := []*netlink.Rule{
		rule(fromMetadata, unix.RT_TABLE_MAIN, from(metadata)),
		rule(toMetadata, unix.RT_TABLE_LOCAL, to(metadata)),
		rule(local, unix.RT_TABLE_LOCAL),
	}
	for _, r := range rules {
		if err := v.link.RuleAdd(r); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("add %s: %w", r, err)
		}
	}
	if err := v.lead(nowhere, v.a.Gateway); err != nil {
		return err
	}
	first := rule(0, unix.RT_TABLE_LOCAL)
	if err := v.link.RuleDel(first); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove %s: %w", first, err)
	}
	v.ready = true
	return nil
}

// lead makes a table with a default route by lo, which drops packets, and a source address.
func (v *vpc) lead(table int, as netip.Addr) error {
	_, everything, _ := net.ParseCIDR("0.0.0.0/0")
	r := &netlink.Route{LinkIndex: loopbackIndex, Table: table, Dst: everything, Scope: netlink.SCOPE_LINK, Src: as.AsSlice()}
	if err := v.link.RouteReplace(r); err != nil {
		return fmt.Errorf("add default route by lo to table %d: %w", table, err)
	}
	return nil
}

func rule(priority, table int, which ...func(*netlink.Rule)) *netlink.Rule {
	r := netlink.NewRule()
	r.Priority, r.Table, r.Family = priority, table, netlink.FAMILY_V4
	for _, narrow := range which {
		narrow(r)
	}
	return r
}

func drop(which ...func(*netlink.Rule)) *netlink.Rule {
	r := rule(0, unix.RT_TABLE_UNSPEC, which...)
	r.Type = unix.RTN_BLACKHOLE
	return r
}

func hostAddress(ip netip.Addr) *net.IPNet {
	return &net.IPNet{IP: ip.AsSlice(), Mask: net.CIDRMask(ip.BitLen(), ip.BitLen())}
}

// from and the following return what a rule matches: where packets come from and go to, and by which link they
// come in; lo stands for the VPC's own programs.
func from(ip netip.Addr) func(*netlink.Rule) {
	return func(r *netlink.Rule) { r.Src = hostAddress(ip) }
}
func to(ip netip.Addr) func(*netlink.Rule) { return func(r *netlink.Rule) { r.Dst = hostAddress(ip) } }
func by(link string) func(*netlink.Rule)   { return func(r *netlink.Rule) { r.IifName = link } }
