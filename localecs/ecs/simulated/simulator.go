package simulated

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// DefaultAccount is the account of a Simulator whose Options have none.
const DefaultAccount = "123456789012"

// DefaultSubnet has room for 65,531 tasks.
const DefaultSubnet = "10.42.0.0/16"

// Options describe a Simulator. The zero Options are a Simulator in which nothing takes
// time.
type Options struct {
	// Region is us-east-1 and Account DefaultAccount where they are empty.
	Region, Account string
	// Subnet is where tasks have addresses, CIDR; empty is DefaultSubnet.
	Subnet string
	// Timing is how long the steps of a task take.
	Timing Timing
	// AtOnce stops all containers of a task at once instead of in reverse
	// dependsOn order.
	AtOnce bool
	// Roles are the account's. Tasks may have others, or none: nothing is run
	// with them.
	Roles []iam.Role
	// Throttle applies AWS's token buckets; Lag is the delay of answers.
	Throttle bool
	Lag      controlplane.Lag
	// Observe receives each new version of a task. It must neither block nor call
	// the Simulator. It may be nil.
	Observe func(task shapes.Task, at time.Time)
	// Log may be nil.
	Log hclog.Logger
}

// Simulator is a running ECS without processes, with the empty cluster "default".
type Simulator struct {
	// Plane has the calls of the API as methods.
	Plane *controlplane.Plane
	// Identities are the account's roles, users and keys.
	Identities *iam.Store

	region   string
	launcher *launcher
	ecs, aws http.Handler
}

// Open makes a Simulator. The error is about the subnet.
func Open(o Options) (*Simulator, error) {
	o.Region, o.Account = cmp.Or(o.Region, "us-east-1"), cmp.Or(o.Account, DefaultAccount)
	if o.Log == nil {
		o.Log = hclog.NewNullLogger()
	}
	subnet, err := netip.ParsePrefix(cmp.Or(o.Subnet, DefaultSubnet))
	if err != nil || !subnet.Addr().Is4() {
		return nil, fmt.Errorf("subnet %q: want an IPv4 block such as %s", o.Subnet, DefaultSubnet)
	}
	options := LifeOptions{Timing: o.Timing, Scheduler: scheduler.Options{AtOnce: o.AtOnce}}
	account := shapes.Account{Region: o.Region, ID: o.Account}
	w := &Simulator{
		region: o.Region, Identities: iam.NewStore(), launcher: newLauncher(options, subnet, o.Region, o.Log),
	}
	for _, r := range o.Roles {
		w.Identities.PutRole(r)
	}
	w.Plane = controlplane.New(controlplane.Options{
		Account: account, Launcher: w.launcher, Protections: metadata.NewProtections(), Throttle: o.Throttle,
		Lag: o.Lag, HealthyAfter: o.Timing.Healthy, Observe: o.Observe,
	})
	w.Plane.Start()
	w.ecs = w.Plane.Handler(w.Identities, o.Log)
	w.aws = iam.New(w.Identities, o.Region)
	return w, nil
}

// Region returns where the Simulator is.
func (w *Simulator) Region() string { return w.region }

// ServeHTTP serves the ECS API, and STS and IAM, as tasks and users find them.
func (w *Simulator) ServeHTTP(res http.ResponseWriter, req *http.Request) {
	if controlplane.IsECSRequest(req) {
		w.ecs.ServeHTTP(res, req)
		return
	}
	w.aws.ServeHTTP(res, req)
}

// Close ends the Simulator: nothing happens to a task any more.
func (w *Simulator) Close() {
	w.Plane.Close()
	w.launcher.close()
}
