package region

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/localecs"
	"github.com/meshtask/consul-ecs/localecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/controlplane/arn"
	"github.com/meshtask/consul-ecs/localecs/controlplane/ecs"
	"github.com/meshtask/consul-ecs/localecs/controlplane/record"
	"github.com/meshtask/consul-ecs/localecs/endpoints/ecsapi"
	"github.com/meshtask/consul-ecs/localecs/services"
)

// Options say how the region is.
type Options struct {
	// Cluster makes the tasks' world; its Observe may be nil.
	Cluster localecs.Options
	// Throttle applies AWS's token buckets.
	Throttle bool
	// Lag is how late the API's answers are.
	Lag record.Lag
	// Name is what observers call a task, and its log directory; nil calls it
	// <family>-<ID>. It is called in the call that starts the task.
	Name func(controlplane.Launch) string
	// Began gets each task that has been made, or why it could not be, before
	// anything else happens to it; nil logs what could not be.
	Began func(Begun)
	// Observe gets each new version of a task; nil for nobody. It must not block.
	Observe func(task ecs.Task, at time.Time)
	Log     hclog.Logger
}

// Begun is a task that was to run.
type Begun struct {
	controlplane.Launch
	// Name is that of Options.Name.
	Name string
	// Task is nil when Err says why there is none.
	Task *localecs.Task
	Err  error
}

// Region is a running local ECS.
type Region struct {
	cluster  *localecs.Cluster
	plane    *controlplane.Plane
	services *services.Services
	stop     context.CancelFunc // of the services
	running  sync.WaitGroup
}

// Open starts the cluster and its API.
func Open(o Options) (*Region, error) {
	if o.Cluster.Observe == nil {
		o.Cluster.Observe = func(localecs.Event) {}
	}
	cluster, err := localecs.Open(o.Cluster)
	if err != nil {
		return nil, err
	}
	r := &Region{cluster: cluster}
	account := arn.Account{Region: o.Cluster.Region, ID: o.Cluster.Account}
	plane := controlplane.Options{
		Account:     account,
		Launcher:    newLauncher(cluster, o),
		Protections: cluster.Protections(),
		Lag:         o.Lag,
		Observe: func(task ecs.Task, at time.Time) { // with the plane locked
			r.services.Notify()
			if o.Observe != nil {
				o.Observe(task, at)
			}
		},
	}
	if o.Throttle {
		plane.Launches = ecsapi.Launches()
	}
	r.plane = controlplane.New(plane)
	r.services = services.New(r.plane, account)
	operations := ecsapi.Operations(r.plane)
	maps.Copy(operations, ecsapi.ServiceOperations(r.services))
	api := ecsapi.Options{Store: cluster.Identities(), Region: o.Cluster.Region, Operations: operations, Log: o.Log}
	if o.Throttle {
		api.Buckets = ecsapi.NewBuckets()
	}
	cluster.ServeECS(ecsapi.New(api))
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.running.Go(func() { r.services.Run(ctx) })
	return r, nil
}

// Cluster is where the tasks run.
func (r *Region) Cluster() *localecs.Cluster { return r.cluster }

// Plane is what the API knows of tasks.
func (r *Region) Plane() *controlplane.Plane { return r.plane }

// Services are the services of the account.
func (r *Region) Services() *services.Services { return r.services }

// Close kills the tasks and gives everything back.
func (r *Region) Close() error {
	r.stop()
	r.running.Wait()
	return r.cluster.Close()
}
