package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/scenario/progress"
	"github.com/meshtask/consul-ecs/localecs/scenario/report"
	"github.com/meshtask/consul-ecs/localecs/scenario/server"
)

// How long something of a stopped task may be left in Consul. It takes tens of
// milliseconds, but services come back when their token still works: the agent
// that leaves writes the listener's check once more, after the server has
// forgotten its node. The server looks for such nodes every 60 s (Consul's
// ReconcileInterval).
const (
	tokenLimit   = 15 * time.Second
	serviceLimit = 75 * time.Second
)

// cleared waits until nothing of a stopped task is left in Consul but what its
// step says: leaves has the auth methods whose tokens stay, and why.
func (r *runner) cleared(ctx context.Context, name string, leaves map[string]string) error {
	since := time.Now()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		found, err := r.leftOf(ctx, r.tasks[name].task.ID())
		told, rest := foretold(found, leaves)
		switch took := time.Since(since); {
		case err == nil && len(rest) == 0 && len(leaves) == 0:
			r.leftNothing(name)
			return nil
		case err == nil && len(rest) == 0:
			return r.leftTokens(name, told, leaves)
		case ctx.Err() != nil:
			return fmt.Errorf("%s (%w)", still(took, rest, err), context.Cause(ctx))
		case took > limitOf(rest):
			return errors.New(still(took, rest, err))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// leftOf asks once; an answer takes milliseconds.
func (r *runner) leftOf(ctx context.Context, taskID string) ([]server.Leftover, error) {
	ctx, cancel := context.WithTimeout(ctx, tokenLimit)
	defer cancel()
	return server.Left(ctx, r.client, taskID, r.file.Checks.NoTokensOf, r.file.Checks.NoServices)
}

// limitOf is how long that may be left.
func limitOf(rest []server.Leftover) time.Duration {
	if len(rest) == 0 || slices.ContainsFunc(rest, func(l server.Leftover) bool { return l.Token != "" }) {
		return tokenLimit
	}
	return serviceLimit
}

// still says what is left after a while, or why that is not known.
func still(took time.Duration, rest []server.Leftover, err error) string {
	what := list(rest)
	if err != nil {
		what = err.Error()
	}
	return fmt.Sprintf("still in Consul after %s: %s", took.Round(time.Second), what)
}

// foretold parts the tokens that may stay from everything else.
func foretold(found []server.Leftover, leaves map[string]string) (told, rest []server.Leftover) {
	for _, l := range found {
		if leaves[l.Method] != "" {
			told = append(told, l)
		} else {
			rest = append(rest, l)
		}
	}
	return told, rest
}

func list(all []server.Leftover) string {
	names := make([]string, len(all))
	for i, l := range all {
		names[i] = l.String()
	}
	return strings.Join(names, ", ")
}

func (r *runner) leftNothing(name string) {
	now := time.Now()
	r.mu.Lock()
	r.tasks[name].moments.LeftNothing(now)
	r.mu.Unlock()
	r.tell(progress.Event{Time: now, Kind: progress.Cleared, Task: name, Text: "nothing left of the task"})
}

// leftTokens tells of the tokens that stay. They have to be there: what a step
// says is exact.
func (r *runner) leftTokens(name string, tokens []server.Leftover, leaves map[string]string) error {
	for _, method := range slices.Sorted(maps.Keys(leaves)) {
		if !slices.ContainsFunc(tokens, func(l server.Leftover) bool { return l.Method == method }) {
			return fmt.Errorf("no token of %s is left of it, but the step says that one is: %s", method, leaves[method])
		}
	}
	for _, token := range tokens {
		l := report.Leftover{Task: name, What: token.String(), Reason: leaves[token.Method]}
		r.mu.Lock() // tasks may be stopped side by side
		r.left = append(r.left, l)
		r.mu.Unlock()
		r.tell(progress.Event{Kind: progress.Left, Task: name, Detail: l.Reason, Text: "left: " + l.String()})
	}
	return nil
}

// surprises are what Consul still holds at the end and no step has foretold.
func (r *runner) surprises(ctx context.Context) ([]server.Leftover, error) {
	found, err := r.leftOf(ctx, "")
	return slices.DeleteFunc(found, r.told), err
}

// told says whether a step has foretold it.
func (r *runner) told(l server.Leftover) bool {
	return slices.ContainsFunc(r.left, func(known report.Leftover) bool { return known.What == l.String() })
}
