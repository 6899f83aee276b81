package redirect

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/retry"
)

// NameUpstreams gives every upstream without LocalBindAddress its own one, by its
// position: 127.65.0.1 is the first. So all can have the port that the application
// expects. The lines for a hosts file give each address the destination's name and,
// where Consul DNS would have one, its name there. The error is permanent.
func NameUpstreams(upstreams []config.Upstream) (addressed []config.Upstream, hosts []string, err error) {
	addressed = slices.Clone(upstreams)
	named := map[string]int{}
	for i := range addressed {
		u := &addressed[i]
		if first, twice := named[u.DestinationName]; twice {
			return nil, nil, notNamed(i, "proxy.upstreams[%d] has the same destinationName %q: only one of them can "+
				"have the name", first, u.DestinationName)
		}
		named[u.DestinationName] = i
		if strings.ContainsAny(u.DestinationName, " \t\r\n#") {
			return nil, nil, notNamed(i, "destinationName %q cannot be a name in a hosts file", u.DestinationName)
		}
		if u.LocalBindAddress == "" {
			u.LocalBindAddress = netip.AddrFrom4([4]byte{127, 65, byte((i + 1) >> 8), byte(i + 1)}).String()
		} else if _, err := netip.ParseAddr(u.LocalBindAddress); err != nil {
			return nil, nil, notNamed(i, "localBindAddress %q is not an IP address", u.LocalBindAddress)
		}
		hosts = append(hosts, u.LocalBindAddress+" "+strings.Join(names(*u), " "))
	}
	return addressed, hosts, nil
}

func notNamed(i int, format string, args ...any) error {
	return &retry.PermanentError{
		Err: exit.Usagef("proxy.namedUpstreams: proxy.upstreams[%d]: %s", i, fmt.Sprintf(format, args...)),
	}
}

// names returns the names of an upstream. It has the virtual name only for a service where the task is: for others,
// Consul's name depends on the edition and on the task's own namespace and partition.
func names(u config.Upstream) []string {
	local := u.Datacenter == "" && u.DestinationPeer == "" && u.DestinationNamespace == "" &&
		u.DestinationPartition == ""
	if local && u.DestinationType != "prepared_query" {
		return []string{u.DestinationName, u.DestinationName + ".virtual.consul"}
	}
	return []string{u.DestinationName}
}
