package consulutil

import (
	"context"
	"fmt"

	"github.com/hashicorp/consul/api"
)

// DeregisterNode takes the node with that ID out of the catalog, with all of
// its services and checks. A catalog that does not have it is a success. The
// secret's token needs node:write, or it sees no node.
func DeregisterNode(ctx context.Context, c *api.Client, id, partition, secret string) error {
	read := (&api.QueryOptions{Token: secret, Partition: partition, Filter: fmt.Sprintf("ID == %q", id)}).WithContext(ctx)
	nodes, _, err := c.Catalog().Nodes(read)
	if err != nil {
		return fmt.Errorf("find node %s: %w", id, err)
	}
	write := (&api.WriteOptions{Token: secret, Partition: partition}).WithContext(ctx)
	for _, n := range nodes {
		if _, err := c.Catalog().Deregister(&api.CatalogDeregistration{Node: n.Node, Partition: partition}, write); err != nil {
			return fmt.Errorf("deregister node %s: %w", n.Node, err)
		}
	}
	return nil
}
