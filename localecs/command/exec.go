package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/meshtask/consul-ecs/internal/cli"
	"github.com/meshtask/consul-ecs/internal/exit"
	"github.com/meshtask/consul-ecs/localecs/control"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

type execFlags struct {
	location              location
	container             string
	input, terminal, both bool
}

func execCommand() cli.Command {
	f := &execFlags{}
	return cli.Command{
		Synopsis: "Run a command in a container of a task",
		Usage:    "exec [flags] TASK [--] COMMAND [ARGUMENT...]",
		Help: `
Runs a command in a running container, as docker exec does: with the container's
programs, user, environment, working directory, read-only root and network. TASK is as
for localecs ps. The default of -container is the task's only running container, or the
one that is named like its family.

Output and exit status are the command's. SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed
on. Standard input is empty without -i.

Exit status: the command's; 128+n after signal n; 127 if the container has no such
program; 126 if it cannot be executed; 125 after any other error.

Examples:
  $ localecs exec web -- id -u
  $ localecs exec -it -container sidecar-proxy web -- /bin/sh
  $ localecs exec -i web -- tee /tmp/in < file`,
		Flags: func(fs *flag.FlagSet) {
			f.location.add(fs)
			fs.StringVar(&f.container, "container", "", "run in the container of this `name`")
			fs.BoolVar(&f.input, "i", false, "pass standard input")
			fs.BoolVar(&f.terminal, "t", false, "allocate a terminal; standard input and output have to be one")
			fs.BoolVar(&f.both, "it", false, "-i and -t")
		},
		Run: f.run,
	}
}

func (f *execFlags) run(ctx context.Context, inv *cli.Invocation) error {
	if len(inv.Args) > 1 && inv.Args[1] == "--" {
		inv.Args = slices.Delete(inv.Args, 1, 2)
	}
	if len(inv.Args) < 2 {
		return failed(inv, "exec", runtime.CodeFailed, errors.New("want a task and a command to run in it"))
	}
	code, err := f.attach(ctx, inv)
	return failed(inv, "exec", code, err)
}

// failed ends a command whose exit status is another program's, and prints its own error.
func failed(inv *cli.Invocation, command string, code int, err error) error {
	if err != nil {
		fmt.Fprintf(inv.Stderr, "localecs %s: %v\n", command, err)
	}
	if code == exit.CodeOK {
		return nil
	}
	return &exit.CodeError{Code: code}
}

func (f *execFlags) attach(ctx context.Context, inv *cli.Invocation) (code int, err error) {
	client, s, err := f.location.now(ctx)
	if err != nil {
		return runtime.CodeFailed, err
	}
	task, err := s.One(inv.Args[0])
	if err != nil {
		return runtime.CodeFailed, err
	}
	container, err := choose(task, f.container)
	if err != nil {
		return runtime.CodeFailed, err
	}
	terminal := f.terminal || f.both
	io, err := openStreams(inv, streamOptions{Input: f.input || f.both, Terminal: terminal})
	if err != nil {
		return runtime.CodeFailed, err
	}
	defer io.Close()
	return client.Attach(ctx, control.Request{
		Argv: inv.Args[1:], TaskID: task.ID(), Container: container, Terminal: terminal,
	}, io.Session)
}

// choose returns the container of that name, or the default.
func choose(t control.Task, name string) (string, error) {
	var all, runs []string
	for _, c := range t.Containers {
		all = append(all, c.Name)
		if c.LastStatus == "RUNNING" {
			runs = append(runs, c.Name)
		}
	}
	switch {
	case name != "" && !slices.Contains(all, name):
		return "", control.NoSuch("container", name, all)
	case name != "" && !slices.Contains(runs, name):
		return "", fmt.Errorf("container %s of %s is not running", name, t.Name)
	case name != "":
		return name, nil
	case len(runs) == 0:
		return "", fmt.Errorf("no container of %s is running: %s", t.Name, t.Status())
	case len(runs) == 1:
		return runs[0], nil
	case slices.Contains(runs, t.Family()):
		return t.Family(), nil
	}
	return "", fmt.Errorf("%s has several running containers: select one with -container: %s", t.Name, strings.Join(runs, ", "))
}

