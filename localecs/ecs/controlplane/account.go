package controlplane

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// Options are what an account's ECS is made of.
type AccountOptions struct {
	// Region and ID are those of all ARNs; ID is the account's twelve digits.
	Region, ID string
	// Store has who may call.
	Store       *iam.Store
	Launcher    Launcher
	Protections Protections
	// Throttle applies AWS's token buckets.
	Throttle bool
	// Lag is how late the API's answers are.
	Lag Lag
	// Observe gets each new version of a task; nil for nobody. It must not block,
	// nor call the API.
	Observe func(task shapes.Task, at time.Time)
	Log     hclog.Logger
}

// Account is a running ECS.
type Account struct {
	Plane    *Plane
	Services *Services

	api     http.Handler
	stop    context.CancelFunc
	serving sync.WaitGroup
}

// Open makes the ECS and looks after its services until Close.
func OpenAccount(o AccountOptions) *Account {
	a := &Account{}
	account := shapes.Account{Region: o.Region, ID: o.ID}
	plane := Options{
		Account: account, Launcher: o.Launcher, Protections: o.Protections, Lag: o.Lag,
		Observe: func(task shapes.Task, at time.Time) {
			a.Services.Notify()
			if o.Observe != nil {
				o.Observe(task, at)
			}
		},
	}
	api := HandlerOptions{Store: o.Store, Region: o.Region, Log: o.Log}
	if o.Throttle {
		plane.Launches, api.Buckets = Launches(), NewBuckets()
	}
	a.Plane = New(plane)
	a.Services = NewServices(a.Plane, account, o.Lag)
	api.Operations = Operations(a.Plane)
	maps.Copy(api.Operations, ServiceOperations(a.Services))
	a.api = NewHandler(api)
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
