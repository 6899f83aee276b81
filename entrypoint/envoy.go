package entrypoint

import (
	"context"
	"os"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/internal/logkey"
)

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
	var state envoyState
	l := &loop{child: e.Child, signals: e.Signals, log: e.Log, metadata: e.Metadata, drain: e.Drain, ignore: e.Ignore, callers: e.Callers}
	return l.run(ctx, func(ev event) (acts []action) {
		state, acts = e.policy(state, ev)
		return acts
	})
}

type envoyPhase int

const (
	envoyServing  envoyPhase = iota // no TERM yet
	envoyLeaving                    // TERM is held back until no caller of a gateway remains
	envoyWaiting                    // TERM is held back until the applications have stopped
	envoyStopping                   // TERM was passed on
)

type envoyState struct {
	phase envoyPhase
	// draining reports that the drain has started, perhaps before TERM.
	draining bool
}

// policy never forwards TERM. ECS wants Envoy to end, but the applications may
// still send through it, so Envoy gets TERM when a valid answer lists no
// application that runs. Callers of a gateway call Envoy itself: first none may
// remain.
//
// It reads metadata before TERM for one reason: ECS stops containers in
// reverse dependsOn order, so TERM arrives here only after the applications have
// stopped, and inbound draining at that time is too late. The task's desired
// status turns STOPPED at the moment the applications get their TERM.
func (e Envoy) policy(s envoyState, ev event) (envoyState, []action) {
	switch ev := ev.(type) {
	case started:
		if e.Drain != nil {
			return s, []action{awaitTaskStopping{}}
		}
	case signalled:
		if ev.signal != syscall.SIGTERM {
			return s, []action{forward(ev)}
		}
		if s.phase == envoyServing {
			return e.term(s)
		}
	case taskStopping:
		if s.phase == envoyServing {
			s.draining = true
			return s, []action{info("task is stopping, draining inbound listeners"), drain{}}
		}
	case callersGone:
		if s.phase == envoyLeaving {
			return s.await("no callers remain")
		}
	case appsStopped:
		if s.phase == envoyWaiting {
			return e.stop(s)
		}
	case woke:
		return e.woke(s)
	}
	return s, nil
}

func (e Envoy) woke(s envoyState) (envoyState, []action) {
	switch s.phase {
	case envoyLeaving:
		return s.await("timed out waiting for callers to leave")
	case envoyStopping:
		if e.KillGrace == 0 { // ECS kills; this wake is of the wait for callers
			return s, nil
		}
		return s, []action{warn("envoy did not exit in time, killing it", logkey.Elapsed, e.KillGrace), signalGroup{syscall.SIGKILL}}
	}
	return s, nil
}

// term handles the first TERM.
func (e Envoy) term(s envoyState) (envoyState, []action) {
	var acts []action
	if e.Callers != nil {
		s.phase = envoyLeaving
		acts = []action{info("received SIGTERM, the gateway keeps running until no callers remain", logkey.Delay, e.MaxDelay), wake{e.MaxDelay}, awaitCallersGone{}}
	} else {
		s, acts = s.await("received SIGTERM")
	}
	if e.Drain != nil && !s.draining {
		s.draining = true
		acts = append(acts, drain{})
	}
	return s, acts
}

// await waits for the applications, for that reason.
func (s envoyState) await(reason string) (envoyState, []action) {
	s.phase = envoyWaiting
	// The acceptance tests of hashicorp's Terraform modules look for these words.
	return s, []action{info("waiting for application container(s) to stop", logkey.Reason, reason), awaitAppsStopped{}}
}

func (e Envoy) stop(s envoyState) (envoyState, []action) {
	s.phase = envoyStopping
	acts := []action{info("all applications have stopped, terminating envoy"), signalGroup{syscall.SIGTERM}}
	if e.KillGrace > 0 {
		acts = append(acts, wake{e.KillGrace})
	}
	return s, acts
}
