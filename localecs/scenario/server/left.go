package server

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

// Of says whether it is that task's.
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

// Left lists what Consul still holds of a task: services and login tokens. An
// empty taskID means of any task: then only the given services and methods
// count.
func Left(ctx context.Context, client *api.Client, taskID string, methods, services []string) ([]Leftover, error) {
	q := (&api.QueryOptions{}).WithContext(ctx)
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

// HasTask says whether a text of Consul, an ID or a token's description, belongs
// to the task.
func HasTask(text, taskID string) bool { return strings.Contains(text, taskID) }
