package healthsync

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/exit"
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
	Log                 hclog.Logger
}

// Run synchronizes until ctx ends, then takes the task out of traffic and logs
// its tokens out. It returns nil when every check was left critical, and an
// error when it could not start or a check may still be passing.
func Run(ctx context.Context, o Options, d Deps) error {
	s := &syncer{
		Options:   o,
		Deps:      d,
		login:     o.Config.ConsulLogin.Enabled,
		last:      map[string]written{},
		failing:   map[string]failure{},
		unchecked: map[string]bool{},
		startup:   newStartup(o.Config, d.Serves),
		pacer:     newPacer(o.Config.Agentless()),
	}
	switch err := s.AwaitStart(ctx); {
	case err != nil && ctx.Err() != nil:
		// mesh-init undoes its registration and login when it fails.
		s.Log.Info("stopped before the task was registered", logkey.Reason, context.Cause(ctx))
		return nil
	case err != nil:
		return err
	}
	if err := s.start(ctx); err != nil && ctx.Err() == nil {
		s.logOutSeparate(ctx)
		return err
	}
	if ctx.Err() == nil {
		s.keepToken(ctx)
		s.vouched.Store(true)
		s.evidence = newEvidence(s.Config, s.w, s.first, s.Accepts)
		s.holdSession(ctx)
		s.loop(ctx)
	}
	s.Log.Info("stopping: leaving the mesh", logkey.Reason, context.Cause(ctx))
	return s.drain(ctx)
}

// syncer is one run. All fields belong to the goroutine of Run.
type syncer struct {
	Options
	Deps
	// login reports that the task has logged in; it is settled by waitForToken.
	login bool

	token string
	// separate reports that token is of a login for this container only.
	separate bool
	renewal  *registrar.Renewal // nil without login, and before the loop
	task     workload.Task      // without containers
	// registering is held while the task is registered with another token, and cutOff reports
	// that the end has cut that off.
	registering sync.Mutex
	cutOff      bool
	// holding is closed when the session is no longer kept; nil when there is none to keep.
	holding <-chan struct{}
	// w is known once the first valid metadata answer came.
	w     workload.Workload
	known bool
	// first is the answer before the loop, for the pass at start.
	first workload.Task

	// last and failing are by check ID.
	last      map[string]written
	failing   map[string]failure
	causes    retry.Causes
	readBacks readBacks
	startup   startup
	pacer     pacer
	// unchecked are the containers of which it is logged that they have no health check.
	unchecked map[string]bool
	// unbound is why the checks would outlive this process, if they would.
	unbound string
	// blind is true when the last metadata read failed; evidence takes their place then.
	blind    bool
	evidence evidence
	// vouched is false when nothing keeps the last statuses any more. The goroutine of the
	// session reads it.
	vouched atomic.Bool
}

// failure is a write that has failed.
type failure struct {
	class  retry.Class
	change change
}

// checked reports whether there are checks to write: without an agent each proxy has one,
// while an agent looks at gateways itself.
func (s *syncer) checked() bool {
	return s.Config.Agentless() || s.Config.Gateway == nil && len(s.Config.HealthSyncContainers) > 0
}

// start gets the token and the workload.
func (s *syncer) start(ctx context.Context) error {
	if err := s.waitForToken(ctx); err != nil {
		return err
	}
	if s.checked() {
		return s.learn(ctx, retry.StartLimit)
	}
	// No limit: the task serves without this, and must not end for want of it.
	if err := s.learn(ctx, 0); err != nil {
		return err
	}
	if s.Config.Gateway != nil {
		s.registerGateway(ctx)
	}
	return nil
}

// learn reads the metadata until an answer makes a workload.
func (s *syncer) learn(ctx context.Context, limit time.Duration) error {
	var w workload.Workload
	var described error
	read := awsutil.Complete(s.fetch, func(t workload.Task) error {
		w, described = workload.New(s.Config, t, s.Region)
		return described
	})
	task, err := awsutil.FirstTask(ctx, s.Log, read, limit)
	switch {
	case err != nil:
		return err
	case described != nil:
		return &exit.UsageError{Err: described} // as in mesh-init
	}
	s.first = task
	if s.known {
		return nil
	}
	s.w, s.known = w, true
	s.Log = s.Log.With(logkey.TaskID, w.TaskID)
	s.Log.Info("started synchronizing health", logkey.ServiceID, w.ID, logkey.Checks, len(w.SyncChecks))
	return nil
}

// fetch reads the metadata once. An answer about another task is no answer.
func (s *syncer) fetch(ctx context.Context) (workload.Task, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	task, err := s.Metadata.Task(ctx)
	if err == nil && s.known && task.TaskARN != s.w.TaskARN {
		err = fmt.Errorf("metadata describes %s, not %s", task.TaskARN, s.w.TaskARN)
	}
	return task, err
}
