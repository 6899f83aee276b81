package account

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/localecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/controlplane/arn"
	"github.com/meshtask/consul-ecs/localecs/controlplane/ecs"
	"github.com/meshtask/consul-ecs/localecs/controlplane/record"
	"github.com/meshtask/consul-ecs/localecs/endpoints/ecsapi"
	"github.com/meshtask/consul-ecs/localecs/endpoints/identity"
	"github.com/meshtask/consul-ecs/localecs/services"
)

// Options are what an account's ECS is made of.
type Options struct {
	// Region and ID are those of all ARNs; ID is the account's twelve digits.
	Region, ID string
	// Store has who may call.
	Store       *identity.Store
	Launcher    controlplane.Launcher
	Protections controlplane.Protections
	// Throttle applies AWS's token buckets.
	Throttle bool
	// Lag is how late the API's answers are.
	Lag record.Lag
	// Observe gets each new version of a task; nil for nobody. It must not block,
	// nor call the API.
	Observe func(task ecs.Task, at time.Time)
	Log     hclog.Logger
}

// Account is a running ECS.
type Account struct {
	Plane    *controlplane.Plane
	Services *services.Services

	api     http.Handler
	stop    context.CancelFunc
	serving sync.WaitGroup
}

// Open makes the ECS and looks after its services until Close.
func Open(o Options) *Account {
	a := &Account{}
	account := arn.Account{Region: o.Region, ID: o.ID}
	plane := controlplane.Options{
		Account: account, Launcher: o.Launcher, Protections: o.Protections, Lag: o.Lag,
		Observe: func(task ecs.Task, at time.Time) {
			a.Services.Notify()
			if o.Observe != nil {
				o.Observe(task, at)
			}
		},
	}
	api := ecsapi.Options{Store: o.Store, Region: o.Region, Log: o.Log}
	if o.Throttle {
		plane.Launches, api.Buckets = ecsapi.Launches(), ecsapi.NewBuckets()
	}
	a.Plane = controlplane.New(plane)
	a.Services = services.New(a.Plane, account, o.Lag)
	api.Operations = ecsapi.Operations(a.Plane)
	maps.Copy(api.Operations, ecsapi.ServiceOperations(a.Services))
	a.api = ecsapi.New(api)
	ctx, stop := context.WithCancel(context.Background())
	a.stop = stop
	a.serving.Go(func() { a.Services.Run(ctx) })
	return a
}

// API is the ECS API.
func (a *Account) API() http.Handler { return a.api }

// Close stops looking after services.
func (a *Account) Close() {
	a.stop()
	a.serving.Wait()
}
