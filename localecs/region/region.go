package region

import (
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/localecs"
	"github.com/meshtask/consul-ecs/localecs/account"
	"github.com/meshtask/consul-ecs/localecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/controlplane/ecs"
	"github.com/meshtask/consul-ecs/localecs/controlplane/record"
	"github.com/meshtask/consul-ecs/localecs/endpoints/identity"
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
	// Told says that people know already what definitions ask for and is not
	// emulated.
	Told bool
	Log  hclog.Logger
}

// Begun is a task that was to run.
type Begun struct {
	controlplane.Launch
	// Name is that of Options.Name.
	Name string
	// At is when it was begun.
	At time.Time
	// Task is nil when Err says why there is none.
	Task *localecs.Task
	Err  error
}

// Region is a running local ECS.
type Region struct {
	cluster  *localecs.Cluster
	account  *account.Account
	launcher *launcher
	// id is the account's, name the region's.
	id, name string
	key      func() identity.Key
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
	l := newLauncher(cluster, o)
	r := &Region{cluster: cluster, launcher: l, id: o.Cluster.Account, name: o.Cluster.Region, account: account.Open(account.Options{
		Region: o.Cluster.Region, ID: o.Cluster.Account, Store: cluster.Identities(), Launcher: l,
		Protections: cluster.Protections(), Throttle: o.Throttle, Lag: o.Lag, Observe: o.Observe, Log: o.Log,
	})}
	cluster.ServeECS(r.account.API())
	r.key = sync.OnceValue(func() identity.Key {
		return cluster.Identities().PutUser(identity.User{Name: "visitor", Account: r.id, Actions: []string{"*"}})
	})
	return r, nil
}

// Cluster is where the tasks run.
func (r *Region) Cluster() *localecs.Cluster { return r.cluster }

// Plane is what the API knows of tasks.
func (r *Region) Plane() *controlplane.Plane { return r.account.Plane }

// Services are the services of the account.
func (r *Region) Services() *services.Services { return r.account.Services }

// Tasks are all that have begun, in that order. Those that are over stay for an
// hour, the last two hundred of them.
func (r *Region) Tasks() []Begun { return r.launcher.history(time.Now()) }

// Environment is with what programs in the cluster's network call the region, as
// somebody who may call everything.
func (r *Region) Environment() []string {
	url, key := r.cluster.AWSEndpoint(), r.key()
	return []string{
		"AWS_ENDPOINT_URL_ECS=" + url, "AWS_ENDPOINT_URL_STS=" + url, "AWS_ENDPOINT_URL_IAM=" + url,
		"AWS_ACCESS_KEY_ID=" + key.AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + key.Secret,
		"AWS_REGION=" + r.name, "AWS_DEFAULT_REGION=" + r.name,
	}
}

// Close kills the tasks and gives everything back. Nothing is reported of a task
// afterwards.
func (r *Region) Close() error {
	r.account.Close()
	wait := r.launcher.running.Close()
	err := r.cluster.Close()
	wait()
	return err
}
