package entrypoint

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/meshtask/consul-ecs/internal/logkey"
)

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
	var state appState
	l := &loop{child: a.Child, signals: a.Signals, log: a.Log, callers: a.Callers}
	return l.run(ctx, func(ev event) (acts []action) {
		state, acts = a.policy(state, ev)
		return acts
	})
}

// appState is how far the first TERM has come.
type appState int

const (
	appServing   appState = iota // no TERM yet
	appDelaying                  // TERM is held back
	appDelivered                 // TERM was delivered
)

// policy holds the first TERM back for the delay, then delivers it to the
// process group. Everything else goes to the process at once, a second TERM
// included: its sender does not want to wait.
func (a App) policy(s appState, e event) (appState, []action) {
	switch e := e.(type) {
	case signalled:
		if s == appServing && e.signal == syscall.SIGTERM {
			return a.firstTerm()
		}
		return s, []action{forward(e)}
	case callersGone:
		if s == appDelaying {
			return appDelivered, []action{info("no callers remain, terminating the application"), signalGroup{syscall.SIGTERM}}
		}
	case woke:
		if s == appDelaying {
			return appDelivered, []action{info("shutdown delay elapsed, terminating the application"), signalGroup{syscall.SIGTERM}}
		}
	}
	return s, nil
}

func (a App) firstTerm() (appState, []action) {
	switch {
	case a.Callers != nil:
		return appDelaying, []action{
			info("received SIGTERM, holding it back until no callers remain", logkey.Delay, a.Delay), wake{a.Delay}, awaitCallersGone{},
		}
	case a.Delay > 0:
		// The acceptance tests of hashicorp's Terraform modules look for these words.
		return appDelaying, []action{info(fmt.Sprintf("received sigterm. waiting %s before terminating application.", a.Delay)), wake{a.Delay}}
	case a.Compat:
		return appDelivered, []action{info("received SIGTERM, not delivered: -compat without -shutdown-delay")}
	default:
		return appDelivered, []action{info("received SIGTERM, terminating the application"), signalGroup{syscall.SIGTERM}}
	}
}
