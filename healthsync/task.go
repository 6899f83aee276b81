package healthsync

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/workload"
)

// taskState is what is known about the task.
type taskState struct {
	options Options
	deps    Deps
	log     hclog.Logger // names the task once it is known
	// workload is valid once known, by the first valid metadata answer.
	workload workload.Workload
	known    bool
	// first is the answer before the loop, which drops its containers.
	first workload.Task
}

// checked reports whether there are checks to write: without an agent each proxy has one,
// while an agent looks at gateways itself.
func (t *taskState) checked() bool {
	return t.options.Config.Agentless() ||
		t.options.Config.Gateway == nil && len(t.options.Config.HealthSyncContainers) > 0
}

// learn reads the metadata until an answer makes a workload.
func (t *taskState) learn(ctx context.Context, limit time.Duration) error {
	var w workload.Workload
	use := func(answer workload.Task) (err error) {
		if w, err = workload.New(t.options.Config, answer, t.options.Region); err == nil {
			w.RecordVersion(t.options.Version)
		}
		return err
	}
	answer, err := awsutil.FirstUsableTask(ctx, t.log, t.fetch, limit, use)
	if err != nil {
		return err
	}
	t.first = answer
	if t.known {
		return nil
	}
	t.workload, t.known = w, true
	t.log = t.log.With(logkey.TaskID, w.TaskID)
	t.log.Info("started synchronizing health", logkey.ServiceID, w.ID, logkey.Checks, len(w.SyncChecks))
	return nil
}

// fetch reads the metadata once. An answer about another task is no answer.
func (t *taskState) fetch(ctx context.Context) (workload.Task, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	answer, err := t.deps.Metadata.Task(ctx)
	if err == nil && t.known && answer.TaskARN != t.workload.TaskARN {
		err = fmt.Errorf("metadata describes %s, not %s", answer.TaskARN, t.workload.TaskARN)
	}
	return answer, err
}

// leavesEarly reports whether the task is a gateway that is deregistered while it still has
// callers. Across the datacenters of a federation Consul gives the gateways on the way the
// health of the service behind them, so sidecar proxies send requests to all mesh gateways
// that are registered, healthy or not.
func (t *taskState) leavesEarly() bool {
	return t.options.Config.Gateway != nil && t.options.Config.Gateway.Kind == config.KindMeshGateway
}
