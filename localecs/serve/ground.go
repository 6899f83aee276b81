package serve

import (
	"net/http"

	"github.com/meshtask/consul-ecs/localecs/endpoints/identity"
	"github.com/meshtask/consul-ecs/localecs/region"
	"github.com/meshtask/consul-ecs/localecs/simulated"
)

// ground is what the API stands on: tasks that are processes, or tasks without.
type ground struct {
	aws http.Handler
	// region is nil where tasks have no processes.
	region     *region.Region
	identities *identity.Store
	// lost is closed when no task can run any more; err says why.
	lost  <-chan struct{}
	err   func() error
	close func() error
}

// open makes the ground that the options are about.
func (o Options) open() (ground, error) {
	if o.Simulated != nil {
		return o.simulate()
	}
	r, err := region.Open(region.Options{Cluster: o.Cluster, Throttle: o.Throttle, Lag: o.Lag, Observe: o.Observe, Log: o.Log})
	if err != nil {
		return ground{}, err
	}
	c := r.Cluster()
	return ground{aws: c.AWS(), region: r, identities: c.Identities(), lost: c.Lost(), err: c.Err, close: r.Close}, nil
}

func (o Options) simulate() (ground, error) {
	w, err := simulated.Open(simulated.Options{
		Region: o.Cluster.Region, Account: o.Cluster.Account, Subnet: o.Cluster.Subnet, AtOnce: o.Cluster.AtOnce, Roles: o.Cluster.Roles,
		Timing: *o.Simulated, Throttle: o.Throttle, Lag: o.Lag, Observe: o.Observe, Log: o.Log,
	})
	if err != nil {
		return ground{}, err
	}
	return ground{aws: w, identities: w.Identities, err: func() error { return nil }, close: func() error {
		w.Close()
		return nil
	}}, nil
}
