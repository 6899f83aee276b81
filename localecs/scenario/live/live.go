// Package live is a run for who attends it from outside of its steps: what runs,
// what may still begin, Consul, and an orderly end.
//
// Owns: whether the run was ended. Never does: carry out a step.
// Start reading at: Run.
package live

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/meshtask/consul-ecs/localecs/region"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/localecs/scenario/roster"
	"github.com/meshtask/consul-ecs/localecs/scenario/server"
)

// ErrEnded means that who attends the run has ended it.
var ErrEnded = errors.New("ended by localecs stop -all: all tasks have stopped, and nothing was judged")

// Run is a run. It may be used also when the run has ended.
type Run struct {
	file   *file.Scenario
	tasks  *roster.Roster
	region *region.Region
	// ended is closed by End.
	ended chan struct{}
	once  sync.Once

	mu    sync.Mutex
	token string
	watch *server.Watcher // nil before there is a server
}

// New is the run of a scenario with those tasks in a region.
func New(f *file.Scenario, tasks *roster.Roster, r *region.Region) *Run {
	return &Run{file: f, tasks: tasks, region: r, ended: make(chan struct{})}
}

// HasConsul notes that there is a server, with its management token.
func (r *Run) HasConsul(watch *server.Watcher, token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watch, r.token = watch, token
}

// Name is the scenario's.
func (r *Run) Name() string { return r.file.Name }

// Region is the run's ECS.
func (r *Run) Region() *region.Region { return r.region }

// MayEnd notes that the end of a task is no surprise from now on.
func (r *Run) MayEnd(task string) { r.tasks.MayEnd(task) }

// Planned are the tasks and services that may still begin.
func (r *Run) Planned() []string {
	names := slices.Collect(maps.Keys(r.file.Tasks))
	names = slices.AppendSeq(names, maps.Keys(r.file.Services))
	names = slices.DeleteFunc(names, func(name string) bool { return r.tasks.Task(name).Task != nil })
	slices.Sort(names)
	return names
}

// Consul is the server's HTTP API in the cluster's network, its management token,
// and how many instances of each service it sends traffic to. ok is false before
// there is one.
func (r *Run) Consul() (address, token string, passing map[string]int, ok bool) {
	r.mu.Lock()
	watch, token := r.watch, r.token
	r.mu.Unlock()
	if watch == nil {
		return "", "", nil, false
	}
	checks, _ := watch.Now()
	passing = map[string]int{}
	for _, t := range r.tasks.Begun() {
		if checks.InTraffic(t.ID()) {
			passing[t.Definition.Family]++
		}
	}
	return server.Address(&r.file.Consul), token, passing, true
}

// End ends the steps, stops all tasks in order, and then the run, whose error is
// ErrEnded.
func (r *Run) End() { r.once.Do(func() { close(r.ended) }) }

// Ended says whether End was called.
func (r *Run) Ended() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// Until ends the context when End is called.
func (r *Run) Until(parent context.Context) (ctx context.Context, release func()) {
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

// Drain stops all tasks in order and waits until they have stopped.
func (r *Run) Drain(ctx context.Context) error {
	if err := r.region.Drain(ctx, "localecs stop -all"); err != nil {
		return err
	}
	return ErrEnded
}
