package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// Drain deletes all services, stops all tasks as StopTask does and waits until they have been
// released, or the context ends. Tasks that are started meanwhile are stopped, too. None waits for the agent's poll.
func (r *Region) Drain(ctx context.Context, reason string) error {
	r.launcher.cluster.draining.Store(true)
	var errs []error
	for _, s := range r.Plane().Services(time.Now()) {
		_, err := r.Plane().DeleteService(r.Call(), shapes.DeleteServiceInput{Cluster: s.ClusterARN,
			Service: s.ServiceName, Force: true})
		errs = append(errs, err)
	}
	for {
		running := r.launcher.open()
		for _, s := range running {
			_, err := r.Plane().StopTask(r.Call(), shapes.StopTaskInput{Cluster: s.launch.Cluster, Task: s.launch.ID,
				Reason: reason})
			errs = append(errs, err)
			if t := r.launcher.task(s.launch.ID); t != nil && t.View().DesiredStatus == shapes.Stopped {
				t.stop("", "") // again, if it stops since before
			}
		}
		for _, s := range running {
			select {
			case <-s.done:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if len(running) == 0 {
			return errors.Join(errs...)
		}
	}
}
