package entrypoint

import (
	"syscall"
	"time"

	"github.com/meshtask/consul-ecs/internal/logkey"
)

// envoyConfig is what Envoy's policy needs to know.
type envoyConfig struct {
	// canDrain reports that Envoy's admin address is known.
	canDrain bool
	// killGrace is the time between TERM and KILL for Envoy; zero leaves KILL
	// to ECS.
	killGrace time.Duration
	// callers is how long a gateway waits for its callers at most; zero when Envoy is
	// no gateway.
	callers time.Duration
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
func (c envoyConfig) policy(s envoyState, e event) (envoyState, []action) {
	switch e := e.(type) {
	case started:
		if c.canDrain {
			return s, []action{awaitTaskStopping{}}
		}
	case signalled:
		if e.signal != syscall.SIGTERM {
			return s, []action{forward(e)}
		}
		if s.phase == envoyServing {
			return c.term(s)
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
			return c.stop(s)
		}
	case woke:
		return c.woke(s)
	}
	return s, nil
}

func (c envoyConfig) woke(s envoyState) (envoyState, []action) {
	switch s.phase {
	case envoyLeaving:
		return s.await("the wait for callers is over")
	case envoyStopping:
		if c.killGrace == 0 { // ECS kills; this wake is of the wait for callers
			return s, nil
		}
		return s, []action{warn("envoy did not exit in time, killing it", logkey.Elapsed, c.killGrace), kill{}}
	}
	return s, nil
}

// term handles the first TERM.
func (c envoyConfig) term(s envoyState) (envoyState, []action) {
	var acts []action
	if c.callers > 0 {
		s.phase = envoyLeaving
		acts = []action{info("received SIGTERM, the gateway keeps running until no callers remain", logkey.Delay, c.callers), wake{c.callers}, awaitCallersGone{}}
	} else {
		s, acts = s.await("received SIGTERM")
	}
	if c.canDrain && !s.draining {
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

func (c envoyConfig) stop(s envoyState) (envoyState, []action) {
	s.phase = envoyStopping
	acts := []action{info("all applications have stopped, terminating envoy"), terminate{}}
	if c.killGrace > 0 {
		acts = append(acts, wake{c.killGrace})
	}
	return s, acts
}
