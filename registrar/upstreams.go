package registrar

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/workload"
)

// UnknownUpstream is an upstream whose name no service has.
type UnknownUpstream struct {
	Name string
	// Near is the service that is probably meant; empty when no name is similar.
	Near string
}

// UnknownUpstreams returns the upstreams of the workload that no service has the name of, and no service-router,
// service-splitter or service-resolver leads elsewhere. The token needs service:read for them. Prepared queries and
// services of cluster peers are left out. It asks once for each upstream that is unknown, otherwise once in all.
func UnknownUpstreams(
	ctx context.Context, client *api.Client, token string, w workload.Workload,
) (unknown []UnknownUpstream, err error) {
	type location struct{ datacenter, namespace, partition string }
	services := map[location][]string{}
	for _, u := range w.Proxy.Upstreams {
		if u.DestinationPeer != "" || u.DestinationType == string(api.UpstreamDestTypePreparedQuery) {
			continue
		}
		at := location{u.Datacenter, cmp.Or(u.DestinationNamespace, w.Namespace),
			cmp.Or(u.DestinationPartition, w.Partition)}
		services[at] = append(services[at], u.DestinationName)
	}
	for at, names := range services {
		q := (&api.QueryOptions{Datacenter: at.datacenter, Namespace: at.namespace, Partition: at.partition,
			Token: token, AllowStale: true}).WithContext(ctx)
		known, _, err := client.Catalog().Services(q)
		if err != nil {
			return nil, fmt.Errorf("list services: %w", err)
		}
		for _, name := range names {
			if _, ok := known[name]; ok {
				continue
			}
			answer, _, err := client.DiscoveryChain().Get(name, nil, q)
			if err != nil {
				return nil, fmt.Errorf("read the discovery chain of %q: %w", name, err)
			}
			if answer.Chain.Default {
				near := config.Nearest(name, slices.Sorted(maps.Keys(known)))
				unknown = append(unknown, UnknownUpstream{name, near})
			}
		}
	}
	slices.SortFunc(unknown, func(a, b UnknownUpstream) int { return cmp.Compare(a.Name, b.Name) })
	return unknown, nil
}
