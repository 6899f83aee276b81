package redirect

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/meshtask/consul-ecs/config"
)

// Chains, by the names that Consul gives them on other platforms.
const (
	chainInbound     = "CONSUL_PROXY_INBOUND"
	chainInRedirect  = "CONSUL_PROXY_IN_REDIRECT"
	chainOutput      = "CONSUL_PROXY_OUTPUT"
	chainOutRedirect = "CONSUL_PROXY_REDIRECT"
	chainDNS         = "CONSUL_DNS_REDIRECT"
)

// Chains that the kernel starts with.
const (
	hookPrerouting  = "PREROUTING"
	hookOutput      = "OUTPUT"
	hookPostrouting = "POSTROUTING"
)

// Protocols of rules.
const (
	protocolTCP = "tcp"
	protocolUDP = "udp"
)

// Table is the rules of one address family.
type Table struct {
	// IPv6 is false for the table of IPv4.
	IPv6   bool
	Chains []Chain
}

// Chain is a list of rules, of which the first that matches counts.
type Chain struct {
	// Name is that of a hook, where the kernel starts with the policy ACCEPT, or that
	// of a chain which rules jump to.
	Name  string
	Rules []Rule
}

// Rule matches connections by the fields that are set, and does what its only other
// field has: with none of these, it returns to the calling chain.
type Rule struct {
	// Protocol is tcp or udp; empty is both.
	Protocol string
	// Destination is where the connection goes; the zero value is anywhere.
	Destination netip.Prefix
	// Port is the destination's; 0 is any. It needs Protocol.
	Port int
	// UIDs are the users of the process; nil is any.
	UIDs *config.UIDs

	// Jump continues with another chain.
	Jump string
	// Redirect sends the connection to this port of the task.
	Redirect int
	// To sends the connection there.
	To netip.AddrPort
}

// Tables computes the rules: those of IPv4 and, with IPv6, the same for it. Two calls
// with the same settings give the same rules in the same order.
func Tables(s Settings) []Table {
	tables := []Table{table(s, false)}
	if s.IPv6 {
		tables = append(tables, table(s, true))
	}
	return tables
}

func table(s Settings, v6 bool) Table {
	dns, toDNS := dnsRules(s, v6)
	return Table{IPv6: v6, Chains: []Chain{
		{Name: hookPrerouting, Rules: []Rule{{Protocol: protocolTCP, Jump: chainInbound}}},
		// DNS over TCP is TCP: its rules come first.
		{Name: hookOutput, Rules: append(toDNS, Rule{Protocol: protocolTCP, Jump: chainOutput})},
		// Older kernels translate answers only where a chain has this hook.
		{Name: hookPostrouting},
		{Name: chainInbound, Rules: inboundRules(s)},
		{Name: chainInRedirect, Rules: []Rule{{Protocol: protocolTCP, Redirect: s.InboundPort}}},
		{Name: chainOutput, Rules: outboundRules(s, v6)},
		{Name: chainOutRedirect, Rules: []Rule{{Protocol: protocolTCP, Redirect: s.OutboundPort}}},
		{Name: chainDNS, Rules: dns},
	}}
}

func inboundRules(s Settings) []Rule {
	var rules []Rule
	for _, port := range s.ExcludeInboundPorts {
		rules = append(rules, Rule{Protocol: protocolTCP, Port: port})
	}
	return append(rules, Rule{Protocol: protocolTCP, Jump: chainInRedirect})
}

func outboundRules(s Settings, v6 bool) []Rule {
	// All of it: named upstreams have their own addresses, at which the proxy listens.
	loopback := netip.MustParsePrefix("127.0.0.0/8")
	if v6 {
		loopback = netip.MustParsePrefix("::1/128")
	}
	rules := []Rule{{UIDs: &config.UIDs{First: ProxyUID, Last: ProxyUID}}, {Destination: loopback}}
	for _, port := range s.ExcludeOutboundPorts {
		rules = append(rules, Rule{Protocol: protocolTCP, Port: port})
	}
	for _, prefix := range s.ExcludeOutbound {
		if prefix.Addr().Is6() == v6 {
			rules = append(rules, Rule{Destination: prefix})
		}
	}
	for _, uids := range s.ExcludeUIDs {
		rules = append(rules, Rule{UIDs: &uids})
	}
	return append(rules, Rule{Jump: chainOutRedirect})
}

// dnsRules returns the rules that send queries to the proxy, and those that jump to them.
// The proxy answers at an IPv4 address.
func dnsRules(s Settings, v6 bool) (dns, jumps []Rule) {
	if s.DNSPort == 0 || v6 {
		return nil, nil
	}
	local := netip.MustParsePrefix("127.0.0.1/32")
	for _, protocol := range []string{protocolUDP, protocolTCP} {
		to := netip.AddrPortFrom(local.Addr(), uint16(s.DNSPort))
		dns = append(dns, Rule{Protocol: protocol, Destination: local, Port: 53, To: to})
		jumps = append(jumps, Rule{Protocol: protocol, Destination: local, Port: 53, Jump: chainDNS})
	}
	return dns, jumps
}

// String returns the rule as iptables-save would print it: the notation that operators know from logs.
func (r Rule) String() string {
	var b strings.Builder
	if r.Destination.IsValid() {
		fmt.Fprintf(&b, "-d %s ", r.Destination)
	}
	if r.Protocol != "" {
		fmt.Fprintf(&b, "-p %s ", r.Protocol)
	}
	if r.Port != 0 {
		fmt.Fprintf(&b, "--dport %d ", r.Port)
	}
	if r.UIDs != nil {
		fmt.Fprintf(&b, "-m owner --uid-owner %s ", r.UIDs)
	}
	switch {
	case r.Jump != "":
		fmt.Fprintf(&b, "-j %s", r.Jump)
	case r.Redirect != 0:
		fmt.Fprintf(&b, "-j REDIRECT --to-ports %d", r.Redirect)
	case r.To.IsValid():
		fmt.Fprintf(&b, "-j DNAT --to-destination %s", r.To)
	default:
		b.WriteString("-j RETURN")
	}
	return b.String()
}

// Lines returns the chains and rules, one a line, as Rule.String prints them.
func (t Table) Lines() []string {
	var lines []string
	for _, chain := range t.Chains {
		lines = append(lines, ":"+chain.Name)
		for _, rule := range chain.Rules {
			lines = append(lines, fmt.Sprintf("-A %s %s", chain.Name, rule))
		}
	}
	return lines
}
