package meshinit

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/workload"
)

func (r *run) checkDir(context.Context) error {
	if err := r.secrets().Check(workload.FileBootstrap, workload.FileServiceToken, workload.FileBinary,
		workload.FileStatus); err != nil {
		return &exit.UsageError{Err: err}
	}
	return nil
}

func (r *run) checkProxy(context.Context) error {
	if err := r.options.Proxy.Check(); err != nil {
		return &exit.UsageError{Err: err}
	}
	if r.deps.Redirect == nil {
		return nil
	}
	err := r.deps.Redirect.Suspend()
	r.suspended = err == nil
	return err
}

func (r *run) prepareClient(ctx context.Context) error {
	return PrepareClient(ctx, r.options.Limit, r.deps.Log, func() (err error) {
		r.consul, err = r.deps.Consul()
		return err
	})
}

// PrepareClient calls prepare until the files exist that its Consul client reads, at most for
// limit: consul-client may yet write them.
func PrepareClient(ctx context.Context, limit time.Duration, log hclog.Logger, prepare func() error) error {
	return retry.Do(ctx, AgentEndpoint().Policy.Within(limit), log, "prepare Consul client",
		consulutil.Classify, func(context.Context) error {
			return prepare()
		})
}

// readMetadata reads the task until a workload can be made of it.
func (r *run) readMetadata(ctx context.Context) error {
	use := func(t workload.Task) (err error) {
		if r.workload, err = workload.New(r.options.Config, t, r.options.Region); err == nil {
			r.workload.RecordVersion(r.options.Version)
		}
		return err
	}
	var err error
	r.task, err = awsutil.FirstUsableTask(ctx, r.deps.Log, r.deps.Metadata.Task, r.options.Limit, use)
	if err != nil {
		return err
	}
	r.findEarlierRun()
	r.deps.Log = r.deps.Log.With(logkey.TaskID, r.task.ID(), logkey.ClusterARN, r.task.ClusterARN())
	return nil
}

// register notes first whether there is something to undo later: a task that was
// ready was registered by an earlier run, and its proxy may run.
func (r *run) register(ctx context.Context) error {
	r.registering = !r.wasReady
	err := retry.Do(ctx, r.options.Endpoint.Policy.Within(r.options.Limit), r.deps.Log, "register",
		consulutil.ClassifyNewToken, r.registerOnce)
	if err != nil {
		return err
	}
	r.deps.Log.Info("registered", logkey.ServiceName, r.workload.Name, logkey.ServiceID, r.workload.ID, logkey.ProxyID,
		r.workload.Proxy.ID)
	return nil
}

func (r *run) registerOnce(ctx context.Context) error {
	return r.token.Explain(r.consul.Registrar.Register(ctx, r.token.Secret, r.workload))
}

// readProxy registers again when Consul does not have the proxy: the agent was
// restarted since the registration, or the server that answered is behind.
func (r *run) readProxy(ctx context.Context) error {
	classify := func(err error) retry.Class {
		if class := consulutil.ClassifyNewToken(err); class != retry.Gone {
			return class
		}
		return retry.NotYet
	}
	return retry.Do(ctx, r.options.Endpoint.Policy.Within(r.options.Limit), r.deps.Log, "read proxy",
		classify, func(ctx context.Context) error {
			var err error
			r.proxy, err = r.consul.Registrar.Proxy(ctx, r.token.Secret, r.workload)
			if consulutil.Classify(err) == retry.Gone {
				if err := r.registerOnce(ctx); err != nil {
					return fmt.Errorf("Consul has lost the registration: %w", err)
				}
				if r.proxy, err = r.consul.Registrar.Proxy(ctx, r.token.Secret, r.workload); err == nil {
					r.deps.Log.Warn("Consul had lost the registration, registered again",
						logkey.ProxyID, r.workload.Proxy.ID)
				}
			}
			return err
		})
}

func (r *run) setDefaults(ctx context.Context) error {
	if r.deps.SetDefaults == nil {
		return nil
	}
	return retry.Do(ctx, r.options.Endpoint.Policy.Within(r.options.Limit), r.deps.Log, "set service defaults",
		consulutil.ClassifyNewToken, func(ctx context.Context) error {
			return r.deps.SetDefaults(ctx, r.token.Secret, r.workload)
		})
}

// findTimeout bounds the look for upstreams, which must not delay a task.
const findTimeout = time.Second

// findUpstreams warns of upstreams whose services are not there. That is no failure: they may start later.
func (r *run) findUpstreams(ctx context.Context) error {
	if r.deps.UnknownUpstreams == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	unknown, err := r.deps.UnknownUpstreams(ctx, r.token.Secret, r.workload)
	if err != nil {
		r.deps.Log.Debug("cannot look for upstreams", logkey.Error, err)
	}
	for _, u := range unknown {
		args := []any{logkey.Upstream, u.Name}
		if u.Near != "" {
			args = append(args, logkey.Reason, fmt.Sprintf("did you mean %q?", u.Near))
		}
		r.deps.Log.Warn("no service has the name of an upstream: correct it, unless the service starts later", args...)
	}
	return nil
}

func (r *run) redirect(context.Context) error {
	if r.deps.Redirect == nil {
		return nil
	}
	r.redirected = true
	return r.deps.Redirect.Apply(r.proxy)
}
