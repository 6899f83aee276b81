package entrypoint

import (
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
)

// event is the input of a policy.
type event interface{ event() }

type (
	// started is the first event.
	started struct{}
	// signalled is a signal sent to this process.
	signalled struct{ signal syscall.Signal }
	// exited is the end of the child, with its exit code, or 128+n for signal n, and the
	// time since the start of the loop.
	exited struct {
		code int
		at   time.Duration
	}
	// restarted reports that the child of a restart action runs.
	restarted struct{}
	// woke reports that the time of the last wake action has come.
	woke struct{}
	// taskStopping, appsStopped and callersGone are the results of the await
	// actions of the same name.
	taskStopping struct{}
	appsStopped  struct{}
	callersGone  struct{}
	// refused reports that the Consul servers refuse Envoy permanently.
	refused struct{}
)

func (started) event()      {}
func (signalled) event()    {}
func (exited) event()       {}
func (restarted) event()    {}
func (woke) event()         {}
func (taskStopping) event() {}
func (appsStopped) event()  {}
func (callersGone) event()  {}
func (refused) event()      {}

// action is the output of a policy.
type action interface{ action() }

type (
	// forward sends the signal to the child process alone.
	forward struct{ signal syscall.Signal }
	// signalGroup sends the signal to the child's process group.
	signalGroup struct{ signal syscall.Signal }
	// drain asks Envoy to drain its inbound listeners, until that has worked.
	drain struct{}
	// awaitTaskStopping reads the task's metadata until ECS wants the task to
	// stop, awaitAppsStopped until no application runs; awaitCallersGone asks Envoy
	// until no caller is left. Each replaces the one before.
	awaitTaskStopping struct{}
	awaitAppsStopped  struct{}
	awaitCallersGone  struct{}
	// wake asks for a woke event; it replaces an earlier one.
	wake struct{ after time.Duration }
	// restart starts the child, which has ended, again after a pause.
	restart struct{ after time.Duration }
	// exit ends the loop with the exit code.
	exit struct{ code int }
	// note is a log line.
	note struct {
		level hclog.Level
		text  string
		args  []any
	}
)

func (forward) action()           {}
func (signalGroup) action()       {}
func (drain) action()             {}
func (awaitTaskStopping) action() {}
func (awaitAppsStopped) action()  {}
func (awaitCallersGone) action()  {}
func (wake) action()              {}
func (restart) action()           {}
func (exit) action()              {}
func (note) action()              {}

func info(text string, args ...any) note { return note{hclog.Info, text, args} }
func warn(text string, args ...any) note { return note{hclog.Warn, text, args} }
