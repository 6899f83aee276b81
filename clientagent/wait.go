package clientagent

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/meshtask/consul-ecs/awsutil"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/workload"
)

// waitForEnd stays with the agent until it ends and returns its exit code. The
// first TERM or INT starts the end; every later one changes nothing, because
// consul takes a second one as an order to end at once.
func (r *run) waitForEnd(ctx context.Context, child Child) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan int, 1)
	go func() { ended <- child.Wait() }()
	now := serving
	var happened <-chan struct{} // what the phase waits for
	var wake <-chan time.Time
	for {
		awaited := false
		select {
		case code := <-ended:
			return r.ended(now, code)
		case sig := <-r.deps.Signals:
			if !ends(sig) {
				r.send(child.Signal, sig)
				continue
			}
			if now == serving {
				r.deps.Log.Info("received signal; the agent leaves after the other containers", logkey.Signal, sig)
				r.stopRequested, now = time.Now(), waiting
				happened, cancel = await(ctx, r.awaitSiblings)
			}
		case <-r.reloadsIn(now):
			r.send(child.Signal, syscall.SIGHUP)
		case <-happened:
			happened, awaited = nil, true
		case <-wake:
		}
		since := time.Since(r.stopRequested)
		if then := next(r.budget, now, since, awaited); then != now {
			cancel()
			if now, happened = then, nil; now == leaving {
				happened, cancel = await(ctx, r.awaitLeft)
			}
			r.enter(now, child)
		}
		wake = nil
		if at, bounded := deadline(r.budget, now); bounded {
			wake = time.After(at - since)
		}
	}
}

// ended records and logs how the agent ended. A second TERM makes its exit code 1,
// though it has left.
func (r *run) ended(p phase, code int) int {
	if p == exiting && code == 1 {
		code = 0
	}
	r.departed = (p == leaving || p == exiting) && code == 0
	if p == serving || p == waiting {
		r.deps.Log.Error("consul agent exited unexpectedly; see its last lines", logkey.ExitCode, code)
	} else {
		r.deps.Log.Info("consul agent exited", logkey.ExitCode, code)
	}
	return code
}

// await returns a channel that is closed when wait has succeeded.
func await(ctx context.Context, wait func(context.Context) error) (<-chan struct{}, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	happened := make(chan struct{})
	go func() {
		if wait(ctx) == nil {
			close(happened)
		}
	}()
	return happened, cancel
}

// enter does what a phase starts with.
func (r *run) enter(p phase, child Child) {
	since := time.Since(r.stopRequested).Round(time.Millisecond)
	switch p {
	case leaving:
		r.deps.Log.Info("asking the agent to leave", logkey.Elapsed, since)
		r.send(child.Signal, syscall.SIGTERM)
	case exiting:
		r.deps.Log.Info("the servers know that the agent has left, terminating it", logkey.Elapsed, since)
		r.send(child.Signal, syscall.SIGTERM)
	case killed:
		r.deps.Log.Warn("agent has not left in time, killing it", logkey.Elapsed, since)
		r.send(child.SignalGroup, syscall.SIGKILL)
	}
}

func (r *run) send(signal func(syscall.Signal) error, sig os.Signal) {
	if err := signal(sig.(syscall.Signal)); err != nil {
		r.deps.Log.Error("cannot signal the agent", logkey.Signal, sig, logkey.Error, err)
	}
}

// awaitSiblings returns nil when all other containers have stopped.
func (r *run) awaitSiblings(ctx context.Context) error {
	siblings := func(t workload.Task) []workload.Container { return t.Siblings(r.options.Ignore) }
	_, err := awsutil.AwaitStopped(ctx, r.deps.Log, r.deps.Metadata.Task, awsutil.AwaitPause, siblings)
	if err == nil {
		r.deps.Log.Info("all other containers have stopped")
	}
	return err
}

// awaitLeft returns nil exitDelay after the servers have removed the node of the
// leaving agent. With an error the agent ends by itself.
func (r *run) awaitLeft(ctx context.Context) error {
	id, err := r.files.nodeID()
	if err == nil && (id == "" || r.options.Config.ConsulHTTPAddr == "") {
		err = errors.New("the node ID of the agent or the address of the servers is not known")
	}
	if err == nil {
		err = r.deps.NodeRemoved(ctx, id, r.secret())
	}
	if err != nil {
		r.deps.Log.Debug("cannot check whether the servers know that the agent has left",
			logkey.Node, id, logkey.Error, err)
		return err
	}
	return retry.Sleep(ctx, exitDelay)
}
