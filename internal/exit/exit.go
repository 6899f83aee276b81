// Package exit has the exit codes of both binaries and the errors that stand for one.
//
// It imports nothing, so that any package may state what an error means for the user who
// started the program; internal/cli turns errors into codes.
package exit

import (
	"fmt"
	"os"
)

// Exit codes.
const (
	CodeOK      = 0   // done or allowed
	CodeUsage   = 1   // usage or configuration
	CodeRefused = 2   // refused, denied or not healthy
	CodeUnknown = 3   // unknown, unreachable or gave up
	CodeAWS     = 4   // admit: AWS refused the definition or could not be asked; images: the same of a registry
	CodeNoSuch  = 127 // unknown command
)

// UsageError is a mistake in the call or the configuration: CodeUsage, printed
// plainly without a log header.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}

// CodeError ends the program with a code and without a message: a child's exit
// code, or a verdict that is already on stdout.
type CodeError struct{ Code int }

func (e *CodeError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// Plain marks an error for a user at a terminal: it is printed as a usage error is,
// without a log header. The exit code is that of the error inside.
type Plain struct{ Err error }

func (e *Plain) Error() string { return e.Err.Error() }
func (e *Plain) Unwrap() error { return e.Err }

// RefusedError marks an error as a refusal: CodeRefused.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

// SignalError is the cause of a context that a signal ended.
type SignalError struct{ Signal os.Signal }

func (e *SignalError) Error() string { return "stopped by signal " + e.Signal.String() }
