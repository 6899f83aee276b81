package supervise

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// Command is the program to run.
type Command struct {
	// Args are the program, looked up in PATH when it has no slash, and its
	// arguments.
	Args []string
	// Env is the child's environment; nil passes on our own.
	Env []string
	// Stdin, Stdout and Stderr are handed to the child; nil passes on our own.
	Stdin, Stdout, Stderr *os.File
}

// signalled is added to a signal's number to make the exit code of a child
// that the signal killed, as shells do it.
const signalled = 128

// lookPath finds the program. The error names it and the remedy.
func (c Command) lookPath() (string, error) {
	if len(c.Args) == 0 {
		return "", errors.New("start child: no command given")
	}
	path, err := exec.LookPath(c.Args[0])
	if err != nil {
		return "", c.startError(err)
	}
	return path, nil
}

func (c Command) startError(err error) error {
	// LookPath's own error repeats the program's name.
	var lookup *exec.Error
	if errors.As(err, &lookup) {
		err = lookup.Err
	}
	return fmt.Errorf("start %q: %w: check the command in the task definition and that the container's image holds this program, executable and built for this machine",
		c.Args[0], err)
}

func (c Command) environ() []string {
	if c.Env == nil {
		return os.Environ()
	}
	return c.Env
}

func (c Command) files() []uintptr {
	pick := func(f, inherited *os.File) uintptr {
		if f == nil {
			f = inherited
		}
		return f.Fd()
	}
	return []uintptr{pick(c.Stdin, os.Stdin), pick(c.Stdout, os.Stdout), pick(c.Stderr, os.Stderr)}
}

// exitCode is the child's own code, or 128+n when signal n killed it.
func exitCode(ws syscall.WaitStatus) int {
	if ws.Signaled() {
		return signalled + int(ws.Signal())
	}
	return ws.ExitStatus()
}
