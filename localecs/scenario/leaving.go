package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/localecs/view"
)

// slow is how long a task that clears up by itself takes at most.
const slow = 300 * time.Millisecond

// Watch is one run's look at what its tasks leave.
type Watch struct {
	Tasks *Roster
	Look  Look
	// Tell tells who follows the run.
	Tell func(Event)

	mu   sync.Mutex
	left []ReportedLeftover
}

// Left is what is left and a step has foretold.
func (w *Watch) Left() []ReportedLeftover {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.left)
}

// Cleared waits until nothing of a stopped task is left in Consul but what its
// step says.
func (w *Watch) Cleared(ctx context.Context, name string, leaves file.Leaves) error {
	t := w.Tasks.Task(name)
	since, remains, patience := time.Now(), "", slow
	if t.Dead() {
		patience = 0 // nobody in it can clear up
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		found, err := w.Look.LeftBy(ctx, t.Task, t.HasAgent())
		told, rest := Foretold(found, leaves)
		switch took := time.Since(since); {
		case err == nil && len(rest) == 0 && len(leaves.Tokens) == 0 && leaves.Agent == "":
			w.leftNothing(name)
			return nil
		case err == nil && len(rest) == 0:
			return w.leftAsTold(name, told, leaves)
		case ctx.Err() != nil:
			return fmt.Errorf("%s (%w)", Still(took, rest, err), context.Cause(ctx))
		case took > Limit(rest):
			return errors.New(Still(took, rest, err))
		}
		if text := Sum(rest); err == nil && text != remains && time.Since(since) > patience {
			remains = text
			w.Tell(Event{Kind: KindRemains, Task: name, Text: "still there: " + text})
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

func (w *Watch) leftNothing(name string) {
	hasAgent := w.Tasks.Task(name).HasAgent()
	if !w.Look.Wanted(hasAgent) {
		return
	}
	text := "nothing left of the task"
	if w.Look.Checks.AgentsLeft && hasAgent {
		text += ", its agent has left"
	}
	w.Tell(Event{Kind: view.KindCleared, Task: name, Text: text})
}

// leftAsTold tells of what stays. It has to be there: what a step says is exact.
func (w *Watch) leftAsTold(name string, stays []Leftover, leaves file.Leaves) error {
	for _, method := range slices.Sorted(maps.Keys(leaves.Tokens)) {
		if !slices.ContainsFunc(stays, func(l Leftover) bool { return l.Method == method }) {
			return fmt.Errorf("no token of %s is left of it, but the step says that one is: %s", method, leaves.Tokens[method])
		}
	}
	if leaves.Agent != "" && !slices.ContainsFunc(stays, func(l Leftover) bool { return l.Agent != "" }) {
		return fmt.Errorf("its agent has left, but the step says that it fails: %s", leaves.Agent)
	}
	for _, s := range stays {
		l := ReportedLeftover{Task: name, What: s.String(), Reason: Reason(s, leaves)}
		w.mu.Lock() // tasks may be stopped side by side
		w.left = append(w.left, l)
		w.mu.Unlock()
		w.Tell(Event{Kind: KindLeft, Task: name, Detail: l.Reason, Text: "left: " + l.String()})
	}
	return nil
}

// Surprises are what Consul still holds at the end and no step has foretold.
func (w *Watch) Surprises(ctx context.Context) ([]Leftover, error) {
	found, err := w.Look.Left(ctx, "")
	told := w.Left()
	return slices.DeleteFunc(found, func(l Leftover) bool {
		return slices.ContainsFunc(told, func(known ReportedLeftover) bool { return known.What == l.String() })
	}), err
}
