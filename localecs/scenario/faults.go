package scenario

import (
	"context"
	"errors"

	"github.com/meshtask/consul-ecs/localecs/cluster"
)

// disturbed carries out the steps under the faults of the file and its steps, and
// waits until the server takes writes again: the checks ask it.
func (r *runner) disturbed(ctx context.Context, consul *cluster.Running) error {
	acts := Acts{Cluster: r.cluster, Tasks: r.tasks, Server: consul, Seed: r.file.Seed}
	r.mu.Lock() // somebody may be looking on
	r.faults = NewSchedule(acts.Begin, r.faultTold)
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
	return AwaitLeader(ctx, r.look.Client, consul)
}

// faultTold tells that a fault has begun or is over, and notes one that was not
// made: what follows proves nothing then.
func (r *runner) faultTold(e FaultEvent) {
	if e.Err != nil && !(r.file.Checks.FaultsMayMiss && errors.Is(e.Err, ErrMissed)) {
		r.fail("fault at %s: %s: %v", e.Fault.At, e.Fault, e.Err)
	}
	r.tell(e.Told())
}
