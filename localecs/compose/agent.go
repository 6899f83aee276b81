package compose

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// Engine is the part of Project that the agent needs.
type Engine interface {
	Containers(ctx context.Context) ([]Container, error)
	Watch(ctx context.Context, changed func(*StopRequest)) error
	Stop(ctx context.Context, id string) error
}

const (
	// period is the maximum age of the state without events from the engine.
	period = time.Second
	// renewal is the time before expiry at which a key is replaced.
	renewal = time.Hour
)

// Agent follows one project.
type Agent struct {
	engine Engine
	state  *State
	store  *iam.Store
	log    hclog.Logger
	wake   chan struct{}

	// updating is held from reading the engine until the state is updated: an older reading must
	// not replace a newer one.
	updating sync.Mutex

	mu sync.Mutex
	// keys are the tasks' credentials by name.
	keys map[string]grant
	// stopping are the containers that are being stopped.
	stopping map[string]bool
	stops    sync.WaitGroup
}

// grant is the credentials of one run of a task.
type grant struct {
	taskID, id string
	expires    time.Time
}

// NewAgent returns an agent. Definitions name their roles by ARN; roles that are not in the store are
// added to it, without tags or permissions.
func NewAgent(e Engine, state *State, store *iam.Store, log hclog.Logger) *Agent {
	return &Agent{
		engine: e, state: state, store: store, log: log, wake: make(chan struct{}, 1),
		keys: map[string]grant{}, stopping: map[string]bool{},
	}
}

// Run follows the project until ctx ends, and then waits for what it stops.
func (a *Agent) Run(ctx context.Context) {
	var watching sync.WaitGroup
	watching.Go(func() { a.watch(ctx) })
	var before string
	for ctx.Err() == nil {
		problem := ""
		if err := a.Update(ctx); err != nil && ctx.Err() == nil {
			problem = err.Error()
		}
		if problem != before && problem != "" { // logged once; the state is kept
			a.log.Warn("project cannot be read", logkey.Error, problem)
		}
		before = problem
		a.stop(ctx)
		select {
		case <-a.wake:
		case <-time.After(period):
		case <-ctx.Done():
		}
	}
	watching.Wait()
	a.stops.Wait()
}

// watch wakes Run at each change. Without events from the engine Run polls.
func (a *Agent) watch(ctx context.Context) {
	for ctx.Err() == nil {
		err := a.engine.Watch(ctx, func(asked *StopRequest) {
			if asked != nil {
				a.state.asked(asked.Task, asked.Container, asked.At)
			}
			select {
			case a.wake <- struct{}{}:
			default:
			}
		})
		a.log.Debug("engine event stream ended", logkey.Error, err)
		_ = retry.Sleep(ctx, period)
	}
}

// Update reads the engine.
func (a *Agent) Update(ctx context.Context) error {
	a.updating.Lock()
	defer a.updating.Unlock()
	containers, err := a.engine.Containers(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	for _, t := range a.state.update(containers, now) {
		a.log.Info("task started", logkey.TaskID, t.ID, logkey.ServiceName, t.Name)
	}
	return a.issue(now)
}

// issue issues credentials to tasks with a role, and renews them before they expire.
func (a *Agent) issue(now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.state.Tasks() {
		role := t.Definition.TaskRoleARN
		old := a.keys[t.Name]
		if role == "" || old.taskID == t.ID && now.Before(old.expires.Add(-renewal)) {
			continue
		}
		expires := now.Add(iam.Lifetime)
		if old.taskID == t.ID {
			if err := a.store.Rotate(old.id, now); err != nil {
				return err
			}
			old.expires = expires
			a.keys[t.Name] = old
			continue
		}
		if _, known := a.store.Role(role); !known {
			a.store.PutRole(iam.RoleOf(role, shapes.Account{}))
		}
		id, err := a.store.Issue(role, t.ID, now)
		if err != nil {
			return fmt.Errorf("credentials of %s: %w", t.Name, err)
		}
		a.store.Remove(old.id)
		a.keys[t.Name] = grant{t.ID, id, expires}
	}
	return nil
}

// credentials returns the ID of a task's credentials in the store.
func (a *Agent) credentials(taskName string) (string, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	g, ok := a.keys[taskName]
	return g.id, ok
}

// stop asks the engine to stop the containers that ECS would stop now.
func (a *Agent) stop(ctx context.Context) {
	for _, id := range a.state.toStop() {
		a.mu.Lock()
		busy := a.stopping[id]
		a.stopping[id] = true
		a.mu.Unlock()
		if busy {
			continue
		}
		a.log.Info("stopping a container of a task whose essential container exited", logkey.Container, id[:min(len(id), 12)])
		a.stops.Go(func() {
			if err := a.engine.Stop(ctx, id); err != nil && ctx.Err() == nil {
				a.log.Warn("container was not stopped", logkey.Container, id, logkey.Error, err)
			}
			a.mu.Lock()
			delete(a.stopping, id)
			a.mu.Unlock()
		})
	}
}
