package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// Drain deletes all services, stops all tasks as StopTask does and waits until they have been
// released, or the context ends. Tasks that are started meanwhile are stopped, too.
func (r *Region) Drain(ctx context.Context, reason string) error {
	var errs []error
	for _, s := range r.Plane().Services(time.Now()) {
		in := shapes.DeleteServiceInput{Cluster: s.ClusterARN, Service: s.ServiceName, Force: true}
		_, err := r.Plane().DeleteService(r.Call(), in)
		errs = append(errs, err)
	}
	for {
		running := r.launcher.open()
		if len(running) == 0 {
			return errors.Join(errs...)
		}
		for _, s := range running {
			in := shapes.StopTaskInput{Cluster: s.launch.Cluster, Task: s.launch.ID, Reason: reason}
			_, err := r.Plane().StopTask(r.Call(), in)
			errs = append(errs, err)
		}
		for _, s := range running {
			select {
			case <-s.done:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}
