package runtime

import (
	"errors"
	"fmt"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/host"
)

// ErrClosed means that the runtime is closed.
var ErrClosed = errors.New("the container runtime is closed")

// StartError means that a container could not be started. No process of it is left.
type StartError struct {
	Container string
	Err       error
}

// Error names the container.
func (e *StartError) Error() string {
	return fmt.Sprintf("start container %q: %v", e.Container, e.Err)
}

// Unwrap returns the cause; errors.Is finds the system's error number.
func (e *StartError) Unwrap() error { return e.Err }

// hostFault explains an error of a start that is the host's: a limit, or a right that this process lacks. What a first
// stage reports may as well be about the definition or the image.
func hostFault(err error) error {
	report, reported := errors.AsType[*stageError](err)
	switch {
	case !reported:
		return host.Shortage(err, "pid", "mnt", "uts", "ipc")
	case report.Host && report.File:
		return host.Refused(host.Shortage(err))
	case report.Host:
		return host.Refused(host.Shortage(err, "mnt"))
	}
	return err
}

const maxReason = 1024

// Reason returns the text for the container and the task as Fargate words it.
func (e *StartError) Reason() string {
	reason := []rune(startFailed + throughRunc + e.Err.Error() + unknown)
	return string(reason[:min(len(reason), maxReason)])
}

// The words around a cause.
const (
	startFailed = "CannotStartContainerError: "
	throughRunc = "ResourceInitializationError: failed to create new container runtime task: " +
		"failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: "
	unknown = ": unknown"
)

// Brief returns a reason for users who want the cause: without the prefixes
// of the task's initialization and of runc. Any other text stays as it is.
func Brief(reason string) string {
	cause, ok := strings.CutPrefix(reason, startFailed+throughRunc)
	if !ok {
		return reason
	}
	return startFailed + strings.TrimSuffix(cause, unknown)
}
