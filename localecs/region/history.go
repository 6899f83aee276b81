package region

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/localecs/controlplane/ecs"
)

// How long a task that is over is remembered, as ECS does, and how many are.
const (
	remembered    = time.Hour
	maxRemembered = 200
)

// note remembers a task that has begun, and forgets old ones.
func (l *launcher) note(b Begun) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun = append(kept(l.begun, b.At), b)
}

func (l *launcher) history(now time.Time) []Begun {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun = kept(l.begun, now)
	return slices.Clone(l.begun)
}

// kept leaves out what was over long ago, and the oldest of too many.
func kept(all []Begun, now time.Time) []Begun {
	over := 0
	for _, b := range all {
		if b.over() {
			over++
		}
	}
	return slices.DeleteFunc(all, func(b Begun) bool {
		if !b.over() {
			return false
		}
		over--
		return over >= maxRemembered || now.Sub(b.ended()) > remembered
	})
}

// ended is when a task that is over was; one that nothing was started of when that
// was tried.
func (b Begun) ended() time.Time {
	if b.Task == nil {
		return b.At
	}
	return b.Task.View().StoppedAt
}

// over says whether nothing is left of a task.
func (b Begun) over() bool {
	if b.Task == nil {
		return true
	}
	select {
	case <-b.Task.Done():
		return true
	default:
		return false
	}
}

// call is one by whoever has started the simulator.
func (r *Region) call() ecs.Call {
	return ecs.Call{Now: time.Now(), Principal: "arn:aws:iam::" + r.id + ":user/localecs"}
}

// Stop asks a task to stop, as StopTask does; no reason is AWS's own.
func (r *Region) Stop(b Begun, reason string) error {
	_, err := r.Plane().StopTask(r.call(), ecs.StopTaskInput{Cluster: b.Cluster, Task: b.ID, Reason: reason})
	return err
}

// Drain deletes all services, stops all tasks in order and waits until nothing is
// left of them, or the context ends. What a task starts meanwhile is stopped, too.
func (r *Region) Drain(ctx context.Context, reason string) error {
	var errs []error
	for _, s := range r.Services().All(time.Now()) {
		_, err := r.Services().DeleteService(r.call(), ecs.DeleteServiceInput{Cluster: s.ClusterARN, Service: s.ServiceName, Force: true})
		errs = append(errs, err)
	}
	for {
		running := slices.DeleteFunc(r.Tasks(), Begun.over)
		if len(running) == 0 {
			return errors.Join(errs...)
		}
		for _, b := range running {
			errs = append(errs, r.Stop(b, reason))
		}
		for _, b := range running {
			select {
			case <-b.Task.Done():
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}
