package cluster

import (
	"cmp"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/network"
)

// RegionOptions configure a region.
type RegionOptions struct {
	// Cluster describes where the tasks run; its Observe may be nil.
	Cluster Options
	// Throttle applies AWS's token buckets.
	Throttle bool
	// Lag is how late the API's answers are.
	Lag controlplane.Lag
	// Name is what observers call a task, and its log directory; nil calls it
	// <family>-<ID>. It is called in the call that starts the task.
	Name func(controlplane.Launch) string
	// Started gets each task start after the first report of the task, and each failed one; nil logs those that failed.
	Started func(TaskStart)
	// Observe gets each new version of a task; nil is allowed. It must not block.
	Observe func(task shapes.Task, at time.Time)
	// SkipWarnings leaves out the warnings about settings that are not emulated: the caller has printed them.
	SkipWarnings bool
	Log          hclog.Logger
}

// TaskStart is the start of a task, or a failed one.
type TaskStart struct {
	Launch controlplane.Launch
	// Name is that of Options.Name.
	Name string
	// Task is nil if the start failed with Err.
	Task *Task
	Err  error
}

// Region is a running local ECS.
type Region struct {
	cluster  *Cluster
	plane    *controlplane.Plane
	launcher *launcher
	router   *network.Router
	aws      shapes.Account
	key      func() iam.Key
}

// OpenRegion starts the cluster and its API.
func OpenRegion(o RegionOptions) (*Region, error) {
	if o.Cluster.Observe == nil {
		o.Cluster.Observe = func(Event) {}
	}
	cluster, err := Open(o.Cluster)
	if err != nil {
		return nil, err
	}
	l, router := newLauncher(cluster, o), cluster.fabric.NewRouter(o.Log)
	plane := controlplane.New(controlplane.Options{
		Account: o.Cluster.AWS(), Launcher: l, Protections: cluster.Protections(),
		Throttle: o.Throttle, Lag: o.Lag, Added: o.Cluster.Added, Observe: o.Observe,
		CloudMap: o.Cluster.CloudMap, Route: router.Route,
		HealthyAfter: time.Duration(float64(o.Cluster.HealthyAfter) / cmp.Or(o.Cluster.TimeScale, 1)),
	})
	r := &Region{cluster: cluster, launcher: l, router: router, aws: o.Cluster.AWS(), plane: plane}
	r.plane.Start()
	cluster.endpoints.serveECS(r.plane.Handler(cluster.Identities(), o.Log))
	r.key = sync.OnceValue(func() iam.Key {
		return cluster.Identities().PutUser(iam.Admin("visitor", r.aws))
	})
	return r, nil
}

// Cluster returns the cluster in which the tasks run.
func (r *Region) Cluster() *Cluster { return r.cluster }

// Task returns a task that has started and has not been released, by its ID, or nil.
func (r *Region) Task(id string) *Task { return r.launcher.task(id) }

// Plane returns the ECS API of the region.
func (r *Region) Plane() *controlplane.Plane { return r.plane }

// Call returns a call of the API by the user of the simulator.
func (r *Region) Call() shapes.Call {
	return shapes.Call{Now: time.Now(), Principal: iam.Admin("localecs", r.aws).ARN()}
}

// Environment returns the variables with which programs in the cluster's network call the region, as a user who may
// call everything.
func (r *Region) Environment() []string {
	return Environment(r.cluster.AWSEndpoint(), r.key(), r.aws.Region)
}

// Environment returns the variables with which the AWS command line and SDKs call ECS, STS and IAM at a URL.
func Environment(url string, key iam.Key, region string) []string {
	return []string{
		"AWS_ENDPOINT_URL_ECS=" + url, "AWS_ENDPOINT_URL_STS=" + url, "AWS_ENDPOINT_URL_IAM=" + url,
		"AWS_ACCESS_KEY_ID=" + key.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + key.Secret,
		"AWS_REGION=" + region, "AWS_DEFAULT_REGION=" + region,
	}
}

// Close kills the tasks and gives everything back. Nothing is reported of a task afterwards.
func (r *Region) Close() error {
	r.plane.Close()
	r.router.Close()
	_, wait := r.launcher.running.Close()
	err := r.cluster.Close()
	wait()
	return err
}
