package meshinit

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/bootstrap"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/internal/volume"
	"github.com/meshtask/consul-ecs/registrar"
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
	// Proxy makes the files that the proxy starts from.
	Proxy ProxyFiles
	// Region is AWS_REGION; empty when it is not set, which leaves that of the task ARN.
	Region string
	// Version is that of this program, which a registration records.
	Version string
	// Limit bounds each wait: for metadata, for a login, for Consul.
	Limit time.Duration
	// Endpoint is where the task registers.
	Endpoint ConsulEndpoint
}

// ConsulEndpoint is where tasks register: the agent in the task, or the Consul servers.
type ConsulEndpoint struct {
	// Policy has the pauses between attempts there, without a limit.
	Policy retry.Policy
	// ClientRemedy and Remedy are what to check when no client for it could be made,
	// and when it does not answer.
	ClientRemedy, Remedy string
}

// agentStart is how long an agent may take to start and join without a warning. ECS alone may start it 5 s late, after
// the program is on the volume.
const agentStart = 15 * time.Second

// AgentEndpoint returns the endpoint of a Consul client agent in the task. It starts at the same
// time, and every pause delays the task's first request. A refused connection costs little.
func AgentEndpoint() ConsulEndpoint {
	return ConsulEndpoint{
		Policy: retry.Policy{Base: 20 * time.Millisecond, Max: 100 * time.Millisecond,
			Expected: agentStart},
		ClientRemedy: "does the consul-client container write the files that CONSUL_CACERT and the like name?",
		Remedy:       "is the consul-client container running, and has it joined the datacenter?",
	}
}

// ServersEndpoint returns the endpoint of the Consul servers, for a task without an agent.
func ServersEndpoint() ConsulEndpoint {
	return ConsulEndpoint{
		Policy:       retry.Remote(),
		ClientRemedy: "check consulServers and the CA files that it names",
		Remedy:       "check consulServers.hosts and http, and that this task can reach the Consul servers",
	}
}

// Deps are the external interfaces of the flow.
type Deps struct {
	Metadata Metadata
	// Consul returns where the task registers. It is called until it succeeds, because
	// another container may still be writing the CA file; a permanent error ends that.
	Consul func() (Consul, error)
	// Session makes the login's session, for the task.
	Session func(workload.Task, hclog.Logger) *consulutil.Session
	// SetDefaults merges what the configuration has of the service's defaults into
	// Consul's; nil when it has none.
	SetDefaults func(ctx context.Context, token string, w workload.Workload) error
	// UnknownUpstreams returns the upstreams that no service has the name of; nil for a task without upstreams.
	UnknownUpstreams func(ctx context.Context, token string, w workload.Workload) ([]registrar.UnknownUpstream, error)
	// Redirect changes the task's network; nil when nothing is to be changed.
	Redirect Redirection
	// CopyProgram puts this program at the path for the other containers, or
	// leaves the path as it was.
	CopyProgram func(path string) error
	Log         hclog.Logger
}

// Redirection leads the traffic of the task's containers to the proxy.
type Redirection interface {
	// Suspend ends the effect of what an earlier run applied. Its error is of a container
	// that may not change the network, which so ends before anything is registered.
	Suspend() error
	Apply(p bootstrap.Proxy) error
	// Restore ends Suspend, or with remove removes what Apply did.
	Restore(remove bool) error
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

// Consul is where the task registers.
type Consul struct {
	Registrar Registrar
	// Token is the environment's, which the proxy presents when logins are off.
	Token string
}

// Run makes the task part of the mesh. Errors are a *exit.UsageError (mistake in
// the configuration or the volume), a *retry.PermanentError (refused) or
// anything else (gave up); then no token and no file of this run are left.
func Run(ctx context.Context, o Options, d Deps) error {
	r := &run{options: o, deps: d}
	start := time.Now()
	if err := r.run(ctx); err != nil {
		if volume.Full(err) { // since the check
			err = &exit.UsageError{Err: err}
		}
		r.undo(ctx)
		// After the token's logout, which a volume that hangs must not prevent.
		r.reportFailure(ctx, err)
		return err
	}
	r.deps.Log.Info("task is ready for the mesh", logkey.ServiceID, r.workload.ID, logkey.ProxyID, r.workload.Proxy.ID,
		logkey.Elapsed, time.Since(start))
	return nil
}

// run is the state that one step leaves to the next.
type run struct {
	options Options
	deps    Deps

	consul   Consul
	task     workload.Task
	workload workload.Workload
	// session and token are set by the login; with resumed a token is an earlier run's.
	session *consulutil.Session
	token   consulutil.Token
	resumed bool
	proxy   bootstrap.Proxy
	// copying delivers the result of the copy that runs beside the requests;
	// nil when none does.
	copying chan error
	// registering is set once this run may have registered what no earlier run
	// of the task had.
	registering bool
	// written are the files of this run, to be removed if it fails.
	written []string
	// suspended is set once an earlier run's redirection is, and redirected before
	// the traffic is redirected.
	suspended, redirected bool
	// stored is set once a file holds the token.
	stored bool
	// wasReady is set when an earlier run of the task succeeded.
	wasReady bool
	// reporting is closed when the last report of a step is written; nil before the first.
	reporting chan struct{}
}

const unknownTokenRemedy = "Consul does not know the token: correct CONSUL_HTTP_TOKEN, if it is set; otherwise the " +
	"token of the login was deleted, or is not replicated"

// step is one thing that mesh-init does.
type step struct {
	name string
	do   func(context.Context) error
	// remedy is what to look at when the step gives up.
	remedy string
}

// steps returns all that mesh-init does. The checks come first, so that a wrong
// mount or configuration never costs a token.
func (r *run) steps() []step {
	return []step{
		{"check bootstrap directory", r.checkDir, ""},
		{"check proxy settings", r.checkProxy, ""},
		{"read task metadata", r.readMetadata, ""},
		{"prepare Consul client", r.prepareClient, r.options.Endpoint.ClientRemedy},
		{"start copying program", r.startCopy, ""},
		{"log in", r.login, ""},
		{"register", r.register, r.options.Endpoint.Remedy},
		{"read proxy", r.readProxy, r.options.Endpoint.Remedy},
		{"set service defaults", r.setDefaults, r.options.Endpoint.Remedy},
		{"look for upstreams", r.findUpstreams, ""},
		{"finish copying program", r.finishCopy, ""},
		{"write proxy files", r.writeProxyFiles, ""},
		{"write token", r.writeToken, ""},
		{"redirect traffic", r.redirect, ""}, // no request to Consul comes after it
	}
}

func (r *run) run(ctx context.Context) error {
	for _, s := range r.steps() {
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", s.name, context.Cause(ctx))
		}
		start := time.Now()
		end := r.reportStep(s.name)
		err := s.do(ctx)
		end()
		if err != nil {
			remedy := s.remedy
			switch {
			case consulutil.UnknownToken(err) && remedy != "":
				remedy = unknownTokenRemedy
			case consulutil.Status(err) == http.StatusForbidden:
				remedy = "" // a refusal has its own
			}
			return consulutil.Remedy(err, s.name, remedy)
		}
		r.deps.Log.Debug("step finished", logkey.Step, s.name, logkey.Elapsed, time.Since(start))
	}
	return r.reportReady(ctx)
}
