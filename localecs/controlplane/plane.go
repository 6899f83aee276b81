package controlplane

import (
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/localecs/controlplane/arn"
	"github.com/meshtask/consul-ecs/localecs/controlplane/ecs"
	"github.com/meshtask/consul-ecs/localecs/controlplane/record"
	"github.com/meshtask/consul-ecs/localecs/controlplane/registry"
	"github.com/meshtask/consul-ecs/localecs/controlplane/strategy"
	"github.com/meshtask/consul-ecs/taskdef"
	"golang.org/x/time/rate"
)

// Launcher runs tasks. Both methods return at once.
type Launcher interface {
	// Launch runs a task and reports each change of it, from any goroutine but
	// in order, until a report says Gone.
	Launch(l Launch)
	// Stop asks for an orderly stop, also of a task that has not begun yet.
	Stop(taskID, code, reason string)
}

// Launch is a task that is to run.
type Launch struct {
	ID, Cluster string
	// Reference is the referenceId of RunTask.
	Reference string
	// Service is empty for a standalone task.
	Service string
	// Definition has the overrides in it, and must not be changed.
	Definition *taskdef.TaskDefinition
	// ContainerARNs are by container name.
	ContainerARNs map[string]string
	// Report takes how the task is at now.
	Report func(r record.Report, now time.Time)
}

// Protections remember which service tasks are protected from scale-in. Tasks
// ask and set the same ones themselves, through the agent's endpoint.
type Protections interface {
	Set(taskARN string, until time.Time)
	Until(taskARN string, now time.Time) (time.Time, bool)
}

// Options are what a Plane needs to know.
type Options struct {
	Account     arn.Account
	Launcher    Launcher
	Protections Protections
	// Launches are Fargate's bucket of tasks to start, apart from those of calls;
	// nil for no limit.
	Launches *rate.Limiter
	// Lag is how late answers may be.
	Lag record.Lag
	// Observe gets a task at each new version, in order for each task, with the
	// Plane locked: it must neither block nor call it. Nil for nobody.
	Observe func(task ecs.Task, at time.Time)
}

// Plane is the state of the ECS API in one account and region. Its methods are
// the API's calls; their errors are *ecs.Error.
type Plane struct {
	*registry.Registry
	account     arn.Account
	launcher    Launcher
	launches    *rate.Limiter
	protections Protections
	lag         record.Lag
	observe     func(ecs.Task, time.Time)

	mu       sync.Mutex
	clusters map[string]*cluster
	tasks    map[string]*record.Record // by ID
	records  []*record.Record          // by creation
	created  int                       // tasks so far
	swept    time.Time
	tokens   map[string]idempotent
}

// New returns a Plane with the cluster "default", whose capacity provider is
// FARGATE: a call that names no launch type gets it.
func New(o Options) *Plane {
	p := &Plane{
		Registry: registry.New(o.Account), account: o.Account, launcher: o.Launcher, launches: o.Launches, protections: o.Protections, lag: o.Lag, observe: o.Observe,
		clusters: map[string]*cluster{}, tasks: map[string]*record.Record{}, tokens: map[string]idempotent{},
	}
	if p.observe == nil {
		p.observe = func(ecs.Task, time.Time) {}
	}
	p.clusters[arn.Default] = &cluster{
		name: arn.Default, status: ecs.Active, providers: strategy.Fargate(),
		strategy: []ecs.StrategyItem{{CapacityProvider: ecs.Fargate, Weight: 1}},
	}
	return p
}

// cluster finds an active cluster by name or ARN.
func (p *Plane) cluster(ref string) (*cluster, error) {
	name, err := p.account.ClusterName(ref)
	if err != nil {
		return nil, err
	}
	c := p.clusters[name]
	switch {
	case c == nil:
		return nil, ecs.Errorf(ecs.ClusterNotFoundException, "Cluster not found.")
	case c.status != ecs.Active:
		return nil, ecs.Errorf(ecs.ClusterNotFoundException, "The referenced cluster was inactive.")
	}
	return c, nil
}
