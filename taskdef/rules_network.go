package taskdef

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const maxPort = 65535

// portRules are about port mappings. One container port may have both protocols: the API
// reference says that ECS refuses that, but ECS registers it, and AWS has removed the sentence
// from the developer guide (awsdocs/amazon-ecs-developer-guide#128). What refuses it is
// CreateService, when a load balancer is attached to the port (aws/amazon-ecs-agent#3428).
var portRules = []Rule{
	{Code: "port-protocol", Severity: Warn, Members: []string{"containerDefinitions[*].portMappings[*].protocol"},
		Text: "Protocol '{protocol}' is registered as tcp.", Wording: Ours,
		Fix: "write tcp or udp; http is an appProtocol", task: func(d *subject, report report) {
			for i, c := range d.ContainerDefinitions {
				for j := range c.PortMappings {
					path := fmt.Sprintf("containerDefinitions[%d].portMappings[%d].protocol", i, j)
					if p := d.written[path]; p != "" && p != "tcp" && p != "udp" {
						report(path, p)
					}
				}
			}
		}},
	{Code: "port-container", Members: []string{".portMappings[*].containerPort", ".portMappings[*].containerPortRange"},
		Text: "Invalid 'containerPort' setting for container '{container}'.", Fix: "take 1 to 65535",
		each: eachMapping("containerPort", func(_ *subject, p PortMapping, report report) {
			if p.ContainerPort == nil && p.ContainerPortRange == "" || outside(p.ContainerPort, 1, maxPort) {
				report("")
			}
		})},
	{Code: "port-host", Members: []string{".portMappings[*].hostPort", ".portMappings[*].containerPort"},
		Text: "Invalid 'hostPort' setting for container '{container}'.", Wording: Ours,
		Fix: "take 1 to 65535", each: eachMapping("hostPort", func(_ *subject, p PortMapping, report report) {
			if same := p.ContainerPort != nil && p.HostPort != nil && *p.HostPort == *p.ContainerPort; !same &&
				outside(p.HostPort, 0, maxPort) {
				report("")
			}
		})},
	{Code: "port-range", Members: []string{".portMappings[*].containerPortRange"},
		Text: "Invalid 'containerPortRange' setting for container '{container}'.",
		Fix:  "write the lower port, '-' and the higher one",
		each: eachMapping("containerPortRange", func(_ *subject, p PortMapping, report report) {
			if low, high := p.Ports(); p.ContainerPortRange != "" && (low < 1 || high <= low || high > maxPort) {
				report("")
			}
		})},
	{Code: "port-range-network-mode", Members: []string{"networkMode", ".portMappings[*].containerPortRange"},
		Text: "Container port ranges are not supported when networkMode={mode}.", Wording: Ours,
		Fix: "write single ports, or take awsvpc or bridge",
		each: eachMapping("containerPortRange", func(d *subject, p PortMapping, report report) {
			if p.ContainerPortRange != "" && d.NetworkMode == "host" {
				report("", d.NetworkMode)
			}
		})},
	{Code: "port-network-mode", Members: []string{"networkMode", ".portMappings"},
		Text: "Port mappings are not supported when networkMode=none.", Wording: Ours,
		Fix: "remove it, or change networkMode", each: func(d *subject, c *Container, report report) {
			if len(c.PortMappings) > 0 && d.NetworkMode == "none" {
				report(".portMappings")
			}
		}},
	{Code: "port-name", Members: []string{".portMappings[*].name"},
		Text:    "Port mapping name '{name}' must be 1 to 64 characters of [a-z0-9_-] and not begin with '-'.",
		Wording: Ours, Fix: "rename it", each: eachMapping("name", func(_ *subject, p PortMapping, report report) {
			if len(p.Name) > 64 || !validCharacters(p.Name) || strings.ToLower(p.Name) != p.Name ||
				strings.HasPrefix(p.Name, "-") {
				report("", p.Name)
			}
		})},
	{Code: "port-and-range", Members: []string{".portMappings[*].containerPort", ".portMappings[*].containerPortRange"},
		Text: "Invalid port mapping for container '{container}', cannot specify both single port and port range.",
		Fix:  "remove one of them",
		each: eachMapping("", func(_ *subject, p PortMapping, report report) {
			if p.ContainerPort != nil && p.ContainerPortRange != "" {
				report("")
			}
		})},
	{Code: "port-match", Members: []string{"networkMode", ".portMappings[*].containerPort",
		".portMappings[*].hostPort"},
		Text: "When networkMode={mode}, the host ports and container ports in port mappings must match.",
		Fix:  "remove hostPort",
		each: eachMapping("hostPort", func(d *subject, p PortMapping, report report) {
			own := d.NetworkMode == "awsvpc" || d.NetworkMode == "host"
			if own && p.HostPort != nil && p.ContainerPort != nil && *p.HostPort != *p.ContainerPort {
				report("", d.NetworkMode)
			}
		})},
	{Code: "port-name-unique", Scope: OnAWSVPC, Members: []string{"containerDefinitions[*].portMappings[*].name"},
		Text: "When networkMode=awsvpc, port mapping name is already used", Fix: "rename one of the ports '{name}'",
		task: checkPortNames},
	{Code: "port-container-unique", Scope: OnAWSVPC, Members: portMembers,
		Text: "{protocol} container port '{port}' is used multiple times in task when networkMode=awsvpc.",
		Fix:  "the containers of a task share one address: change a port", task: checkPortsTwice},
	{Code: "port-range-unique", Members: portMembers,
		Text: "{protocol} container port '{port}' is used multiple times in container '{container}'.", Wording: Ours,
		Fix: "change a range", each: checkRangesTwice},
	{Code: "port-host-unique", Members: portMembers,
		Text: "{protocol} host port '{port}' is mapped multiple times in task.",
		Fix:  "change a hostPort, or remove it", task: func(d *subject, report report) {
			if d.NetworkMode != "awsvpc" {
				checkPortsTwice(d, report)
			}
		}},
}

