package clientagent

import (
	"context"
	"time"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/workload"
)

// fileNodeID is where an agent keeps its node ID, in its data directory.
const fileNodeID = "node-id"

// restartMinimum is the least that ECS takes for restartAttemptPeriod: a
// container that has run for less is not started again.
const restartMinimum = time.Minute

// departedLimit bounds the look at the servers after an agent that has left: the token
// wants the rest of the time.
const departedLimit = 3 * time.Second

// forget takes the node of an agent that died out of the catalog. No process writes
// its checks any more: peers would call a task that may be ending until gossip
// finds the agent failed, after some seconds, and its services would stay for
// reconnectTimeout after that. So would those of an agent that has left, where
// that did not reach the servers: it is sent once, by gossip, to peers which may
// be ending, too.
func (r *run) forget(ctx context.Context) {
	if !r.orphaned() {
		return
	}
	id, err := r.files.nodeID()
	if err == nil && id == "" {
		return // it has registered nothing, or keeps its data elsewhere
	}
	if err == nil {
		limit := r.logOutTime() / 2
		if r.departed {
			limit = min(limit, departedLimit)
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		err = retry.Do(ctx, retry.Remote(), r.deps.Log, "deregister node",
			consulutil.Classify, func(ctx context.Context) error {
				return r.deps.Deregister(ctx, id, r.secret())
			})
	}
	switch {
	case err != nil && r.departed:
		r.deps.Log.Warn("cannot check whether the servers know that the agent has left",
			logkey.Node, id, logkey.Error, err)
	case err != nil:
		r.deps.Log.Error("node of the dead agent was not deregistered; Consul removes it in "+reconnectTimeout,
			logkey.Node, id, logkey.Error, err)
	case r.departed:
		r.deps.Log.Debug("node of the agent is not in the catalog any more", logkey.Node, id)
	default:
		r.deps.Log.Info("deregistered the node of the dead agent", logkey.Node, id)
	}
}

// orphaned reports whether there may be services of an agent that has ended and will
// not come back. One that comes back finds its services in its
// data directory, and peers need not notice.
func (r *run) orphaned() bool {
	switch {
	case r.started.IsZero() || r.options.Config.ConsulHTTPAddr == "":
		return false
	case r.stopRequested.IsZero() && r.task.Restartable(workload.ContainerConsulClient) &&
		time.Since(r.started) >= restartMinimum:
		r.deps.Log.Info("the agent's services stay in Consul: ECS may restart this container")
		return false
	}
	return true
}
