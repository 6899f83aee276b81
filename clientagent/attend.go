package clientagent

import (
	"context"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	// waitPause lies between two metadata reads after TERM; the endpoint allows
	// the whole task 40 reads per second.
	waitPause = 250 * time.Millisecond
	// readTimeout bounds one read.
	readTimeout = 3 * time.Second
)

// attend stays with the agent until it ends and returns its exit code. The
// first TERM or INT starts the end; every later one changes nothing, because
// consul takes a second one as an order to die at once.
func (r *run) attend(ctx context.Context, child Child) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan int, 1)
	go func() { ended <- child.Wait() }()
	alone := make(chan struct{})
	now, left := serving, false
	var wake <-chan time.Time
	for {
		select {
		case code := <-ended:
			r.Log.Info("agent ended", logkey.ExitCode, code)
			r.left = now == leaving && code == 0
			return code
		case sig := <-r.Signals:
			if !ends(sig) {
				r.send(child.Signal, sig)
				continue
			}
			if now == serving {
				r.Log.Info("got the signal to end, the agent stays until the other containers have stopped", logkey.Signal, sig)
				r.told, now = time.Now(), waiting
				go r.awaitSiblings(ctx, alone)
			}
		case <-alone:
			alone, left = nil, true
		case <-wake:
		}
		if now == serving {
			continue
		}
		since := time.Since(r.told)
		if next := r.schedule.next(now, since, left); next != now {
			now = next
			r.enter(now, child)
		}
		wake = nil
		if rest, bounded := r.schedule.rest(now, since); bounded {
			wake = time.After(rest)
		}
	}
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

// awaitSiblings closes alone when a valid answer shows that all other
// containers have stopped. A failed read says nothing about them.
func (r *run) awaitSiblings(ctx context.Context, alone chan<- struct{}) {
	var shown []string
	for blind := false; ; {
		task, err := r.read(ctx)
		running := workload.Running(task.Siblings(r.Ignore))
		switch {
		case err != nil && ctx.Err() == nil && !blind:
			r.Log.Warn("task metadata unreadable, the agent stays", logkey.Error, err)
			blind = true
		case err == nil && len(running) == 0:
			r.Log.Info("all other containers have stopped")
			close(alone)
			return
		case err == nil && !slices.Equal(shown, running):
			r.Log.Info("waiting for containers", logkey.Container, running)
			shown = running
		}
		select {
		case <-time.After(waitPause):
		case <-ctx.Done():
			return
		}
	}
}

func (r *run) read(ctx context.Context) (workload.Task, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return r.Metadata.Task(ctx)
}
