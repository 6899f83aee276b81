package entrypoint

import (
	"fmt"
	"syscall"
	"time"

	"github.com/meshtask/consul-ecs/internal/logkey"
)

// appConfig is what the application's policy needs to know.
type appConfig struct {
	// delay holds the first TERM back, if it is not zero.
	delay time.Duration
	// watched ends the delay when no callers remain.
	watched bool
	// compat never delivers the first TERM when there is no delay.
	compat bool
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
func (c appConfig) policy(s appState, e event) (appState, []action) {
	switch e := e.(type) {
	case signalled:
		if s == appServing && e.signal == syscall.SIGTERM {
			return c.firstTerm()
		}
		return s, []action{forward(e)}
	case callersGone:
		if s == appDelaying {
			return appDelivered, []action{info("no callers remain, terminating the application"), terminate{}}
		}
	case woke:
		if s == appDelaying {
			return appDelivered, []action{info("shutdown delay is over, terminating the application"), terminate{}}
		}
	}
	return s, nil
}

func (c appConfig) firstTerm() (appState, []action) {
	switch {
	case c.watched:
		return appDelaying, []action{
			info("received SIGTERM, holding it back until no callers remain", logkey.Delay, c.delay), wake{c.delay}, awaitCallersGone{},
		}
	case c.delay > 0:
		// The acceptance tests of hashicorp's Terraform modules look for these words.
		return appDelaying, []action{info(fmt.Sprintf("received sigterm. waiting %s before terminating application.", c.delay)), wake{c.delay}}
	case c.compat:
		return appDelivered, []action{info("received SIGTERM, not delivered: -compat without -shutdown-delay")}
	default:
		return appDelivered, []action{info("received SIGTERM, terminating the application"), terminate{}}
	}
}
