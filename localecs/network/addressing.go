package network

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// defaultSubnet is the VPC's subnet unless Options set another one.
const defaultSubnet = "10.42.0.0/24"

// Well-known link-local addresses of a Fargate task (platform 1.4).
const (
	// MetadataIP is where metadata and credentials are served, port 80.
	MetadataIP = "169.254.170.2"
	// linkLocalLeg is eth0's address: programs that take the first interface
	// for the task's address get this one and are wrong, as on Fargate.
	linkLocalLeg = "169.254.172.2/22"
	// linkLocalAll is made unreachable so that what is not emulated, the
	// instance metadata service 169.254.169.254 above all, fails at once.
	linkLocalAll = "169.254.0.0/16"
)

// Addressing is what a task sees of its network: the values of the metadata's Networks entry.
type Addressing struct {
	// IP is the address of eth1.
	IP netip.Addr
	// MAC is eth1's hardware address.
	MAC net.HardwareAddr
	// CIDR is the subnet, masked: 10.42.0.0/24.
	CIDR netip.Prefix
	// Gateway is the subnet's first address, on the VPC's bridge.
	Gateway netip.Addr
	// Resolver is the subnet's base + 2, the VPC's DNS server. It is on the
	// bridge too, so that a query without a server is refused, not lost.
	Resolver netip.Addr
	// PrivateDNSName is ip-10-42-0-5.<SearchDomain>.
	PrivateDNSName string
	// SearchDomain is <region>.compute.internal, or ec2.internal in us-east-1.
	SearchDomain string
}

// Hosts returns the content of /etc/hosts in every container of the task.
func (a Addressing) Hosts() string {
	return fmt.Sprintf("127.0.0.1 localhost\n%s %s\n", a.IP, a.PrivateDNSName)
}

// ResolvConf returns the content of /etc/resolv.conf in every container.
func (a Addressing) ResolvConf() string {
	return fmt.Sprintf("nameserver %s\nsearch %s\n", a.Resolver, a.SearchDomain)
}

type plan struct {
	subnet netip.Prefix
	region string
}

// newPlan checks the subnet: IPv4, /16 to /28 as a VPC subnet has to be, and fit for the mode.
func newPlan(o Options) (plan, error) {
	o.Subnet = cmp.Or(o.Subnet, defaultSubnet)
	p, err := netip.ParsePrefix(o.Subnet)
	if err != nil {
		return plan{}, fmt.Errorf("subnet %q: want a CIDR block such as %s", o.Subnet, defaultSubnet)
	}
	if !p.Addr().Is4() || p.Bits() < 16 || p.Bits() > 28 {
		return plan{}, fmt.Errorf("subnet %q: want an IPv4 block from /16 to /28", o.Subnet)
	}
	if err := o.Mode.fits(p.Masked()); err != nil {
		return plan{}, err
	}
	o.Region = cmp.Or(o.Region, "us-west-2")
	return plan{subnet: p.Masked(), region: o.Region}, nil
}

// at returns the subnet's n-th address; a negative n counts from the broadcast address (-1).
func (p plan) at(n int) netip.Addr {
	base := binary.BigEndian.Uint32(p.subnet.Addr().AsSlice())
	if n < 0 {
		n += 1 << (32 - p.subnet.Bits())
	}
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], base+uint32(n))
	return netip.AddrFrom4(b)
}

func (p plan) addressing(ip netip.Addr) Addressing {
	domain := shapes.SearchDomain(p.region)
	return Addressing{
		IP:             ip,
		MAC:            shapes.MAC(ip),
		CIDR:           p.subnet,
		Gateway:        p.at(1),
		Resolver:       p.at(2),
		PrivateDNSName: shapes.PrivateDNSName(ip, domain),
		SearchDomain:   domain,
	}
}
