package scenario

import (
	"context"
	"errors"

	"github.com/meshtask/consul-ecs/localecs/infra"
	"github.com/meshtask/consul-ecs/localecs/scenario/disturbance"
	"github.com/meshtask/consul-ecs/localecs/scenario/server"
)

// disturbed carries out the steps under the faults of the file and its steps, and
// waits until the server takes writes again: the checks ask it.
func (r *runner) disturbed(ctx context.Context, consul *infra.Running) error {
	acts := disturbance.Acts{Cluster: r.cluster, Tasks: r.tasks, Server: consul, Seed: r.file.Seed}
	r.mu.Lock() // somebody may be looking on
	r.faults = disturbance.New(acts.Begin, r.faultTold)
	r.mu.Unlock()
	steps, release := r.live.Until(ctx)
	defer release()
	err := r.steps(steps)
	never := r.faults.End()
	if err != nil {
		return err
	}
	for _, f := range never {
		r.fail("fault at %s: %s: the last step was done before", f.At, f)
	}
	return server.AwaitLeader(ctx, r.look.Client, consul)
}

// faultTold tells that a fault has begun or is over, and notes one that was not
// made: what follows proves nothing then.
func (r *runner) faultTold(e disturbance.Event) {
	if e.Err != nil && !(r.file.Checks.FaultsMayMiss && errors.Is(e.Err, disturbance.ErrMissed)) {
		r.fail("fault at %s: %s: %v", e.Fault.At, e.Fault, e.Err)
	}
	r.tell(e.Told())
}
