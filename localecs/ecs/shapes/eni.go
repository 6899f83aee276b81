package shapes

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
)

// SearchDomain returns the domain of all private names of a region: <region>.compute.internal, or
// ec2.internal in us-east-1 (Amazon VPC User Guide, "DNS attributes for your VPC").
func SearchDomain(region string) string {
	if region == "us-east-1" {
		return "ec2.internal"
	}
	return region + ".compute.internal"
}

// PrivateDNSName returns ip-10-42-0-5.<domain> for 10.42.0.5; empty for an address of IPv6, which has
// none of this form.
func PrivateDNSName(ip netip.Addr, domain string) string {
	if !ip.Is4() {
		return ""
	}
	b := ip.As4()
	return fmt.Sprintf("ip-%d-%d-%d-%d.%s", b[0], b[1], b[2], b[3], domain)
}

// MAC derives the address from the IPv4 address: a neighbour's cache stays right when that is used
// again.
func MAC(ip netip.Addr) net.HardwareAddr {
	b := ip.As4()
	return net.HardwareAddr{0x0a, 0xec, b[0], b[1], b[2], b[3]}
}

// ServiceAddress returns where the first service in a subnet that is not a task listens: its last
// address but one, since AWS reserves the last. It returns the zero Addr for a subnet of IPv6.
func ServiceAddress(subnet netip.Prefix) netip.Addr {
	if !subnet.Addr().Is4() {
		return netip.Addr{}
	}
	b := subnet.Masked().Addr().As4()
	size := uint32(1) << (32 - subnet.Bits())
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+size-2)
	return netip.AddrFrom4(b)
}
