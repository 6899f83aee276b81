package entrypoint

import (
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
)

// event is what a policy hears.
type event interface{ event() }

type (
	// began is the first event.
	began struct{}
	// signalled is a signal sent to us.
	signalled struct{ signal syscall.Signal }
	// woke says that the time of the last wake action has come.
	woke struct{}
	// answered is a valid metadata answer to the read of that turn.
	answered struct {
		turn int
		observation
	}
	// unanswered is the failure of the read of that turn.
	unanswered struct {
		turn int
		err  error
	}
)

// observation is what a valid metadata answer says about the applications.
type observation struct {
	// stopping says that ECS wants the task to stop.
	stopping bool
	// running names the applications that are listed and not stopped.
	running []string
}

func (began) event()      {}
func (signalled) event()  {}
func (woke) event()       {}
func (answered) event()   {}
func (unanswered) event() {}

// action is what a policy wants done.
type action interface{ action() }

type (
	// forward sends the signal to the child process alone.
	forward struct{ signal syscall.Signal }
	// terminate sends TERM, kill KILL, to the child's process group.
	terminate struct{}
	kill      struct{}
	// drain asks Envoy to drain its inbound listeners.
	drain struct{}
	// read asks for the task's metadata; its answer carries the turn.
	read struct{ turn int }
	// wake asks for a woke event; it replaces an earlier one.
	wake struct{ after time.Duration }
	// note is a log line.
	note struct {
		level hclog.Level
		text  string
		args  []any
	}
)

func (forward) action()   {}
func (terminate) action() {}
func (kill) action()      {}
func (drain) action()     {}
func (read) action()      {}
func (wake) action()      {}
func (note) action()      {}

func info(text string, args ...any) note { return note{hclog.Info, text, args} }
func warn(text string, args ...any) note { return note{hclog.Warn, text, args} }
