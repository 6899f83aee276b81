package docker

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/localecs/host"
)

// pausePath is the program of pause containers: this binary.
const pausePath = "/localecs-pause"

// Roles are those of the processes that this package starts, for host.Dispatch: the watcher, and
// the program of pause containers.
func Roles() []host.Role {
	return []host.Role{{Name: argv0Watcher, Run: removeRemains}, {Name: pausePath, Run: keepNamespaces}}
}

// keepNamespaces is the program of pause containers. Where containers share its pid namespace it is
// PID 1, and reaps.
func keepNamespaces([]string) int {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	for range children {
		for {
			if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err == nil && pid <= 0 || errors.Is(err, unix.ECHILD) {
				break
			}
		}
	}
	return 0
}
