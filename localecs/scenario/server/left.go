package server

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/consul/api"
)

// Left lists what Consul still holds of a task: services and login tokens. An
// empty taskID means of any task: then only the given services and methods
// count.
func Left(ctx context.Context, client *api.Client, taskID string, methods, services []string) ([]string, error) {
	q := (&api.QueryOptions{}).WithContext(ctx)
	var found []string
	tokens, _, err := client.ACL().TokenList(q)
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	for _, t := range tokens {
		if slices.Contains(methods, t.AuthMethod) && strings.Contains(t.Description, taskID) {
			found = append(found, fmt.Sprintf("token %s of %s", t.AccessorID, t.AuthMethod))
		}
	}
	for _, name := range services {
		instances, _, err := client.Catalog().Service(name, "", q)
		if err != nil {
			return nil, fmt.Errorf("list service %s: %w", name, err)
		}
		for _, s := range instances {
			if HasTask(s.ServiceID, taskID) {
				found = append(found, "service "+s.ServiceID)
			}
		}
	}
	return found, nil
}

// HasTask says whether a Consul ID belongs to the task.
func HasTask(id, taskID string) bool { return strings.Contains(id, taskID) }
