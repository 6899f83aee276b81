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

// loop carries out what a policy decides.
type loop struct {
	child    Child
	start    func() (Child, error) // starts the child again
	signals  <-chan os.Signal
	log      hclog.Logger
	metadata Metadata
	drain    func(context.Context) error
	ignore   workload.Ignored
	callers  *Callers
	refused  <-chan struct{}

	events    chan event         // from awaits
	ended     chan int           // exit codes of the child
	wake      <-chan time.Time   // nil when nothing is due
	restart   <-chan time.Time   // nil while the child runs
	stopAwait context.CancelFunc // of the last await
}

// run returns the exit code that the policy decides on. Nothing it started blocks its
// return: a hanging read or drain is cancelled.
func (l *loop) run(ctx context.Context, policy func(event) []action) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.events, l.ended, l.stopAwait = make(chan event), make(chan int, 1), func() {}
	begin, code := time.Now(), 0
	l.wait()
	var next event = started{}
	for {
		for _, a := range policy(next) {
			if end, ok := a.(exit); ok {
				return end.code
			}
			l.do(ctx, a)
		}
		select {
		case code = <-l.ended:
			l.log.Info("child exited", logkey.ExitCode, code)
			next = exited{code, time.Since(begin)}
		case <-l.restart:
			l.restart = nil
			child, err := l.start()
			if err != nil {
				l.log.Error("cannot start the child again", logkey.Error, err)
				return code
			}
			l.child = child
			l.wait()
			next = restarted{}
		case sig := <-l.signals:
			next = signalled{sig.(syscall.Signal)}
		case <-l.wake:
			l.wake = nil
			next = woke{}
		case <-l.refused:
			next = refused{}
		case next = <-l.events:
		}
	}
}

// wait reports the end of the child.
func (l *loop) wait() {
	child := l.child
	go func() { l.ended <- child.Wait() }()
}

func (l *loop) do(ctx context.Context, a action) {
	switch a := a.(type) {
	case forward:
		l.log.Debug("forwarding signal", logkey.Signal, a.signal)
		l.sent(a.signal, l.child.Signal(a.signal))
	case signalGroup:
		l.sent(a.signal, l.child.SignalGroup(a.signal))
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
	case restart:
		l.restart = time.After(a.after)
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
	err := retry.Do(ctx, retry.LocalAgent().Within(0), l.log, "ask envoy to drain inbound listeners",
		retry.Always, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, drainTimeout)
			defer cancel()
			return l.drain(ctx)
		})
	if err == nil {
		l.log.Info("asked envoy to drain inbound listeners")
	}
}
