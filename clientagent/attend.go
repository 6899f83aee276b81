package clientagent

import (
	"context"
	"os"
	"syscall"
	"time"

	"github.com/meshtask/consul-ecs/awsutil/tmds"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/workload"
)

// attend stays with the agent until it ends and returns its exit code. The
// first TERM or INT starts the end; every later one changes nothing, because
// consul takes a second one as an order to die at once.
func (r *run) attend(ctx context.Context, child Child) int {
	ctx, stopWaiting := context.WithCancel(ctx)
	defer stopWaiting()
	ended := make(chan int, 1)
	go func() { ended <- child.Wait() }()
	stopped := make(chan struct{})
	now, alone := serving, false
	var wake <-chan time.Time
	for {
		select {
		case code := <-ended:
			r.left = now == leaving && code == 0
			r.logEnd(now, code)
			return code
		case sig := <-r.Signals:
			if !ends(sig) {
				r.send(child.Signal, sig)
				continue
			}
			if now == serving {
				r.Log.Info("received signal; the agent leaves after the other containers", logkey.Signal, sig)
				r.told, now = time.Now(), waiting
				go r.awaitSiblings(ctx, stopped)
			}
		case <-stopped:
			stopped, alone = nil, true
		case <-wake:
		}
		if now == serving {
			continue
		}
		since := time.Since(r.told)
		if next := r.schedule.next(now, since, alone); next != now {
			stopWaiting()
			now = next
			r.enter(now, child)
		}
		wake = nil
		if rest, bounded := r.schedule.rest(now, since); bounded {
			wake = time.After(rest)
		}
	}
}

// logEnd says how the agent ended: without our word, it says itself why.
func (r *run) logEnd(p phase, code int) {
	if p == serving || p == waiting {
		r.Log.Error("consul agent exited unexpectedly; see its last lines", logkey.ExitCode, code)
		return
	}
	r.Log.Info("agent ended", logkey.ExitCode, code)
}

// enter does what a phase begins with.
func (r *run) enter(p phase, child Child) {
	since := time.Since(r.told).Round(time.Millisecond)
	switch p {
	case leaving:
		r.Log.Info("telling the agent to leave", logkey.Elapsed, since)
		r.send(child.Signal, syscall.SIGTERM)
	case killed:
		r.Log.Warn("agent has not left in time, killing it", logkey.Elapsed, since)
		r.send(child.SignalGroup, syscall.SIGKILL)
	}
}

func (r *run) send(signal func(syscall.Signal) error, sig os.Signal) {
	if err := signal(sig.(syscall.Signal)); err != nil {
		r.Log.Error("agent cannot be signalled", logkey.Signal, sig, logkey.Error, err)
	}
}

// awaitSiblings closes stopped when all other containers have.
func (r *run) awaitSiblings(ctx context.Context, stopped chan<- struct{}) {
	siblings := func(t workload.Task) []workload.Container { return t.Siblings(r.Ignore) }
	if _, err := tmds.AwaitStopped(ctx, r.Log, r.Metadata.Task, tmds.AwaitPause, siblings); err == nil {
		r.Log.Info("all other containers have stopped")
		close(stopped)
	}
}
