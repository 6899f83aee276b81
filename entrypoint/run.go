package entrypoint

import (
	"context"
	"os"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	// drainTimeout bounds one drain request.
	drainTimeout = 3 * time.Second
	// watchPause is the time between two reads before TERM.
	watchPause = time.Second
	// waitPause is the time between two reads after TERM: together with the read
	// itself it keeps the promise that Envoy gets its TERM within 0.15 s of
	// the last application's end.
	waitPause = 125 * time.Millisecond
)

// Child is the wrapped process.
type Child interface {
	// Wait blocks until the child has ended and returns its exit code.
	Wait() int
	// Signal sends to the process, SignalGroup to its whole group.
	Signal(syscall.Signal) error
	SignalGroup(syscall.Signal) error
}

// Metadata reads the task's metadata, for at most some seconds. Anything that is
// not a complete answer must be an error.
type Metadata interface {
	Task(context.Context) (workload.Task, error)
}

// Envoy is a running Envoy and what its supervision needs.
type Envoy struct {
	Child Child
	// Signals are those sent to us, from before the child's start.
	Signals  <-chan os.Signal
	Metadata Metadata
	// Drain asks Envoy to drain its inbound listeners; nil when its admin
	// address is unknown.
	Drain func(context.Context) error
	// Ignore names containers that Envoy does not wait for.
	Ignore []string
	// Callers, if not nil, are a gateway's: Envoy runs until none remain, at most
	// for MaxDelay after TERM.
	Callers  *Callers
	MaxDelay time.Duration
	// KillGrace is the time between TERM and KILL for Envoy; 0 leaves KILL to ECS.
	KillGrace time.Duration
	Log       hclog.Logger
}

// RunEnvoy supervises Envoy until it ends and returns its exit code.
func RunEnvoy(ctx context.Context, e Envoy) int {
	config := envoyConfig{canDrain: e.Drain != nil, killGrace: e.KillGrace}
	if e.Callers != nil {
		config.callers = e.MaxDelay
	}
	var state envoyState
	l := &loop{child: e.Child, signals: e.Signals, log: e.Log, metadata: e.Metadata, drain: e.Drain, ignore: e.Ignore, callers: e.Callers}
	return l.run(ctx, func(ev event) (acts []action) {
		state, acts = config.policy(state, ev)
		return acts
	})
}

// App is a running application and what its supervision needs.
type App struct {
	Child Child
	// Signals are those sent to us, from before the child's start.
	Signals <-chan os.Signal
	// Delay holds the first TERM back, if it is not zero.
	Delay time.Duration
	// Callers, if not nil, ends the delay when none remain.
	Callers *Callers
	// Compat never delivers the first TERM when there is no Delay, as
	// v0.6 did.
	Compat bool
	Log    hclog.Logger
}

// RunApp supervises an application until it ends and returns its exit code.
func RunApp(ctx context.Context, a App) int {
	config := appConfig{delay: a.Delay, watched: a.Callers != nil, compat: a.Compat}
	var state appState
	l := &loop{child: a.Child, signals: a.Signals, log: a.Log, callers: a.Callers}
	return l.run(ctx, func(ev event) (acts []action) {
		state, acts = config.policy(state, ev)
		return acts
	})
}

// loop carries out what a policy decides.
type loop struct {
	child    Child
	signals  <-chan os.Signal
	log      hclog.Logger
	metadata Metadata
	drain    func(context.Context) error
	ignore   []string
	callers  *Callers

	events    chan event         // from awaits
	wake      <-chan time.Time   // nil when nothing is due
	stopAwait context.CancelFunc // of the last await
}

// run returns the child's exit code. Nothing it started blocks its return: a
// hanging read or drain is cancelled.
func (l *loop) run(ctx context.Context, policy func(event) []action) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.events, l.stopAwait = make(chan event), func() {}
	ended := make(chan int, 1)
	go func() { ended <- l.child.Wait() }()
	var next event = started{}
	for {
		for _, a := range policy(next) {
			l.do(ctx, a)
		}
		select {
		case code := <-ended:
			l.log.Info("child ended", logkey.ExitCode, code)
			return code
		case sig := <-l.signals:
			next = signalled{sig.(syscall.Signal)}
		case <-l.wake:
			l.wake = nil
			next = woke{}
		case next = <-l.events:
		}
	}
}

func (l *loop) do(ctx context.Context, a action) {
	switch a := a.(type) {
	case forward:
		l.log.Debug("forwarding signal", logkey.Signal, a.signal)
		l.sent(a.signal, l.child.Signal(a.signal))
	case terminate:
		l.sent(syscall.SIGTERM, l.child.SignalGroup(syscall.SIGTERM))
	case kill:
		l.sent(syscall.SIGKILL, l.child.SignalGroup(syscall.SIGKILL))
	case drain:
		go l.askDrain(ctx)
	case awaitTaskStopping:
		l.await(ctx, taskStopping{}, l.awaitTaskStopping)
	case awaitAppsStopped:
		l.await(ctx, appsStopped{}, l.awaitAppsStopped)
	case awaitCallersGone:
		l.await(ctx, callersGone{}, func(ctx context.Context) error { return l.callers.await(ctx, l.log) })
	case wake:
		l.wake = time.After(a.after)
	case note:
		l.log.Log(a.level, a.text, a.args...)
	}
}

func (l *loop) sent(sig syscall.Signal, err error) {
	if err != nil {
		l.log.Error("cannot signal the child", logkey.Signal, sig, logkey.Error, err)
	}
}

// await sends the event when wait has succeeded. It ends the await before it.
func (l *loop) await(ctx context.Context, then event, wait func(context.Context) error) {
	l.stopAwait()
	ctx, l.stopAwait = context.WithCancel(ctx)
	go func() {
		if wait(ctx) != nil {
			return
		}
		select {
		case l.events <- then:
		case <-ctx.Done():
		}
	}()
}

func (l *loop) awaitTaskStopping(ctx context.Context) error {
	return awsutil.AwaitTask(ctx, l.log, l.metadata.Task, watchPause, func(t workload.Task) bool {
		return t.DesiredStatus == workload.StatusStopped
	})
}

// awaitAppsStopped takes an application that the answer does not list as stopped.
func (l *loop) awaitAppsStopped(ctx context.Context) error {
	_, err := awsutil.AwaitStopped(ctx, l.log, l.metadata.Task, waitPause, func(t workload.Task) []workload.Container {
		return t.Applications(l.ignore)
	})
	return err
}

// askDrain asks until that has worked or Envoy has ended: its admin endpoint may
// not listen yet.
func (l *loop) askDrain(ctx context.Context) {
	policy := retry.LocalAgent()
	policy.Limit = 0
	always := func(error) retry.Class { return retry.Retry }
	err := retry.Do(ctx, policy, l.log, "ask envoy to drain inbound listeners", always, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, drainTimeout)
		defer cancel()
		return l.drain(ctx)
	})
	if err == nil {
		l.log.Info("asked envoy to drain inbound listeners")
	}
}
