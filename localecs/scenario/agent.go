package scenario

import (
	"context"
	"fmt"

	"github.com/hashicorp/consul/api"
)

// States of an agent, as the server has them by gossip.
const (
	AgentUnknown = "unknown"
	AgentAlive   = "alive"
	AgentLeaving = "leaving"
	AgentLeft    = "left"
	AgentFailed  = "failed"
)

// Agent is what the server knows of the agent at an address: its name and its
// state. Of several it is one that has not left. One that the server has never
// heard of is AgentUnknown, and named after its address.
func Agent(ctx context.Context, client *api.Client, address string) (Leftover, error) {
	var members []*api.AgentMember
	q := (&api.QueryOptions{}).WithContext(ctx)
	if _, err := client.Raw().Query("/v1/agent/members", &members, q); err != nil {
		return Leftover{}, fmt.Errorf("list agents: %w", err)
	}
	return agentAt(address, members), nil
}

func agentAt(address string, members []*api.AgentMember) Leftover {
	found := Leftover{Agent: "at " + address, State: AgentUnknown}
	for _, m := range members {
		if m.Addr == address && (found.State == AgentUnknown || found.State == AgentLeft) {
			found = Leftover{Agent: m.Name, State: stateOf(m.Status)}
		}
	}
	return found
}

// stateOf is a state by its number in the API.
func stateOf(status int) string {
	switch status {
	case 1:
		return AgentAlive
	case 2:
		return AgentLeaving
	case 3:
		return AgentLeft
	case 4:
		return AgentFailed
	}
	return AgentUnknown
}
