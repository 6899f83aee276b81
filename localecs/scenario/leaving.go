package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/localecs/view"
)

// slow is how long a task takes at most to clear up, if all works.
const slow = 300 * time.Millisecond

// cleared waits until nothing of a stopped task is left in Consul but what its
// step declares, unless an observer judges that.
func (r *runner) cleared(ctx context.Context, name string, leaves file.Leaves) error {
	r.tasks.Change(name, func(t *Task) { t.Judged = true })
	if r.observer != nil {
		return nil
	}
	t := r.tasks.Task(name)
	since, remains, patience := time.Now(), "", slow
	if t.Dead() {
		patience = 0 // nothing in it can clear up
	}
	for {
		found, err := r.look.leftBy(ctx, t.Task, t.HasAgent())
		declared, rest := splitDeclared(found, leaves)
		switch took := time.Since(since); {
		case err == nil && len(rest) == 0:
			return r.reportRemaining(name, declared, leaves)
		case ctx.Err() != nil:
			return fmt.Errorf("%s (%w)", still(took, rest, err), context.Cause(ctx))
		case took > limit(rest):
			return errors.New(still(took, rest, err))
		}
		if text := sum(rest); err == nil && text != remains && time.Since(since) > patience {
			remains = text
			r.emit(Event{Kind: KindRemains, Task: name, Text: "still there: " + text})
		}
		_ = retry.Sleep(ctx, 50*time.Millisecond)
	}
}

func (r *runner) leftNothing(name string) {
	hasAgent := r.tasks.Task(name).HasAgent()
	if !r.look.wanted(hasAgent) {
		return
	}
	text := "nothing left of the task"
	if r.look.Checks.AgentsLeft && hasAgent {
		text += ", its agent has left"
	}
	r.emit(Event{Kind: view.KindCleared, Task: name, Text: text})
}

// reportRemaining reports what remains as declared. All of it has to remain: a step
// is exact.
func (r *runner) reportRemaining(name string, stays []leftover, leaves file.Leaves) error {
	if len(leaves.Tokens) == 0 && leaves.Agent == "" {
		r.leftNothing(name)
		return nil
	}
	for _, method := range slices.Sorted(maps.Keys(leaves.Tokens)) {
		if !slices.ContainsFunc(stays, func(l leftover) bool { return l.Method == method }) {
			return fmt.Errorf("no token of %s is left of it, but its step declares one: %s", method, leaves.Tokens[method])
		}
	}
	if leaves.Agent != "" && !slices.ContainsFunc(stays, func(l leftover) bool { return l.Agent != "" }) {
		return fmt.Errorf("its agent has left, but its step declares that it fails: %s", leaves.Agent)
	}
	for _, s := range stays {
		l := ReportedLeftover{Task: name, What: s.String(), Reason: reason(s, leaves)}
		r.mu.Lock() // tasks may be stopped side by side
		r.left = append(r.left, l)
		r.mu.Unlock()
		r.emit(Event{Kind: KindLeft, Task: name, Detail: l.Reason, Text: "left: " + l.String()})
	}
	return nil
}

// Unexpected returns what Consul still holds at the end and no step has declared.
func (r *runner) unexpected(ctx context.Context) ([]leftover, error) {
	found, err := r.look.left(ctx, "")
	r.mu.Lock()
	declared := slices.Clone(r.left)
	r.mu.Unlock()
	return slices.DeleteFunc(found, func(l leftover) bool {
		return slices.ContainsFunc(declared, func(known ReportedLeftover) bool { return known.What == l.String() })
	}), err
}
