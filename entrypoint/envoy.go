package entrypoint

import (
	"slices"
	"syscall"
	"time"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/workload"
)

const (
	// watchPause lies between two reads before TERM.
	watchPause = time.Second
	// waitPause lies between two reads after TERM: together with the read
	// itself it keeps the promise that Envoy gets its TERM within 0.15 s of
	// the last application's end. The endpoint allows the whole task 40 reads
	// per second.
	waitPause = 125 * time.Millisecond
)

// envoyConfig is what Envoy's policy needs to know.
type envoyConfig struct {
	// canDrain says that Envoy's admin address is known.
	canDrain bool
	// killGrace is the time between TERM and KILL for Envoy; zero leaves KILL
	// to ECS.
	killGrace time.Duration
}

type envoyPhase int

const (
	envoyServing  envoyPhase = iota // no TERM yet
	envoyWaiting                    // TERM is held back until the applications have stopped
	envoyStopping                   // TERM was passed on
)

type envoyState struct {
	phase envoyPhase
	// turn numbers the reads; an answer to an older one decides nothing.
	turn int
	// draining says that the task was seen stopping before TERM.
	draining bool
	// failing says that the last read failed, to log the change only.
	failing bool
	// running is the last logged list, for the same reason.
	running []string
}

// policy never forwards TERM. ECS wants Envoy to end, but the applications may
// still send through it, so Envoy gets TERM when a valid answer lists no
// application that runs.
//
// It reads metadata before TERM for one reason: ECS stops containers in
// reverse dependsOn order, so TERM comes here only after the applications have
// stopped, and inbound draining at that time is too late. The task's desired
// status turns STOPPED at the moment the applications are told.
func (c envoyConfig) policy(s envoyState, e event) (envoyState, []action) {
	switch e := e.(type) {
	case began:
		if c.canDrain {
			return s, []action{wake{watchPause}}
		}
	case signalled:
		if e.signal != syscall.SIGTERM {
			return s, []action{forward(e)}
		}
		if s.phase == envoyServing {
			return c.term(s)
		}
	case woke:
		if s.phase == envoyStopping {
			return s, []action{warn("envoy did not end in time, killing it", logkey.Elapsed, c.killGrace), kill{}}
		}
		s.turn++
		return s, []action{read{s.turn}}
	case answered:
		if e.turn == s.turn {
			return c.learn(s, e.observation)
		}
	case unanswered:
		if e.turn == s.turn {
			return c.miss(s, e.err)
		}
	}
	return s, nil
}

// term handles the first TERM.
func (c envoyConfig) term(s envoyState) (envoyState, []action) {
	s.phase = envoyWaiting
	s.turn++ // an answer from before TERM may list less than there will be
	acts := []action{info("got TERM, envoy keeps running until the applications have stopped")}
	if c.canDrain {
		// Repeated after an early drain on purpose: that one may have failed,
		// and Envoy takes a second request as the first.
		acts = append(acts, drain{})
	}
	return s, append(acts, wake{waitPause})
}

// learn handles a valid answer.
func (c envoyConfig) learn(s envoyState, o observation) (envoyState, []action) {
	var acts []action
	if s.failing {
		s.failing = false
		acts = append(acts, info("task metadata can be read again"))
	}
	switch {
	case s.phase == envoyServing && o.stopping:
		// Nothing more to learn before TERM: no further wake.
		s.draining = true
		return s, append(acts, info("task is stopping, draining inbound listeners"), drain{})
	case s.phase == envoyServing:
		return s, append(acts, wake{watchPause})
	case s.phase == envoyStopping:
		return s, acts
	case len(o.running) == 0:
		s.phase = envoyStopping
		acts = append(acts, info("all applications have stopped, terminating envoy"), terminate{})
		if c.killGrace > 0 {
			acts = append(acts, wake{c.killGrace})
		}
		return s, acts
	}
	if !slices.Equal(s.running, o.running) {
		s.running = o.running
		acts = append(acts, info("waiting for applications", logkey.Container, o.running))
	}
	return s, append(acts, wake{waitPause})
}

// miss handles a failed read, which says nothing about the applications.
func (c envoyConfig) miss(s envoyState, err error) (envoyState, []action) {
	var acts []action
	if !s.failing {
		s.failing = true
		acts = append(acts, warn("task metadata cannot be read, envoy keeps running", logkey.Error, err))
	}
	switch s.phase {
	case envoyServing:
		return s, append(acts, wake{watchPause})
	case envoyWaiting:
		return s, append(acts, wake{waitPause})
	}
	return s, acts
}

// observe reduces a valid answer. An application that the answer does not list
// is not running.
func observe(t workload.Task, ignore []string) observation {
	return observation{
		stopping: t.DesiredStatus == workload.StatusStopped,
		running:  workload.Running(t.Applications(ignore)),
	}
}
