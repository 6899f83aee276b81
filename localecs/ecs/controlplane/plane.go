package controlplane

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/taskdef"
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
	Report func(r Report, now time.Time)
}

// Protections remember which service tasks are protected from scale-in. Tasks
// ask and set the same ones themselves, through the agent's endpoint.
type Protections interface {
	Set(taskARN string, until time.Time)
	Until(taskARN string, now time.Time) (time.Time, bool)
}

// Options are what a Plane needs to know.
type Options struct {
	Account     shapes.Account
	Launcher    Launcher
	Protections Protections
	// Launches are Fargate's bucket of tasks to start, apart from those of calls;
	// nil for no limit.
	Launches *rate.Limiter
	// Lag is how late answers may be.
	Lag Lag
	// Observe gets a task at each new version, in order for each task, with the
	// Plane locked: it must neither block nor call it. Nil for nobody.
	Observe func(task shapes.Task, at time.Time)
}

// Plane is the state of the ECS API in one account and region. Its methods are
// the API's calls; their errors are *ecs.Error.
type Plane struct {
	*Registry
	account     shapes.Account
	launcher    Launcher
	launches    *rate.Limiter
	protections Protections
	lag         Lag
	observe     func(shapes.Task, time.Time)

	mu       sync.Mutex
	clusters map[string]*cluster
	tasks    map[string]*Record // by ID
	records  []*Record          // by creation
	created  int                // tasks so far
	swept    time.Time
	tokens   map[string]idempotent
}

// New returns a Plane with the cluster "default", whose capacity provider is
// FARGATE: a call that names no launch type gets it.
func New(o Options) *Plane {
	p := &Plane{
		Registry: NewRegistry(o.Account), account: o.Account, launcher: o.Launcher, launches: o.Launches, protections: o.Protections, lag: o.Lag, observe: o.Observe,
		clusters: map[string]*cluster{}, tasks: map[string]*Record{}, tokens: map[string]idempotent{},
	}
	if p.observe == nil {
		p.observe = func(shapes.Task, time.Time) {}
	}
	p.clusters[shapes.Default] = &cluster{
		name: shapes.Default, status: shapes.Active, providers: Fargate(),
		strategy: []shapes.StrategyItem{{CapacityProvider: shapes.Fargate, Weight: 1}},
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
		return nil, shapes.Errorf(shapes.ClusterNotFoundException, "Cluster not found.")
	case c.status != shapes.Active:
		return nil, shapes.Errorf(shapes.ClusterNotFoundException, "The referenced cluster was inactive.")
	}
	return c, nil
}
