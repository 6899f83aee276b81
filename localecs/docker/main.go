package docker

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// pausePath is the program of pause containers: this binary.
const pausePath = "/localecs-pause"

// Main turns a process that this package started into what it is meant to be, and
// does not return then: the watcher, or a pause container's program. For any other
// process it returns at once. It is among the first lines of main, and of TestMain
// where containers are tested.
func Main() {
	switch {
	case os.Args[0] == Argv0 && len(os.Args) == 3:
		os.Exit(RemoveRemains(os.Args[1], os.Args[2]))
	case os.Args[0] == pausePath:
		pauseMain()
	}
}

// pauseMain keeps namespaces open. Where containers share its pid namespace it is
// PID 1, and reaps.
func pauseMain() {
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
}
