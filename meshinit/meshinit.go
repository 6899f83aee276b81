package meshinit

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/workload"
)

// Options are what the user decides.
type Options struct {
	Config *config.Config
	// Compat gives the files the modes of version 0.6.
	Compat bool
	// FileGroup is the group ID of files that hold a token;
	// volume.GroupOfDir leaves it to the directory.
	FileGroup int
	// GRPC is how Envoy will reach the agent.
	GRPC GRPC
	// Env is what statsd addresses in the proxy configuration may refer to.
	Env map[string]string
	// ReadyBind is IP:port of Envoy's readiness listener; none when empty.
	ReadyBind string
	// Region is AWS_REGION; empty when it is not set.
	Region string
	// Limit bounds each wait: for metadata, for a login, for the local agent.
	Limit time.Duration
}

// Ports are how the flow reaches the world.
type Ports struct {
	Metadata Metadata
	// Agent returns the local agent. It is called until it succeeds, because
	// the agent's container may still be writing the CA file; a permanent error
	// ends that.
	Agent func() (Agent, error)
	// Servers returns a client for the address that logins go to, again until
	// it succeeds.
	Servers func() (*api.Client, error)
	// Bearer signs a login for now; nil when logins are off.
	Bearer func(context.Context, workload.Task) (string, error)
	// CopyProgram puts this program at the path for the other containers, or
	// leaves the path as it was.
	CopyProgram func(path string) error
	Log         hclog.Logger
}

// Metadata is the task metadata endpoint.
type Metadata interface {
	Task(context.Context) (workload.Task, error)
}

// Registrar is the part of registrar.Registrar that is needed here.
type Registrar interface {
	Register(ctx context.Context, token string, w workload.Workload) error
	Deregister(ctx context.Context, token string, w workload.Workload) error
	Proxy(ctx context.Context, token string, w workload.Workload) (bootstrap.Proxy, error)
}

// Agent is the local agent.
type Agent struct {
	Registrar Registrar
	// Token is the environment's, which Envoy presents when logins are off.
	Token string
}

// Run makes the task part of the mesh. Errors are a *exit.UsageError (mistake in
// the configuration or the volume), a *retry.PermanentError (refused) or
// anything else (gave up); then no token and no file of this run are left.
func Run(ctx context.Context, o Options, p Ports) error {
	r := &run{Options: o, Ports: p}
	start := time.Now()
	if err := r.run(ctx); err != nil {
		r.undo(ctx)
		// After the token's logout, which a volume that hangs must not prevent.
		r.reportFailure(ctx, err)
		return err
	}
	r.Log.Info("task is ready for the mesh", logkey.ServiceID, r.workload.ID, logkey.ProxyID, r.workload.Proxy.ID, logkey.Elapsed, time.Since(start))
	return nil
}

// run is the state that one step leaves to the next.
type run struct {
	Options
	Ports

	agent    Agent
	task     workload.Task
	workload workload.Workload
	// session and token are set by the login.
	session *consulutil.Session
	token   consulutil.Token
	proxy   bootstrap.Proxy
	// copying delivers the result of the copy that runs beside the requests;
	// nil when none does.
	copying chan error
	// registering is set once this run may have registered what no earlier run
	// of the task had.
	registering bool
	// written are the files of this run, to be removed if it fails.
	written []string
	// resumed is set when token is an earlier run's.
	resumed bool
	// wasReady is set when an earlier run of the task succeeded.
	wasReady bool
}

// step is one thing that mesh-init does.
type step struct {
	name string
	do   func(context.Context) error
	// remedy is what to look at when the step gives up.
	remedy string
}

// steps are all there is to mesh-init. The checks come first, so that a wrong
// mount or configuration never costs a token.
func (r *run) steps() []step {
	return []step{
		{"check bootstrap directory", r.checkDir, ""},
		{"check gRPC address", r.checkGRPC, ""},
		{"read task metadata", r.readMetadata, "only ECS answers there: check the ECS agent and network rules on its host; on Fargate, platform 1.4.0 or later"},
		{"prepare local agent client", r.prepareAgent, "does the consul-client container write the files that CONSUL_CACERT and the like name?"},
		{"describe workload", r.describe, ""},
		{"start copying program", r.startCopy, ""},
		{"log in", r.login, ""},
		{"wait for token replication", r.waitReplicated, ""},
		{"register", r.register, "is the consul-client container running, and has it joined the datacenter?"},
		{"read proxy", r.readProxy, "is the consul-client container running?"},
		{"finish copying program", r.finishCopy, ""},
		{"write bootstrap", r.writeBootstrap, ""},
		{"write token", r.writeToken, ""},
		{"write status", r.reportReady, ""},
	}
}

func (r *run) run(ctx context.Context) error {
	for _, s := range r.steps() {
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", s.name, context.Cause(ctx))
		}
		start := time.Now()
		r.reportStep(s.name)
		if err := s.do(ctx); err != nil {
			remedy := s.remedy
			if consulutil.Status(err) == http.StatusForbidden {
				remedy = "" // a refusal has its own
			}
			return consulutil.Remedy(err, s.name, remedy)
		}
		r.Log.Debug("step finished", logkey.Step, s.name, logkey.Elapsed, time.Since(start))
	}
	return nil
}
