package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/localecs/host"
)

// Role returns the role of the processes that this package starts, for host.Dispatch. The first argument, if there is
// one, is a helper's argument; without one the process becomes a container.
func Role() host.Role { return host.Role{Name: argv0, Run: stage} }

func stage(args []string) int {
	runtime.LockOSThread()
	switch {
	case len(args) > 0 && args[0] == wordAnchor:
		anchor()
		return 0
	case len(args) > 0 && args[0] == wordSpawner:
		return runSpawner()
	case len(args) > 2 && args[0] == wordSupervise:
		return supervise(args[1], args[2:])
	}
	return startContainer()
}

// anchor runs as the first process of the namespace that holds all containers. It ends when the simulator does, by the
// signal asked for at its start or by the end of the socket, and the kernel ends everything below it.
func anchor() {
	signal.Ignore()
	_, _ = io.Copy(io.Discard, os.NewFile(socketFD, "simulator"))
}

type step struct {
	name string
	run  func() error
	// host: only the host can be why it fails, neither definition nor image.
	host bool
}

// startContainer sets the container up. It returns only when something went wrong, and has said so then.
func startContainer() int {
	if err := unix.CloseRange(configFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fail("close descriptors", true, err)
	}
	var c stageConfig
	if err := json.NewDecoder(os.NewFile(configFD, "config")).Decode(&c); err != nil {
		return fail("read the container's configuration", false, err)
	}
	self, err := openSelf(c.Init)
	if err != nil {
		return fail("open own program", false, err)
	}
	for _, s := range append(rootSteps(&c), processSteps(&c)...) {
		if err := s.run(); err != nil {
			return fail(s.name, s.host, err)
		}
	}
	return fail("", false, become(&c, self))
}

func openSelf(needed bool) (int, error) {
	if !needed {
		return -1, nil
	}
	return unix.Open(host.SelfExe, unix.O_PATH|unix.O_CLOEXEC, 0)
}

// become executes the program, or this binary as an init that executes it.
func become(c *stageConfig, self int) error {
	path, err := lookPath(c.Args[0], c.Env)
	if err != nil {
		return err
	}
	if c.Init {
		// The status pipe goes along: the init reports how the program started.
		if _, err := unix.FcntlInt(statusFD, unix.F_SETFD, 0); err != nil {
			return err
		}
		argv := append([]string{argv0, wordSupervise, path}, c.Args...)
		return syscall.Exec(fmt.Sprintf("/proc/self/fd/%d", self), argv, c.Env)
	}
	if _, err := unix.Write(statusFD, []byte{started}); err != nil {
		return err
	}
	return explainExec(c.Args[0], path, syscall.Exec(path, c.Args, c.Env))
}

// warn reports to the runtime what the container lacks. A line that is not
// read is about a container that no call waits for any more.
func warn(text string) {
	_, _ = unix.Write(statusFD, []byte(string(warned)+text+"\n"))
}

// fail reports an error to the runtime. 127 is for readers of the process instead of the report.
func fail(name string, hostOnly bool, err error) int {
	report := stageError{Step: name, Text: err.Error(), Host: hostOnly, File: host.AboutFile(err)}
	errors.As(err, &report.Errno)
	b, _ := json.Marshal(report)
	_, _ = unix.Write(statusFD, b)
	return 127
}
