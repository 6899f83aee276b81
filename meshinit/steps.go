package meshinit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/workload"
)

// local is the policy towards what is in the same task, with this run's limit. The
// agent starts at the same time, and every pause delays the task's first request: it
// is asked every 20 ms until it listens, and soon again while it joins.
func (r *run) local() retry.Policy {
	return retry.Policy{Base: 50 * time.Millisecond, Max: 250 * time.Millisecond, Unreachable: 20 * time.Millisecond, Limit: r.Limit}
}

func (r *run) checkDir(context.Context) error {
	if err := r.secrets().Check(workload.FileBootstrap, workload.FileServiceToken, workload.FileBinary, workload.FileStatus); err != nil {
		return &exit.UsageError{Err: err}
	}
	return nil
}

func (r *run) checkGRPC(context.Context) error {
	if err := r.GRPC.check(); err != nil {
		return &exit.UsageError{Err: err}
	}
	return nil
}

func (r *run) prepareAgent(ctx context.Context) error {
	return retry.Do(ctx, r.local(), r.Log, "prepare local agent client", consulutil.Classify, func(context.Context) error {
		var err error
		r.agent, err = r.Agent()
		return err
	})
}

// readMetadata retries after every error: the endpoint of a starting task may
// answer errors or documents without a task for a moment.
func (r *run) readMetadata(ctx context.Context) error {
	always := func(error) retry.Class { return retry.Retry }
	err := retry.Do(ctx, r.local(), r.Log, "read task metadata", always, func(ctx context.Context) error {
		var err error
		r.task, err = r.Metadata.Task(ctx)
		return err
	})
	if err != nil {
		return err
	}
	r.findEarlierRun()
	r.Log = r.Log.With(logkey.TaskID, r.task.ID(), logkey.ClusterARN, r.task.ClusterARN())
	return nil
}

func (r *run) describe(context.Context) error {
	var err error
	if r.workload, err = workload.New(r.Config, r.task); err != nil {
		return &exit.UsageError{Err: err}
	}
	return nil
}

// register notes first whether there is something to take back later: a task
// with a bootstrap was registered by an earlier run, and its Envoy may run.
func (r *run) register(ctx context.Context) error {
	_, err := os.Lstat(r.path(workload.FileBootstrap))
	r.registering = errors.Is(err, fs.ErrNotExist)
	err = retry.Do(ctx, r.local(), r.Log, "register", consulutil.ClassifyNewToken, r.registerOnce)
	if err != nil {
		return err
	}
	r.Log.Info("registered", logkey.ServiceName, r.workload.Name, logkey.ServiceID, r.workload.ID, logkey.ProxyID, r.workload.Proxy.ID)
	return nil
}

func (r *run) registerOnce(ctx context.Context) error {
	return r.token.Explain(r.agent.Registrar.Register(ctx, r.token.Secret, r.workload))
}

// readProxy registers again when the agent does not have the proxy: it was
// restarted since the registration.
func (r *run) readProxy(ctx context.Context) error {
	classify := func(err error) retry.Class {
		if class := consulutil.ClassifyNewToken(err); class != retry.Gone {
			return class
		}
		return retry.Retry
	}
	return retry.Do(ctx, r.local(), r.Log, "read proxy", classify, func(ctx context.Context) error {
		var err error
		r.proxy, err = r.agent.Registrar.Proxy(ctx, r.token.Secret, r.workload)
		if consulutil.Classify(err) == retry.Gone {
			if err := r.registerOnce(ctx); err != nil {
				return fmt.Errorf("agent has lost the registration: %w", err)
			}
			if r.proxy, err = r.agent.Registrar.Proxy(ctx, r.token.Secret, r.workload); err == nil {
				r.Log.Warn("agent had lost the registration, registered again", logkey.ProxyID, r.workload.Proxy.ID)
			}
		}
		return err
	})
}
