package control

import (
	"net/http"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/simulated"
)

// ground is what the API stands on: tasks that are processes, or tasks without.
type ground struct {
	aws http.Handler
	// region is nil where tasks have no processes.
	region     *cluster.Region
	identities *iam.Store
	// lost is closed when no task can run any more; err says why.
	lost  <-chan struct{}
	err   func() error
	close func() error
}

// open makes the ground that the options are about.
func (o APIOptions) open() (ground, error) {
	if o.Simulated != nil {
		return o.simulate()
	}
	r, err := cluster.OpenRegion(cluster.RegionOptions{Cluster: o.Cluster, Throttle: o.Throttle, Lag: o.Lag, Observe: o.Observe, Log: o.Log})
	if err != nil {
		return ground{}, err
	}
	c := r.Cluster()
	return ground{aws: c.AWS(), region: r, identities: c.Identities(), lost: c.Lost(), err: c.Err, close: r.Close}, nil
}

func (o APIOptions) simulate() (ground, error) {
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
