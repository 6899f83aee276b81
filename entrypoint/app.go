package entrypoint

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/internal/logkey"
	"golang.org/x/sys/unix"
)

// App is a running application and what its supervision needs.
type App struct {
	Child Child
	// Signals are those sent to us, from before the child's start.
	Signals <-chan os.Signal
	// StopSignal is handled as TERM is, if it is not zero: the STOPSIGNAL of the
	// container's image, which ECS sends in place of TERM.
	StopSignal syscall.Signal
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
	var state appState
	l := &loop{child: a.Child, signals: a.Signals, log: a.Log, callers: a.Callers}
	return l.run(ctx, func(ev event) (acts []action) {
		state, acts = a.policy(state, ev)
		return acts
	})
}

type appPhase int

const (
	appServing   appPhase = iota // no TERM yet
	appDelaying                  // TERM is held back
	appDelivered                 // TERM was delivered
)

// appState is how far the first TERM, or StopSignal, has come.
type appState struct {
	phase appPhase
	// held is delivered at the end of the delay.
	held syscall.Signal
	// warned reports that the log names -stop-signal.
	warned bool
}

// policy holds the first TERM back for the delay, then delivers it to the
// process group. Everything else goes to the process at once, a second TERM
// included: its sender does not want to wait.
func (a App) policy(s appState, e event) (appState, []action) {
	switch e := e.(type) {
	case exited:
		return s, []action{exit{e.code}}
	case signalled:
		switch {
		case s.phase != appServing:
		case e.signal == syscall.SIGTERM || e.signal == a.StopSignal:
			return a.stop(s, e.signal)
		case a.StopSignal == 0 && a.Delay > 0 && isImageStop(e.signal) && !s.warned:
			s.warned = true
			return s, []action{
				warn(unix.SignalName(e.signal) +
					" is delivered at once: if it is the STOPSIGNAL of the container's image, name it with " +
					"-stop-signal, so that it is held back while callers remain"),
				forward(e),
			}
		}
		return s, []action{forward(e)}
	case callersGone:
		return s.deliver("no callers remain, terminating the application")
	case woke:
		return s.deliver("shutdown delay elapsed, terminating the application")
	}
	return s, nil
}

// isImageStop reports whether images of well-known servers have that STOPSIGNAL:
// nginx and php-fpm QUIT, httpd WINCH, haproxy USR1.
func isImageStop(sig syscall.Signal) bool {
	return sig == syscall.SIGQUIT || sig == syscall.SIGWINCH || sig == syscall.SIGUSR1
}

// stop handles the first TERM or StopSignal.
func (a App) stop(s appState, sig syscall.Signal) (appState, []action) {
	received := "received " + unix.SignalName(sig)
	s.phase, s.held = appDelaying, sig
	switch {
	case a.Callers != nil:
		return s, []action{
			info(received+", holding it back until no callers remain", logkey.Delay, a.Delay), wake{a.Delay},
			awaitCallersGone{},
		}
	case a.Delay > 0:
		// The acceptance tests of hashicorp's Terraform modules look for these words.
		return s,
			[]action{info(
				fmt.Sprintf("%s. waiting %s before terminating application.", strings.ToLower(received), a.Delay)),
				wake{a.Delay}}
	case a.Compat:
		s.phase = appDelivered
		return s, []action{info(received + ", not delivered: -compat without -shutdown-delay")}
	default:
		return s.deliver(received + ", terminating the application")
	}
}

// deliver ends the delay, for that reason.
func (s appState) deliver(reason string) (appState, []action) {
	if s.phase != appDelaying {
		return s, nil
	}
	s.phase = appDelivered
	return s, []action{info(reason), signalGroup{s.held}}
}
