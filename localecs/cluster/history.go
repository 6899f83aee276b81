package cluster

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// How long a task that is over is remembered, as ECS does, and how many are.
const (
	remembered    = time.Hour
	maxRemembered = 200
)

func (l *launcher) note(start TaskStart) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.starts = append(kept(l.starts, start.At), start)
}

func (l *launcher) history(now time.Time) []TaskStart {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.starts = kept(l.starts, now)
	return slices.Clone(l.starts)
}

// kept leaves out what was over long ago, and the oldest of too many.
func kept(all []TaskStart, now time.Time) []TaskStart {
	over := 0
	for _, start := range all {
		if start.over() {
			over++
		}
	}
	return slices.DeleteFunc(all, func(start TaskStart) bool {
		if !start.over() {
			return false
		}
		over--
		return over >= maxRemembered || now.Sub(start.ended()) > remembered
	})
}

// ended is when a task that is over was; one that nothing was started of when that
// was tried.
func (start TaskStart) ended() time.Time {
	if start.Task == nil {
		return start.At
	}
	return start.Task.View().StoppedAt
}

func (start TaskStart) over() bool { return start.Task == nil || start.Task.Ended() }

// Call returns a call of the API by the user of the simulator.
func (r *Region) Call() shapes.Call {
	return shapes.Call{Now: time.Now(), Principal: iam.Admin("localecs", r.aws).ARN()}
}

// Stop asks a task to stop, as StopTask does; an empty reason is AWS's default.
func (r *Region) Stop(start TaskStart, reason string) error {
	_, err := r.Plane().StopTask(r.Call(), shapes.StopTaskInput{Cluster: start.Cluster, Task: start.ID, Reason: reason})
	return err
}

// Drain deletes all services, stops all tasks as StopTask does and waits until they have been
// released, or the context ends. Tasks that are started meanwhile are stopped, too.
func (r *Region) Drain(ctx context.Context, reason string) error {
	var errs []error
	for _, s := range r.Plane().Services(time.Now()) {
		_, err := r.Plane().DeleteService(r.Call(), shapes.DeleteServiceInput{Cluster: s.ClusterARN, Service: s.ServiceName, Force: true})
		errs = append(errs, err)
	}
	for {
		running := r.launcher.open()
		if len(running) == 0 {
			return errors.Join(errs...)
		}
		for _, s := range running {
			errs = append(errs, r.Stop(TaskStart{Launch: s.Launch}, reason))
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