// streamOptions select the streams of a process.
type streamOptions struct {
	// Input passes standard input through a pipe, so that this process keeps what the other does
	// not read. Own passes standard input itself. Without either it is empty.
	Input, Own bool
	// Terminal allocates a terminal, and puts this one into raw mode.
	Terminal bool
}

// streams are those of a process to run.
type streams struct {
	runtime.Session
	closers []func() // called in reverse order
}

// drainLimit bounds the wait for output after the process has exited: its descendants may hold the
// terminal open.
const drainLimit = 300 * time.Millisecond

// openStreams makes the streams, which Close releases.
func openStreams(inv *cli.Invocation, o streamOptions) (s *streams, err error) {
	s = &streams{}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	in, isFile := inv.Stdin.(*os.File)
	out, outIsFile := inv.Stdout.(*os.File)
	said, saidIsFile := inv.Stderr.(*os.File)
	if !isFile || !outIsFile || !saidIsFile {
		return s, errors.New("standard input, output and error must be files")
	}
	switch {
	case o.Terminal:
		return s, s.terminal(in, out, o.Input)
	case o.Own:
		s.Stdin = in
	default:
		s.Stdin, err = s.input(in, o.Input)
	}
	s.Stdout, s.Stderr = out, said
	s.forward(func() {})
	return s, err
}

// Close releases the streams. It must be called when the process has exited.
func (s *streams) Close() {
	for i := len(s.closers) - 1; i >= 0; i-- {
		s.closers[i]()
	}
	s.closers = nil
}

func (s *streams) later(do func()) { s.closers = append(s.closers, do) }

// forward passes signals to the process. It calls resized when this terminal has another size.
func (s *streams) forward(resized func()) {
	caught := make(chan os.Signal, 16)
	signal.Notify(caught, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGWINCH)
	signals, done := make(chan syscall.Signal, 16), make(chan struct{})
	go func() {
		for {
			select {
			case c := <-caught:
				if c == syscall.SIGWINCH {
					resized()
				}
				if number, ok := c.(syscall.Signal); ok {
					select {
					case signals <- number:
					default: // the process does not take them
					}
				}
			case <-done:
				return
			}
		}
	}()
	s.Signals = signals
	s.later(func() {
		signal.Stop(caught)
		close(done)
	})
}

// input returns a file with what this process reads, or an empty one.
func (s *streams) input(from *os.File, pass bool) (*os.File, error) {
	if !pass {
		null, err := os.Open(os.DevNull)
		if err == nil {
			s.later(func() { null.Close() })
		}
		return null, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	go func() {
		_, _ = io.Copy(write, from) // until the process closes its end
		write.Close()
	}()
	s.later(func() { read.Close() })
	return read, nil
}

var errNoTerminal = errors.New("-t: standard input and output must be a terminal")

// terminal allocates a terminal for the process and copies between it and this one.
func (s *streams) terminal(in, out *os.File, input bool) error {
	if !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return errNoTerminal
	}
	window, theirs, err := openPTY()
	if err != nil {
		return fmt.Errorf("allocate a terminal: %w", err)
	}
	_ = pty.InheritSize(out, theirs) // which keeps its own if this one has none
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		window.Close()
		theirs.Close()
		return err
	}
	s.Stdin, s.Stdout, s.Stderr, s.Session.Terminal = theirs, theirs, theirs, true
	if input {
		go func() { _, _ = io.Copy(window, in) }() // until this process exits
	}
	var copying sync.WaitGroup
	copying.Go(func() { _, _ = io.Copy(out, window) })
	s.later(func() {
		theirs.Close()
		_ = window.SetReadDeadline(time.Now().Add(drainLimit))
		copying.Wait()
		window.Close()
		_ = term.Restore(int(in.Fd()), before)
	})
	s.forward(func() { _ = pty.InheritSize(out, theirs) })
	return nil
}

// openPTY allocates a terminal. Reads of its other side, the window, have deadlines.
func openPTY() (window, theirs *os.File, err error) {
	blocking, theirs, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	defer blocking.Close()
	fd, err := unix.FcntlInt(blocking.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return os.NewFile(uintptr(fd), "window"), theirs, nil
}
