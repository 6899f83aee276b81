// Package eni is what an elastic network interface is called in a VPC.
//
// Owns: the names and the hardware address that follow from its IPv4 address.
// Never does: give an address.
// Start reading at: PrivateDNSName.
package eni

import (
	"fmt"
	"net"
	"net/netip"
)

// SearchDomain is the domain of all private names of a region:
// <region>.compute.internal, or ec2.internal in us-east-1 (Amazon VPC User Guide,
// "DNS attributes for your VPC").
func SearchDomain(region string) string {
	if region == "us-east-1" {
		return "ec2.internal"
	}
	return region + ".compute.internal"
}

// PrivateDNSName is ip-10-42-0-5.<domain> for 10.42.0.5; empty for an address of
// IPv6, which has none of this form.
func PrivateDNSName(ip netip.Addr, domain string) string {
	if !ip.Is4() {
		return ""
	}
	b := ip.As4()
	return fmt.Sprintf("ip-%d-%d-%d-%d.%s", b[0], b[1], b[2], b[3], domain)
}

// MAC is derived from the IPv4 address: a neighbour's cache stays right when the
// address is used again.
func MAC(ip netip.Addr) net.HardwareAddr {
	b := ip.As4()
	return net.HardwareAddr{0x0a, 0xec, b[0], b[1], b[2], b[3]}
}
