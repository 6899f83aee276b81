package docker

import (
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/localecs/host"
)

// pausePath is the program of pause containers: this binary.
const pausePath = "/localecs-pause"

// Roles returns the roles of the processes that this package starts, for host.Dispatch: the watcher, and
// the program of pause containers.
func Roles() []host.Role {
	return []host.Role{{Name: argv0Watcher, Run: removeRemains}, {Name: pausePath, Run: keepNamespaces}}
}

// keepNamespaces runs in pause containers. Where containers share its pid namespace it is PID 1: the kernel reaps for a
// process that ignores the ends of its children.
func keepNamespaces([]string) int {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGCHLD)
	for {
		_ = unix.Pause()
	}
}
