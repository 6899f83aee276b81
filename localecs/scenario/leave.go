package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/localecs/scenario/progress"
	"github.com/meshtask/consul-ecs/localecs/scenario/report"
	"github.com/meshtask/consul-ecs/localecs/scenario/roster"
	"github.com/meshtask/consul-ecs/localecs/scenario/server"
)

// slow is how long a task that clears up by itself takes at most.
const slow = 300 * time.Millisecond

// cleared waits until nothing of a stopped task is left in Consul but what its
// step says.
func (r *runner) cleared(ctx context.Context, name string, leaves file.Leaves) error {
	r.tasks.Change(name, func(t *roster.Task) { t.Judged = true })
	t := r.tasks.Task(name)
	if r.observer != nil {
		return nil
	}
	since, remains, patience := time.Now(), "", slow
	if t.Dead() {
		patience = 0 // nobody in it can clear up
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		found, err := r.look.LeftBy(ctx, t.Task, t.HasAgent())
		told, rest := server.Foretold(found, leaves)
		switch took := time.Since(since); {
		case err == nil && len(rest) == 0 && len(leaves.Tokens) == 0 && leaves.Agent == "":
			r.leftNothing(name)
			return nil
		case err == nil && len(rest) == 0:
			return r.leftAsTold(name, told, leaves)
		case ctx.Err() != nil:
			return fmt.Errorf("%s (%w)", server.Still(took, rest, err), context.Cause(ctx))
		case took > server.Limit(rest):
			return errors.New(server.Still(took, rest, err))
		}
		if text := server.Sum(rest); err == nil && text != remains && time.Since(since) > patience {
			remains = text
			r.tell(progress.Event{Kind: progress.Remains, Task: name, Text: "still there: " + text})
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

func (r *runner) leftNothing(name string) {
	now := time.Now()
	r.tasks.Change(name, func(t *roster.Task) { t.Moments.LeftNothing(now) })
	text := "nothing left of the task"
	if r.file.Checks.AgentsLeft && r.tasks.Task(name).HasAgent() {
		text += ", its agent has left"
	}
	r.tell(progress.Event{Time: now, Kind: progress.Cleared, Task: name, Text: text})
}

// leftAsTold tells of what stays. It has to be there: what a step says is exact.
func (r *runner) leftAsTold(name string, stays []server.Leftover, leaves file.Leaves) error {
	for _, method := range slices.Sorted(maps.Keys(leaves.Tokens)) {
		if !slices.ContainsFunc(stays, func(l server.Leftover) bool { return l.Method == method }) {
			return fmt.Errorf("no token of %s is left of it, but the step says that one is: %s", method, leaves.Tokens[method])
		}
	}
	if leaves.Agent != "" && !slices.ContainsFunc(stays, func(l server.Leftover) bool { return l.Agent != "" }) {
		return fmt.Errorf("its agent has left, but the step says that it fails: %s", leaves.Agent)
	}
	for _, s := range stays {
		l := report.Leftover{Task: name, What: s.String(), Reason: server.Reason(s, leaves)}
		r.mu.Lock() // tasks may be stopped side by side
		r.left = append(r.left, l)
		r.mu.Unlock()
		r.tell(progress.Event{Kind: progress.Left, Task: name, Detail: l.Reason, Text: "left: " + l.String()})
	}
	return nil
}

// surprises are what Consul still holds at the end and no step has foretold.
func (r *runner) surprises(ctx context.Context) ([]server.Leftover, error) {
	found, err := r.look.Left(ctx, "")
	return slices.DeleteFunc(found, r.told), err
}

// told says whether a step has foretold it.
func (r *runner) told(l server.Leftover) bool {
	return slices.ContainsFunc(r.left, func(known report.Leftover) bool { return known.What == l.String() })
}
