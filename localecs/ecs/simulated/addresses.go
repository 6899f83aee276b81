package simulated

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// DefaultSubnet has room for 65,531 tasks.
const DefaultSubnet = "10.42.0.0/16"

type addresses struct {
	*shapes.Pool
	domain string
}

func newAddresses(subnet, region string) (*addresses, error) {
	p, err := netip.ParsePrefix(cmp.Or(subnet, DefaultSubnet))
	if err != nil || !p.Addr().Is4() {
		return nil, fmt.Errorf("subnet %q: want an IPv4 block such as %s", subnet, DefaultSubnet)
	}
	return &addresses{shapes.NewPool(p), shapes.SearchDomain(region)}, nil
}

func (a *addresses) take() (*metadata.Network, error) {
	ip, err := a.Take()
	if err != nil {
		return nil, err
	}
	return &metadata.Network{IP: ip.String(), MAC: shapes.MAC(ip).String(), PrivateDNSName: shapes.PrivateDNSName(ip, a.domain)}, nil
}

func (a *addresses) give(n *metadata.Network) {
	if n != nil {
		a.Release(netip.MustParseAddr(n.IP))
	}
}
