package healthsync

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	// tick is how often the task metadata is read. The endpoint allows the containers
	// of a task 40 reads a second together.
	tick = 500 * time.Millisecond

	// fetchTimeout and writeTimeout bound one read and one write. A write
	// includes the agent's attempt to update the servers.
	fetchTimeout = 3 * time.Second
	writeTimeout = 5 * time.Second
	// retryPause and retryPauseMax bound the pauses of what is tried again at start.
	retryPause, retryPauseMax = 250 * time.Millisecond, time.Second
)

// Metadata reads the task; an answer that is not a valid task is an error.
type Metadata interface {
	Task(context.Context) (workload.Task, error)
}

// Options configure what to synchronize.
type Options struct {
	Config *config.Config
	// StopTimeout is the time between SIGTERM and SIGKILL.
	StopTimeout time.Duration
	// Ignore names containers that are no applications, such as log routers.
	Ignore workload.Ignored
	// Region is AWS_REGION; empty when it is not set, which leaves that of the task ARN.
	Region string
	// Version is that of this program, which a registration records.
	Version string
	// StaticToken reports that the Consul environment has a token, which takes the place
	// of a login.
	StaticToken bool
}

// Deps are the ports that Run acts through. consulutil.Classify judges their errors; that
// of an unknown check is retry.Gone.
type Deps struct {
	Metadata Metadata
	// Registrar is where the task is registered. With an agent Register, Proxy and
	// Deregister are called for gateways only.
	Registrar registrar.Registrar
	// Publish waits until the proxy's checks pass, and makes the agent send that to the
	// servers. It is called in a task with an agent that has no checks to write.
	Publish func(ctx context.Context, token string, w workload.Workload) error
	// AwaitStart returns nil when mesh-init has registered the task and written its
	// files, and an error when it has failed.
	AwaitStart func(context.Context) error
	// Serves returns nil when the task serves at the port of loopback now: accepts a
	// connection, or, with a path, answers an HTTP GET with a 2xx status.
	Serves func(ctx context.Context, port int, path string) error
	// Accepts returns nil when the address accepts a TCP connection now.
	Accepts func(ctx context.Context, address string) error
	// LogOut destroys a token; a token that is gone already is no error. It is
	// not called when login is off.
	LogOut func(ctx context.Context, secret string) error
	// ReadToken returns the life of a token by our clock, and LogIn obtains another service token
	// for the task; with a token there is no error, even when ctx has ended meanwhile.
	// They are called when login is on.
	ReadToken func(ctx context.Context, secret string) (consulutil.Token, error)
	LogIn     func(ctx context.Context, w workload.Workload, t workload.Task) (consulutil.Token, error)
	// DeregisterAtServers takes the workload of an agent that is gone out of the servers'
	// catalog; one that is not there is no error. It is not called without consulHTTPAddr.
	DeregisterAtServers func(ctx context.Context, token string, w workload.Workload) error
	// WatchTraffic logs what fails in the traffic of the workload until ctx ends; nil to log nothing.
	WatchTraffic func(ctx context.Context, w workload.Workload, log hclog.Logger)
	Log          hclog.Logger
}

// Run synchronizes until ctx ends, then takes the task out of traffic and logs
// its tokens out. It returns nil when every check was left critical, and an
// error when it could not start or a check may still be passing.
func Run(ctx context.Context, o Options, d Deps) error {
	s := newSyncer(o, d)
	switch err := s.deps.AwaitStart(ctx); {
	case err != nil && ctx.Err() != nil:
		// mesh-init undoes its registration and login when it fails.
		s.task.log.Info("stopped before the task was registered", logkey.Reason, context.Cause(ctx))
		return nil
	case err != nil:
		return err
	}
	if err := s.start(ctx); err != nil && ctx.Err() == nil {
		s.token.logOutSeparate(ctx)
		return err
	}
	if ctx.Err() == nil {
		s.token.startRenewal(ctx, s.registerAgain(ctx))
		s.vouched.Store(true)
		if watch := s.deps.WatchTraffic; watch != nil {
			go watch(ctx, s.task.workload, s.task.log)
		}
		s.evidence = newEvidence(s.options.Config, s.task.workload, s.task.first, s.deps.Accepts)
		s.holdSession(ctx)
		s.loop(ctx)
	}
	s.task.log.Info("stopping: leaving the mesh", logkey.Reason, context.Cause(ctx))
	return s.drain(ctx)
}

// syncer is one run. All fields belong to the goroutine of Run.
type syncer struct {
	options Options
	deps    Deps
	task    *taskState
	token   *serviceToken
	checks  *checkWriter

	startup startup
	// hopeless are the containers of which it is logged that their checks never pass, absent since when the metadata
	// lack one.
	hopeless map[string]bool
	absent   map[string]time.Time
	// metadataFailed is true when the last metadata read failed; evidence takes their place then.
	metadataFailed bool
	evidence       evidence
	// vouched is false when nothing keeps the last statuses any more. The goroutine of the
	// session reads it.
	vouched atomic.Bool
	// holding is closed when the session is no longer kept; nil when there is none to keep.
	holding <-chan struct{}
	// registering is held while the task is registered with another token, and cutOff reports
	// that the end has cut that off.
	registering sync.Mutex
	cutOff      bool
}

func newSyncer(o Options, d Deps) *syncer {
	task := &taskState{options: o, deps: d, log: d.Log}
	token := &serviceToken{options: o, deps: d, task: task, login: o.Config.ConsulLogin.Enabled}
	checks := &checkWriter{
		options: o, deps: d, task: task, token: token,
		last: map[string]written{}, failing: map[string]failure{}, logged: map[string]written{},
		pacer: newPacer(o.Config.Agentless()),
	}
	return &syncer{
		options: o, deps: d, task: task, token: token, checks: checks,
		startup: newStartup(o.Config, d.Serves), hopeless: map[string]bool{}, absent: map[string]time.Time{},
	}
}

// start gets the token and the workload.
func (s *syncer) start(ctx context.Context) error {
	if err := s.token.await(ctx); err != nil {
		return err
	}
	if s.task.checked() {
		return s.task.learn(ctx, retry.StartLimit)
	}
	// No limit: the task serves without this, and must not end for want of it.
	if err := s.task.learn(ctx, 0); err != nil {
		return err
	}
	if s.options.Config.Gateway != nil {
		s.registerGateway(ctx)
	}
	return nil
}
