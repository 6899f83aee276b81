package clientagent

import (
	"context"
	"os"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/consulutil"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/registrar"
	"github.com/meshtask/consul-ecs/workload"
)

// Deps are the external interfaces of the flow.
type Deps struct {
	Metadata Metadata
	// Session makes the login's session, for the task.
	Session func(workload.Task, hclog.Logger) Session
	// ReadToken returns the life of a token by our clock.
	ReadToken func(ctx context.Context, secret string) (consulutil.Token, error)
	// Deregister takes a node with all its services out of the servers' catalog,
	// by its ID; a node that is not there is no error.
	Deregister func(ctx context.Context, nodeID, secret string) error
	// NodeRemoved returns nil when the servers have removed a node from their
	// catalog, by its ID; an error when that cannot be observed.
	NodeRemoved func(ctx context.Context, nodeID, secret string) error
	// Start starts the agent.
	Start func(args []string) (Child, error)
	// Signals delivers the signals sent to this process, including those before Run.
	Signals <-chan os.Signal
	Log     hclog.Logger
}

// Metadata reads the task, once and for at most some seconds; an answer that is
// not a valid task is an error.
type Metadata interface {
	Task(context.Context) (workload.Task, error)
}

// Session is the login; *consulutil.Session is one. It talks to the servers:
// there is no agent before the login and none after the leave.
type Session interface {
	Login(context.Context, consulutil.LoginParams) (consulutil.Token, error)
	Logout(ctx context.Context, secret string) error
}

// Child is the agent's process.
type Child interface {
	// Wait blocks until the child has ended and returns its exit code.
	Wait() int
	// Signal sends to the process, SignalGroup to its whole group.
	Signal(syscall.Signal) error
	SignalGroup(syscall.Signal) error
}

// Run runs the agent until it ends. The result is its exit code as a
// *exit.CodeError (nil for 0), or why it was not started: a *exit.UsageError, a
// *retry.PermanentError (refused) or anything else (gave up, or a signal).
// Whatever it is, the tokens of this run and of an earlier one are logged out.
func Run(ctx context.Context, o Options, d Deps) error {
	r := newRun(o, d)
	code, err := r.run(ctx)
	r.end(ctx)
	if err == nil && code != exit.CodeOK {
		err = &exit.CodeError{Code: code}
	}
	return err
}

// run is the state of one run.
type run struct {
	options Options
	deps    Deps
	files   files
	budget  workload.StopBudget

	task workload.Task
	// address is where the agent binds.
	address string
	// session is nil when ACLs are off.
	session Session
	// token is of the login, or that of an earlier run when the login failed.
	token consulutil.Token
	// renewal replaces the token while the agent runs; nil before, and when ACLs are off.
	renewal *registrar.Renewal
	// reloads asks for a signal to the agent, which has to read its configuration again.
	reloads chan struct{}
	// writing reports that the volume has been checked, so that there may be files
	// of ours.
	writing bool
	// command is the agent's.
	command []string
	// started is when the agent was, and stopRequested when the first TERM or INT came.
	started, stopRequested time.Time
	// departed reports whether the agent left when it was asked to.
	departed bool
}

func newRun(o Options, d Deps) *run {
	r := &run{options: o, deps: d, budget: workload.NewStopBudget(o.StopTimeout), reloads: make(chan struct{})}
	r.files = files{&r.options, &r.deps}
	return r
}

func (r *run) run(ctx context.Context) (code int, err error) {
	if err := r.prepare(ctx); err != nil {
		return 0, err
	}
	child, err := r.deps.Start(r.command)
	if err != nil {
		return 0, &exit.UsageError{Err: err}
	}
	r.started = time.Now()
	r.keepToken(ctx)
	r.deps.Log.Info("agent started", logkey.Address, r.address)
	return r.waitForEnd(ctx, child), nil
}

// prepare runs the steps, until TERM or INT. Other signals are ignored, since the
// agent does not run yet.
func (r *run) prepare(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	prepared := make(chan error, 1)
	go func() { prepared <- r.steps(ctx) }()
	for {
		select {
		case err := <-prepared:
			if err == nil && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		case sig := <-r.deps.Signals:
			if ends(sig) && r.stopRequested.IsZero() {
				r.stopRequested = time.Now()
				cancel(&exit.SignalError{Signal: sig})
			}
		}
	}
}

// ends reports whether the signal requests the shutdown.
func ends(sig os.Signal) bool { return sig == syscall.SIGTERM || sig == syscall.SIGINT }
