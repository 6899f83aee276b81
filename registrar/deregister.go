package registrar

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/consul/api"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/workload"
)

// DeregisterAtServers takes the workload's proxy and service out of the servers'
// catalog, with their checks. A catalog that does not have them is a success. The
// secret's token needs service:write for both and node:read: it has them with
// the service's identity.
func DeregisterAtServers(ctx context.Context, c *api.Client, w workload.Workload, secret string) error {
	return errors.Join(
		deregisterService(ctx, c, w, w.Proxy.Name, w.Proxy.ID, secret),
		deregisterService(ctx, c, w, w.Name, w.ID, secret),
	)
}

func deregisterService(ctx context.Context, c *api.Client, w workload.Workload, name, id, secret string) error {
	read := query(ctx, secret, w)
	read.Filter = fmt.Sprintf("ServiceID == %q", id)
	found, meta, err := c.Catalog().Service(name, "", read)
	switch {
	case err != nil:
		return fmt.Errorf("find service %s: %w", id, err)
	case len(found) == 0 && meta.ResultsFilteredByACLs:
		return &retry.PermanentError{Err: fmt.Errorf(
			`find service %s: results filtered by ACLs; grant the token node_prefix "" { policy = "read" }`, id)}
	}
	for _, s := range found {
		w.Node = s.Node
		if err := deregister(ctx, c, secret, w, api.CatalogDeregistration{ServiceID: id}); err != nil {
			return fmt.Errorf("deregister service %s on node %s: %w", id, s.Node, err)
		}
	}
	return nil
}
