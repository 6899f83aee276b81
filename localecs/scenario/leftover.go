package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/localecs/chaos"
	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// leftover is something that Consul still holds of a task.
type leftover struct {
	// Token is a login token's accessor ID and Method its auth method, or Service
	// is a service's ID, or Agent is an agent's name and State its state.
	Token, Method, Service, Agent, State string
	// of has the task's ID in it.
	of string
}

// Of reports whether it belongs to the task.
func (l leftover) Of(taskID string) bool { return hasTask(l.of, taskID) }

// String names it.
func (l leftover) String() string {
	switch {
	case l.Token != "":
		return fmt.Sprintf("token %s of %s", l.Token, l.Method)
	case l.Agent != "":
		return fmt.Sprintf("agent %s, which is %s", l.Agent, l.State)
	}
	return "service " + l.Service
}

// sum counts leftovers in a few words, without failed agents: these remain.
func sum(all []leftover) string {
	tokens, services, agents := 0, 0, 0
	for _, l := range all {
		switch {
		case l.Token != "":
			tokens++
		case l.Service != "":
			services++
		case l.State != agentFailed:
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

// consistent returns options for a read that waits until the server has caught up:
// one that was killed shows its past while it starts again.
func consistent() *api.QueryOptions { return &api.QueryOptions{RequireConsistent: true} }

// hasTask reports whether a text of Consul, an ID or a token's description, belongs
// to the task.
func hasTask(text, taskID string) bool { return strings.Contains(text, taskID) }

// States of an agent, as the server has them by gossip.
const (
	agentUnknown = "unknown"
	agentAlive   = "alive"
	agentLeaving = "leaving"
	agentLeft    = "left"
	agentFailed  = "failed"
)

func agentAt(address string, members []*api.AgentMember) leftover {
	found := leftover{Agent: "at " + address, State: agentUnknown}
	for _, m := range members {
		if m.Addr == address && (found.State == agentUnknown || found.State == agentLeft) {
			found = leftover{Agent: m.Name, State: stateOf(m.Status)}
		}
	}
	return found
}

// stateOf returns a state by its number in the API.
func stateOf(status int) string {
	states := [...]string{agentUnknown, agentAlive, agentLeaving, agentLeft, agentFailed}
	if status < 0 || status >= len(states) {
		return agentUnknown
	}
	return states[status]
}

// ConsulQuery asks a server what it holds, one query at a time.
type ConsulQuery struct {
	Client *api.Client
	// Checks select what is looked for.
	Checks file.Checks
}

// wanted reports whether anything is looked for of a task, with an agent or without.
func (l ConsulQuery) wanted(hasAgent bool) bool {
	return len(l.Checks.NoTokensOf) > 0 || len(l.Checks.NoServices) > 0 || l.Checks.AgentsLeft && hasAgent
}

// left returns what Consul still holds of a task: services and login tokens. An empty
// taskID means of any task.
func (l ConsulQuery) left(ctx context.Context, taskID string) (found []leftover, err error) {
	ctx, cancel := context.WithTimeout(ctx, chaos.TokenBound)
	defer cancel()
	q := consistent().WithContext(ctx)
	tokens, _, err := l.Client.ACL().TokenList(q)
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	for _, t := range tokens {
		if slices.ContainsFunc(l.Checks.NoTokensOf, func(m string) bool {
			return aclrules.SameName(m, t.AuthMethod)
		}) && hasTask(t.Description, taskID) {
			found = append(found, leftover{Token: t.AccessorID, Method: t.AuthMethod, of: t.Description})
		}
	}
	for _, name := range l.Checks.NoServices {
		instances, _, err := l.Client.Catalog().Service(name, "", q)
		if err != nil {
			return nil, fmt.Errorf("list service %s: %w", name, err)
		}
		for _, s := range instances {
			if hasTask(s.ServiceID, taskID) {
				found = append(found, leftover{Service: s.ServiceID, of: s.ServiceID})
			}
		}
	}
	return found, nil
}

// agent returns the agent at an address as the server knows it: its name and state. Of
// several it is one that has not left. One that the server does not know is
// agentUnknown, and named after its address.
func (l ConsulQuery) agent(ctx context.Context, address string) (leftover, error) {
	ctx, cancel := context.WithTimeout(ctx, chaos.TokenBound)
	defer cancel()
	var members []*api.AgentMember
	if _, err := l.Client.Raw().Query("/v1/agent/members", &members,
		(&api.QueryOptions{}).WithContext(ctx)); err != nil {
		return leftover{}, fmt.Errorf("list agents: %w", err)
	}
	return agentAt(address, members), nil
}

// leftBy returns what is left of a task, including its agent, if that has not left.
func (l ConsulQuery) leftBy(ctx context.Context, task *cluster.Task, hasAgent bool) ([]leftover, error) {
	found, err := l.left(ctx, task.ID())
	if err != nil || !l.Checks.AgentsLeft || !hasAgent {
		return found, err
	}
	agent, err := l.agent(ctx, task.IP())
	if err == nil && agent.State != agentLeft {
		found = append(found, agent)
	}
	return found, err
}

// limit returns how long something may remain of a stopped task.
func limit(rest []leftover) time.Duration {
	token := func(l leftover) bool { return l.Token != "" }
	failed := func(l leftover) bool { return l.State == agentFailed }
	switch {
	case len(rest) == 0 || slices.ContainsFunc(rest, token):
		return chaos.TokenBound
	case slices.ContainsFunc(rest, failed):
		return chaos.AgentBound
	}
	return chaos.ServiceBound
}

// still describes what remains after a time, or why that is not known.
func still(took time.Duration, rest []leftover, err error) string {
	what := joinLeftovers(rest)
	if err != nil {
		what = err.Error()
	}
	return fmt.Sprintf("still in Consul after %s: %s", took.Round(time.Second), what)
}

// splitDeclared separates the failed agent, if a step declares a reason for it, from everything else.
func splitDeclared(found []leftover, agentFails string) (declared, rest []leftover) {
	for _, l := range found {
		if l.State == agentFailed && agentFails != "" {
			declared = append(declared, l)
		} else {
			rest = append(rest, l)
		}
	}
	return declared, rest
}

func joinLeftovers(all []leftover) string {
	names := make([]string, len(all))
	for i, l := range all {
		names[i] = l.String()
	}
	return strings.Join(names, ", ")
}
