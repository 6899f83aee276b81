package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/consul/api"
)

// Leftover is something that Consul still holds of a task.
type Leftover struct {
	// Token is a login token's accessor ID and Method its auth method, or Service
	// is a service's ID, or Agent is an agent's name and State its state.
	Token, Method, Service, Agent, State string
	// of has the task's ID in it.
	of string
}

// Of reports whether it is that task's.
func (l Leftover) Of(taskID string) bool { return HasTask(l.of, taskID) }

// String names it.
func (l Leftover) String() string {
	switch {
	case l.Token != "":
		return fmt.Sprintf("token %s of %s", l.Token, l.Method)
	case l.Agent != "":
		return fmt.Sprintf("agent %s, which is %s", l.Agent, l.State)
	}
	return "service " + l.Service
}

// Sum says in a few words how much that is, without agents that are failed: these
// stay.
func Sum(all []Leftover) string {
	tokens, services, agents := 0, 0, 0
	for _, l := range all {
		switch {
		case l.Token != "":
			tokens++
		case l.Service != "":
			services++
		case l.State != AgentFailed:
			agents++
		}
	}
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{{tokens, "token"}, {services, "service"}, {agents, "agent"}} {
		switch {
		case part.n == 1:
			parts = append(parts, "1 "+part.what)
		case part.n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", part.n, part.what))
		}
	}
	return strings.Join(parts, ", ")
}

// Left lists what Consul still holds of a task: services and login tokens. An
// empty taskID means of any task: then only the given services and methods
// count.
func Left(ctx context.Context, client *api.Client, taskID string, methods, services []string) ([]Leftover, error) {
	q := consistent().WithContext(ctx)
	var found []Leftover
	tokens, _, err := client.ACL().TokenList(q)
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	for _, t := range tokens {
		if slices.Contains(methods, t.AuthMethod) && HasTask(t.Description, taskID) {
			found = append(found, Leftover{Token: t.AccessorID, Method: t.AuthMethod, of: t.Description})
		}
	}
	for _, name := range services {
		instances, _, err := client.Catalog().Service(name, "", q)
		if err != nil {
			return nil, fmt.Errorf("list service %s: %w", name, err)
		}
		for _, s := range instances {
			if HasTask(s.ServiceID, taskID) {
				found = append(found, Leftover{Service: s.ServiceID, of: s.ServiceID})
			}
		}
	}
	return found, nil
}

// consistent reads wait until the server has caught up: one that was killed shows
// its past while it starts again.
func consistent() *api.QueryOptions { return &api.QueryOptions{RequireConsistent: true} }

// HasTask reports whether a text of Consul, an ID or a token's description, belongs
// to the task.
func HasTask(text, taskID string) bool { return strings.Contains(text, taskID) }
