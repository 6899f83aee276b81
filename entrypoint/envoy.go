package entrypoint

import (
	"context"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	codes "github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/workload"
	"golang.org/x/sys/unix"
)

// Envoy is a running Envoy and what its supervision needs.
type Envoy struct {
	Child Child
	// Start starts Envoy again after a crash; nil when nothing does.
	Start func() (Child, error)
	// Signals are those sent to us, from before the child's start.
	Signals  <-chan os.Signal
	Metadata Metadata
	// Drain asks Envoy to drain its inbound listeners; nil when its admin
	// address is unknown.
	Drain func(context.Context) error
	// Ignore names containers that Envoy does not wait for.
	Ignore workload.Ignored
	// Callers, if not nil, are a gateway's: Envoy runs until none remain, at most
	// for MaxDelay after TERM.
	Callers  *Callers
	MaxDelay time.Duration
	// Refused, if not nil, gets a value when the Consul servers refuse this Envoy permanently.
	Refused <-chan struct{}
	// KillGrace is the time between TERM and KILL for Envoy; 0 leaves KILL to ECS.
	KillGrace time.Duration
	Log       hclog.Logger
}

// RunEnvoy supervises Envoy until it ends, and is not started again, and returns its exit
// code.
func RunEnvoy(ctx context.Context, e Envoy) int {
	var state envoyState
	l := &loop{
		child: e.Child, start: e.Start, signals: e.Signals, log: e.Log, metadata: e.Metadata,
		drain: e.Drain, ignore: e.Ignore, callers: e.Callers, refused: e.Refused,
	}
	return l.run(ctx, func(ev event) (acts []action) {
		state, acts = e.policy(state, ev)
		return acts
	})
}

// restartWindow is the time in which Envoy may be started again once for each of
// restartPauses, which come before the starts. An Envoy that cannot run, since it refuses its
// bootstrap, ends within seconds all the same.
const restartWindow = 5 * time.Minute

var restartPauses = [...]time.Duration{100 * time.Millisecond, 500 * time.Millisecond, time.Second}

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
	// interrupted reports that a signal which ends Envoy was forwarded.
	interrupted bool
	// crashes are the times of the last ones.
	crashes []time.Duration
	// down reports that Envoy crashed, with that code, and is about to be started again.
	down bool
	code int
	// refused reports that Envoy ends because the servers refuse it.
	refused bool
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
		return e.signalled(s, ev)
	case exited:
		return e.exited(s, ev)
	case restarted:
		s.down = false
		if s.draining {
			return s, []action{drain{}}
		}
	case taskStopping:
		if s.phase == envoyServing {
			s.draining = true
			return s, []action{info("task is stopping, draining inbound listeners"), drain{}}
		}
	case refused:
		return e.refuse(s)
	case callersGone:
		if s.phase == envoyLeaving {
			return s.await("no callers remain")
		}
	case appsStopped:
		if s.phase == envoyWaiting {
			return e.stop(s, "all applications have stopped, terminating envoy")
		}
	case woke:
		return e.woke(s)
	}
	return s, nil
}

func (e Envoy) signalled(s envoyState, ev signalled) (envoyState, []action) {
	switch ev.signal {
	case syscall.SIGTERM:
		if s.phase == envoyServing {
			return e.onTERM(s)
		}
		return s, nil
	case syscall.SIGINT, syscall.SIGQUIT:
		if s.down {
			return s, []action{exit{s.code}}
		}
		s.interrupted = true
	}
	return s, []action{forward(ev)}
}

// refuse ends an Envoy that nothing else has asked to end.
func (e Envoy) refuse(s envoyState) (envoyState, []action) {
	if s.phase != envoyServing {
		return s, nil
	}
	s.refused, s.code = true, codes.CodeRefused
	return e.stop(s, "the Consul servers refuse this Envoy, terminating it")
}

// exited handles the end of Envoy. While applications may send through it, one that
// nothing has asked to end is started again, unless it has crashed too often.
func (e Envoy) exited(s envoyState, ev exited) (envoyState, []action) {
	past := func(at time.Duration) bool { return ev.at-at >= restartWindow }
	s.crashes = slices.DeleteFunc(slices.Clone(s.crashes), past)
	n := len(s.crashes)
	if s.refused {
		return s, []action{exit{s.code}}
	}
	if e.Start == nil || ev.code == 0 || s.interrupted || s.phase == envoyStopping || n == len(restartPauses) {
		return s, []action{exit{ev.code}}
	}
	s.crashes, s.down, s.code = append(s.crashes, ev.at), true, ev.code
	return s, []action{
		warn("envoy exited unexpectedly, starting it again", logkey.ExitCode, ev.code, logkey.Reason,
			exitReason(ev.code),
			logkey.Attempt, n+1, logkey.RetryIn, restartPauses[n]),
		restart{restartPauses[n]},
	}
}

// exitReason names the signal in an exit code of 128+n.
func exitReason(code int) string {
	if name := unix.SignalName(syscall.Signal(code - 128)); name != "" {
		return name
	}
	return "error"
}

func (e Envoy) woke(s envoyState) (envoyState, []action) {
	switch s.phase {
	case envoyLeaving:
		return s.await("timed out waiting for callers to leave")
	case envoyStopping:
		if e.KillGrace == 0 { // ECS kills; this wake is of the wait for callers
			return s, nil
		}
		return s, []action{warn("envoy did not exit in time, killing it", logkey.Elapsed, e.KillGrace),
			signalGroup{syscall.SIGKILL}}
	}
	return s, nil
}

// onTERM handles the first TERM.
func (e Envoy) onTERM(s envoyState) (envoyState, []action) {
	var acts []action
	if e.Callers != nil {
		s.phase = envoyLeaving
		acts = []action{info("received SIGTERM, the gateway keeps running until no callers remain",
			logkey.Delay, e.MaxDelay), wake{e.MaxDelay}, awaitCallersGone{}}
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

func (e Envoy) stop(s envoyState, reason string) (envoyState, []action) {
	if s.down {
		return s, []action{info(reason), exit{s.code}}
	}
	s.phase = envoyStopping
	acts := []action{info(reason), signalGroup{syscall.SIGTERM}}
	if e.KillGrace > 0 {
		acts = append(acts, wake{e.KillGrace})
	}
	return s, acts
}
