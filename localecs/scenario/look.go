package scenario

import (
	"context"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/localecs/chaos"
	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// Look asks a server what it still holds, each time once; an answer takes
// milliseconds.
type Look struct {
	Client *api.Client
	// Checks say what is looked for.
	Checks file.Checks
}

// Wanted reports whether anything is looked for of a task, with an agent or without.
func (l Look) Wanted(hasAgent bool) bool {
	return len(l.Checks.NoTokensOf) > 0 || len(l.Checks.NoServices) > 0 || l.Checks.AgentsLeft && hasAgent
}

// Left is what is left of a task, or of all when taskID is empty.
func (l Look) Left(ctx context.Context, taskID string) ([]Leftover, error) {
	ctx, cancel := context.WithTimeout(ctx, chaos.TokenBound)
	defer cancel()
	return Left(ctx, l.Client, taskID, l.Checks.NoTokensOf, l.Checks.NoServices)
}

// LeftBy is what is left of a task: also its agent, where it has one that has not
// left.
func (l Look) LeftBy(ctx context.Context, task *cluster.Task, hasAgent bool) ([]Leftover, error) {
	found, err := l.Left(ctx, task.ID())
	if err != nil || !l.Checks.AgentsLeft || !hasAgent {
		return found, err
	}
	agent, err := l.Agent(ctx, task)
	if err == nil && agent.State != AgentLeft {
		found = append(found, agent)
	}
	return found, err
}

// Agent is the task's agent.
func (l Look) Agent(ctx context.Context, task *cluster.Task) (Leftover, error) {
	ctx, cancel := context.WithTimeout(ctx, chaos.TokenBound)
	defer cancel()
	return Agent(ctx, l.Client, task.IP())
}
