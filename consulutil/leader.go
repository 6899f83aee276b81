package consulutil

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/consul/api"
)

// HasLeader returns nil when the agent has joined a cluster that has a leader. It
// needs no token.
func HasLeader(ctx context.Context, c *api.Client) error {
	leader, err := c.Status().LeaderWithQueryOptions((&api.QueryOptions{}).WithContext(ctx))
	if err == nil && leader == "" {
		err = errors.New("no cluster leader")
	}
	if err != nil {
		return fmt.Errorf("read the leader: %w", err)
	}
	return nil
}
