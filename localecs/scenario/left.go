package scenario

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/localecs/chaos"
)

const (
	// lookEvery is how often Consul is asked what it holds of stopped tasks.
	lookEvery = time.Second
	// lookLimit bounds one look: the server may be frozen.
	lookLimit = 3 * time.Second
)

// watchLeft looks again and again until ctx ends.
func (r *Recorder) watchLeft(ctx context.Context, client *api.Client) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		r.look(ctx, client)
	}
}

// look notes what is left now. What cannot be found out is asked next time.
func (r *Recorder) look(ctx context.Context, client *api.Client) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	stopped := r.stopped()
	if len(stopped) == 0 {
		return
	}
	found, err := Left(ctx, client, "", slices.Collect(maps.Keys(r.options.Methods)), r.options.Services)
	if err != nil {
		return
	}
	now := map[leftKey]bool{}
	for name, t := range stopped {
		for _, l := range found {
			if l.Of(t.id) {
				now[leftKey{name, r.what(l), l.String()}] = true
			}
		}
		agent, err := Agent(ctx, client, t.address)
		if err != nil {
			return
		}
		if agent.State != AgentLeft && agent.State != AgentUnknown {
			now[leftKey{name, chaos.AgentFails, agent.String()}] = true
		}
	}
	r.noteLeft(time.Now(), now)
}

func (r *Recorder) what(l Leftover) chaos.What {
	if l.Token != "" {
		return r.options.Methods[l.Method]
	}
	return chaos.Service
}

func (r *Recorder) noteLeft(at time.Time, now map[leftKey]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range now {
		if l := r.left[key]; l == nil || !l.gone.IsZero() {
			r.left[key] = &leftover{}
		}
	}
	for key, l := range r.left {
		if !now[key] && l.gone.IsZero() {
			l.gone = at
		}
	}
}

// stopped are the tasks that have.
func (r *Recorder) stopped() map[string]recordedTask {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := map[string]recordedTask{}
	for name, t := range r.tasks {
		if !t.stopped.IsZero() {
			found[name] = *t
		}
	}
	return found
}

// settleMinimum is enough for a look that has begun after the last task's end.
const settleMinimum = lookLimit + 2*lookEvery

// Settle waits, after the last step, until nothing is left of tasks that have
// stopped but what stays, or the bound has passed.
func (r *Recorder) Settle(ctx context.Context) {
	begun := time.Now()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for time.Since(begun) < max(settleMinimum, r.patience()) {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// patience is how long what is left may take to go; 0 when nothing will.
func (r *Recorder) patience() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var most time.Duration
	for key, l := range r.left {
		if !l.gone.IsZero() || r.options.Stays(key.task, key.what) {
			continue
		}
		most = max(most, chaos.Bound(key.what)+2*lookEvery)
	}
	return most
}
