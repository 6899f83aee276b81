package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/localecs/view"
)

// slow is how long a task takes at most to clear up, if all works.
const slow = 300 * time.Millisecond

// cleanup checks what stopped tasks leave in Consul.
type cleanup struct {
	look     ConsulQuery
	tasks    *TaskSet
	progress *progress
	observed bool // an observer judges what is left

	mu   sync.Mutex // tasks may be stopped side by side
	left []ReportedLeftover
}

// cleared waits until nothing of a stopped task is left in Consul but what its
// step declares, unless an observer judges that.
func (c *cleanup) cleared(ctx context.Context, name string, agentFails string) error {
	c.tasks.Change(name, func(t *Task) { t.Checked = true })
	if c.observed {
		return nil
	}
	t := c.tasks.Task(name)
	since, remains, patience := time.Now(), "", slow
	if t.Dead() {
		patience = 0 // nothing in it can clear up
	}
	for {
		found, err := c.look.leftBy(ctx, t.Task, t.HasAgent())
		declared, rest := splitDeclared(found, agentFails)
		switch took := time.Since(since); {
		case err == nil && len(rest) == 0:
			return c.reportRemaining(name, declared, agentFails)
		case ctx.Err() != nil:
			return fmt.Errorf("%s (%w)", still(took, rest, err), context.Cause(ctx))
		case took > limit(rest):
			return errors.New(still(took, rest, err))
		}
		if text := sum(rest); err == nil && text != remains && time.Since(since) > patience {
			remains = text
			c.progress.emit(Event{Kind: KindRemains, Task: name, Text: "still there: " + text})
		}
		_ = retry.Sleep(ctx, 50*time.Millisecond)
	}
}

func (c *cleanup) leftNothing(name string) {
	hasAgent := c.tasks.Task(name).HasAgent()
	if !c.look.wanted(hasAgent) {
		return
	}
	text := "nothing left of the task"
	if c.look.Checks.AgentsLeft && hasAgent {
		text += ", its agent has left"
	}
	c.progress.emit(Event{Kind: view.KindCleared, Task: name, Text: text})
}

// reportRemaining reports the failed agent that remains as declared. It has to: a step is exact.
func (c *cleanup) reportRemaining(name string, stays []leftover, agentFails string) error {
	if agentFails == "" {
		c.leftNothing(name)
		return nil
	}
	if len(stays) == 0 {
		return fmt.Errorf("its agent has left, but its step declares that it fails: %s", agentFails)
	}
	for _, s := range stays {
		l := ReportedLeftover{Task: name, What: s.String(), Reason: agentFails}
		c.mu.Lock()
		c.left = append(c.left, l)
		c.mu.Unlock()
		c.progress.emit(Event{Kind: KindLeft, Task: name, Detail: l.Reason, Text: "left: " + l.String()})
	}
	return nil
}

// unexpected returns what Consul still holds at the end and no step has declared.
func (c *cleanup) unexpected(ctx context.Context) ([]leftover, error) {
	found, err := c.look.left(ctx, "")
	c.mu.Lock()
	declared := slices.Clone(c.left)
	c.mu.Unlock()
	return slices.DeleteFunc(found, func(l leftover) bool {
		return slices.ContainsFunc(declared, func(known ReportedLeftover) bool { return known.What == l.String() })
	}), err
}

// checkAgents checks the agents of tasks whose end no step has awaited.
func (c *cleanup) checkAgents(ctx context.Context) {
	for _, t := range c.tasks.Started() {
		if !c.look.Checks.AgentsLeft || t.Checked || !t.HasAgent() {
			continue
		}
		agent, err := c.look.agent(ctx, t.IP())
		switch {
		case err != nil:
			c.progress.fail("%s: %v", t.Name, err)
		case agent.State != agentLeft:
			c.progress.fail("%s: %s", t.Name, agent)
		}
	}
}