var portMembers = []string{
	"networkMode", "containerDefinitions[*].portMappings[*].containerPort",
	"containerDefinitions[*].portMappings[*].hostPort",
	"containerDefinitions[*].portMappings[*].containerPortRange", "containerDefinitions[*].portMappings[*].protocol",
}

// eachMapping looks at the port mappings of a container; check reports a member.
func eachMapping(member string, check func(d *subject, p PortMapping,
	report report)) func(*subject, *Container, report) {
	return func(d *subject, c *Container, report report) {
		for i, p := range c.PortMappings {
			check(d, p, func(_ string, values ...any) {
				report(fmt.Sprintf(".portMappings[%d].%s", i, member), values...)
			})
		}
	}
}

// Ports returns the first and the last container port, 0 for one that is absent or no number.
func (p PortMapping) Ports() (low, high int) {
	if p.ContainerPortRange == "" {
		if p.ContainerPort == nil {
			return 0, 0
		}
		return *p.ContainerPort, *p.ContainerPort
	}
	first, last, _ := strings.Cut(p.ContainerPortRange, "-")
	low, _ = strconv.Atoi(first)
	high, _ = strconv.Atoi(last)
	return low, high
}

// taken returns the ports that a mapping takes of the address that the containers of a task share: none, as 0
// to 0, when the host chooses.
func (d *subject) taken(p PortMapping) (low, high int) {
	switch {
	case d.NetworkMode == "awsvpc", d.NetworkMode == "host":
		low, high = p.Ports()
	case p.HostPort != nil:
		low, high = *p.HostPort, *p.HostPort
	}
	if low < 1 || high > maxPort {
		return 0, 0
	}
	return low, high
}

func checkPortsTwice(d *subject, report report) {
	type port struct {
		protocol string
		number   int
	}
	taken := map[port]bool{}
	for i, c := range d.ContainerDefinitions {
		for j, p := range c.PortMappings {
			low, high := d.taken(p)
			for n := max(low, 1); n <= high; n++ {
				if taken[port{p.Protocol, n}] {
					report(fmt.Sprintf("containerDefinitions[%d].portMappings[%d]", i, j), strings.ToUpper(p.Protocol),
						n)
					break
				}
				taken[port{p.Protocol, n}] = true
			}
		}
	}
}

// checkRangesTwice finds ranges with ports that another mapping of the container has. With
// awsvpc it is port-container-unique, and the host chooses the ports of single mappings.
func checkRangesTwice(d *subject, c *Container, report report) {
	isRange := func(p PortMapping) bool { return p.ContainerPortRange != "" }
	if d.NetworkMode == "awsvpc" || !slices.ContainsFunc(c.PortMappings, isRange) {
		return
	}
	for i, p := range c.PortMappings {
		low, high := p.Ports()
		for _, other := range c.PortMappings[:i] {
			from, to := other.Ports()
			if (isRange(p) || isRange(other)) && p.Protocol == other.Protocol && from <= high && low <= to {
				report(fmt.Sprintf(".portMappings[%d]", i), strings.ToUpper(p.Protocol), max(low, from))
				break
			}
		}
	}
}

func checkPortNames(d *subject, report report) {
	taken := map[string]bool{}
	for i, c := range d.ContainerDefinitions {
		for j, p := range c.PortMappings {
			if p.Name != "" && taken[p.Name] {
				report(fmt.Sprintf("containerDefinitions[%d].portMappings[%d].name", i, j), p.Name)
			}
			taken[p.Name] = true
		}
	}
}

// awsvpcRules are about what a container cannot have in a network interface that
// it shares.
var awsvpcRules = []Rule{
	notAWSVPC("awsvpc-hostname", "hostname", "hostname is not supported on container when networkMode=awsvpc.", Exact,
		func(c *Container) bool { return c.Hostname != "" }),
	notAWSVPC("awsvpc-links", "links", "Links are not supported when networkMode=awsvpc.", Exact,
		func(c *Container) bool { return len(c.Links) > 0 }),
	notAWSVPC("awsvpc-extra-hosts", "extraHosts", "Extra hosts are not supported on container when networkMode=awsvpc.",
		Exact,
		func(c *Container) bool { return len(c.ExtraHosts) > 0 }),
	notAWSVPC("awsvpc-dns-servers", "dnsServers", "DNS servers are not supported on container when networkMode=awsvpc.",
		Exact,
		func(c *Container) bool { return len(c.DNSServers) > 0 }),
	notAWSVPC("awsvpc-dns-search-domains", "dnsSearchDomains",
		"DNS search domains are not supported on container when networkMode=awsvpc.", Ours,
		func(c *Container) bool { return len(c.DNSSearchDomains) > 0 }),
	notAWSVPC("awsvpc-disable-networking", "disableNetworking",
		"Disable Networking is not supported on container when networkMode=awsvpc.", Exact,
		func(c *Container) bool { return isTrue(c.DisableNetworking) }),
}

func notAWSVPC(code, member, text string, wording Wording, given func(c *Container) bool) Rule {
	return Rule{Code: code, Scope: OnAWSVPC, Members: []string{"." + member}, Text: text, Wording: wording,
		Fix: "remove it, or change networkMode",
		each: func(_ *subject, c *Container, report report) {
			if given(c) {
				report("." + member)
			}
		}}
}
