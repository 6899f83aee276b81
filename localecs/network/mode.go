package network

import (
	"fmt"
	"net/netip"

	"github.com/meshtask/consul-ecs/localecs/host"
)

// Mode is how tasks are connected. The zero Mode is AWSVPC.
type Mode string

const (
	// AWSVPC gives every task its own network, as ECS's mode of that name.
	AWSVPC Mode = "awsvpc"
	// Host makes tasks share the host's network, for hosts that cannot give
	// namespaces with links between them; see Limitations.
	Host Mode = "host"
)

// MarshalText implements encoding.TextMarshaler, for a flag's default.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m), nil }

// UnmarshalText implements encoding.TextUnmarshaler, for flags.
func (m *Mode) UnmarshalText(text []byte) error {
	switch Mode(text) {
	case AWSVPC, Host:
		*m = Mode(text)
		return nil
	}
	return fmt.Errorf("want %s or %s", AWSVPC, Host)
}

// Needs returns the capabilities that New requires.
func (m Mode) Needs() []host.Cap {
	if m == Host {
		return nil
	}
	return []host.Cap{host.NetAdmin(), host.NetBind(), host.SysAdmin()}
}

// Limitations returns the differences from ECS in this mode, one sentence each.
func (m Mode) Limitations() []string {
	if m != Host {
		return nil
	}
	return []string{
		"with host networking tasks share 127.0.0.1 and its ports with each other and with programs of this host, and only one of them can have a port",
		"with host networking tasks have no network interfaces: a task's address is a loopback address, listed in /etc/hosts, there is no eth1, connections come from 127.0.0.1, and nothing passes a link",
		"with host networking 169.254.170.2 does not exist: metadata and credentials are where the variables ECS_* and AWS_CONTAINER_CREDENTIALS_FULL_URI (not RELATIVE_URI) point, and any program on this host can query them",
		"with host networking tasks are not isolated: they reach what this host reaches, including its instance metadata at 169.254.169.254 (AWS SDKs are configured not to use it)",
	}
}

// CheckSubnet returns the error that New would return for a subnet.
func (m Mode) CheckSubnet(subnet string) error {
	_, err := newPlan(Options{Mode: m, Subnet: subnet})
	return err
}

// loopback is the block in which Linux answers at every address without any setup.
const loopback = "127.0.0.0/8"

// fits returns an error if the subnet is not usable in this mode. A Host subnet is of loopback addresses,
// and 127.0.0.x is left to the host.
func (m Mode) fits(subnet netip.Prefix) error {
	local := netip.MustParsePrefix(loopback).Contains(subnet.Addr())
	b := subnet.Addr().As4()
	switch {
	case m == Host && !local:
		// 10.42.7.0/24 becomes 127.42.7.0/24.
		b[0] = 127
		if b[1] == 0 {
			b[1] = 42
		}
		instead := netip.PrefixFrom(netip.AddrFrom4(b), subnet.Bits()).Masked()
		return fmt.Errorf("subnet %q: host networking has loopback addresses only: write subnet %s, and its addresses for those of %s in the task definitions", subnet, instead, subnet)
	case m == Host && b[1] == 0:
		return fmt.Errorf("subnet %q: addresses from 127.0.0.0 to 127.0.255.255 are the host's own: write one such as 127.42.0.0/24", subnet)
	case m != Host && local:
		return fmt.Errorf("subnet %q: loopback addresses are for -network host: write one such as %s", subnet, defaultSubnet)
	}
	return nil
}
