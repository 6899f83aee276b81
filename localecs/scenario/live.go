package scenario

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// ErrEnded means that End has ended the run.
var ErrEnded = errors.New("ended by localecs stop -all: all tasks have stopped, and nothing was judged")

// LiveRun is a run for those who control it from outside. It may be used also when
// the run has ended.
type LiveRun struct {
	file   *file.Scenario
	tasks  *TaskSet
	region *cluster.Region
	// ended is closed by End.
	ended chan struct{}
	once  sync.Once

	mu    sync.Mutex
	token string
	watch *Watcher // nil before there is a server
}

// NewLiveRun returns the run of a scenario with those tasks in a region.
func NewLiveRun(f *file.Scenario, tasks *TaskSet, r *cluster.Region) *LiveRun {
	return &LiveRun{file: f, tasks: tasks, region: r, ended: make(chan struct{})}
}

// HasConsul records that the server is ready, with its management token.
func (r *LiveRun) HasConsul(watch *Watcher, token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watch, r.token = watch, token
}

// Name is the scenario's.
func (r *LiveRun) Name() string { return r.file.Name }

// Region is the run's ECS.
func (r *LiveRun) Region() *cluster.Region { return r.region }

// MayEnd declares that a task may end from now on.
func (r *LiveRun) MayEnd(task string) { r.tasks.MayEnd(task) }

// Planned returns the tasks and services that may still start.
func (r *LiveRun) Planned() []string {
	names := slices.Collect(maps.Keys(r.file.Tasks))
	names = slices.AppendSeq(names, maps.Keys(r.file.Services))
	names = slices.DeleteFunc(names, func(name string) bool { return r.tasks.Task(name).Task != nil })
	slices.Sort(names)
	return names
}

// Consul is the server's HTTP API in the cluster's network, its management token,
// and how many instances of each service it sends traffic to. ok is false before
// there is one.
func (r *LiveRun) Consul() (address, token string, passing map[string]int, ok bool) {
	r.mu.Lock()
	watch, token := r.watch, r.token
	r.mu.Unlock()
	if watch == nil {
		return "", "", nil, false
	}
	checks, _ := watch.Now()
	passing = map[string]int{}
	for _, t := range r.tasks.Started() {
		if checks.InTraffic(t.ID()) {
			passing[t.Definition.Family]++
		}
	}
	return Address(&r.file.Consul), token, passing, true
}

// End ends the steps, stops all tasks in order, and then the run, whose error is
// ErrEnded.
func (r *LiveRun) End() { r.once.Do(func() { close(r.ended) }) }

// Ended reports whether End was called.
func (r *LiveRun) Ended() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// Until ends the context when End is called.
func (r *LiveRun) Until(parent context.Context) (ctx context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		select {
		case <-r.ended:
			cancel(ErrEnded)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// stopAll is the reason of the end of tasks that End stops.
const stopAll = "localecs stop -all"

// Drain stops all tasks in order and waits until they have stopped. An empty reason
// is AWS's default.
func (r *LiveRun) Drain(ctx context.Context, reason string) error {
	return r.region.Drain(ctx, reason)
}
