package testkit

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Patience is how long a test waits for something that should come at once.
const Patience = 60 * time.Second

const rolePrefix = "role="

// SelfArgs returns the command line with which this test binary plays a role: it runs TestRole only, where TestMain
// does not call RunRole first.
func SelfArgs(role string, args ...string) []string {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return append([]string{self, "-test.run=^TestRole$", rolePrefix + role}, args...)
}

// RunRole plays the role that SelfArgs asked for and exits with its result; it
// returns when there is none. Call it first in TestMain or in a test named
// TestRole.
func RunRole(roles map[string]func(args []string) int) {
	for i, arg := range os.Args {
		if name, ok := strings.CutPrefix(arg, rolePrefix); ok && i > 0 && roles[name] != nil {
			os.Exit(roles[name](os.Args[i+1:]))
		}
	}
}

// ProcessOptions vary a Process.
type ProcessOptions struct {
	// PID1 runs it as the first process of a new pid namespace.
	PID1 bool
	// Env is added to our own environment.
	Env []string
	// Quiet leaves its stderr out of the test's log.
	Quiet bool
	// Stderr gets its stderr in place of the test's log.
	Stderr io.Writer
	// Thread runs a function on its own thread, where the process is started and waited for: in a network
	// namespace, or so that Pdeathsig of Sys means the end of this process.
	Thread func(func() error) error
	// Sys is as in exec.Cmd.
	Sys *syscall.SysProcAttr
}

// Process is a running program whose standard output a test reads by lines.
type Process struct {
	// PID is its number in our namespace.
	PID   int
	Stdin io.WriteCloser

	t     testing.TB
	cmd   *exec.Cmd
	lines chan string
	ended chan struct{}
}

// StartProcess starts the program. The test's end kills it.
func StartProcess(t testing.TB, o ProcessOptions, args ...string) *Process {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	// The race detector would hold every exit for a second.
	cmd.Env = append(append(os.Environ(), "GORACE=atexit_sleep_ms=0"), o.Env...)
	if cmd.Stderr = o.Stderr; o.Stderr == nil && !o.Quiet {
		cmd.Stderr = t.Output()
	}
	// Orphans may hold the error output for ever.
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = o.Sys
	if o.PID1 {
		cmd.SysProcAttr = firstProcess()
	}
	// A pipe of our own: it reaches its end only when every process that
	// inherited it is gone, the program's orphans included.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = w
	p := &Process{t: t, cmd: cmd, lines: make(chan string, 4096), ended: make(chan struct{})}
	if p.Stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.start(o.Thread); err != nil {
		if o.PID1 && errors.Is(err, syscall.EPERM) {
			Missing(t, "a pid namespace needs more rights")
		}
		t.Fatal(err)
	}
	w.Close()
	p.PID = cmd.Process.Pid
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(r); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-p.ended
		r.Close()
	})
	return p
}

// start starts the process, and waits for its end beside the test.
func (p *Process) start(thread func(func() error) error) error {
	if thread == nil {
		thread = func(run func() error) error { return run() }
	}
	started := make(chan error, 1)
	go func() {
		defer close(p.ended)
		err := thread(func() error {
			err := p.cmd.Start()
			started <- err
			if err == nil {
				p.cmd.Wait()
			}
			return nil
		})
		if err != nil {
			started <- err
		}
	}()
	return <-started
}

// Line returns the next line of standard output.
func (p *Process) Line() string {
	p.t.Helper()
	select {
	case line, ok := <-p.lines:
		if !ok {
			p.t.Fatal("standard output ended, want a line")
		}
		return line
	case <-time.After(Patience):
		p.t.Fatal("no line on standard output")
	}
	return ""
}

// Try returns the next line if there is one.
func (p *Process) Try() (line string, ok bool) {
	select {
	case line, ok = <-p.lines:
		return line, ok
	default:
		return "", false
	}
}

// Expect reads lines until one equals want.
func (p *Process) Expect(want string) {
	p.t.Helper()
	for p.Line() != want {
	}
}

// Signal sends to the process.
func (p *Process) Signal(sig syscall.Signal) {
	p.t.Helper()
	if err := syscall.Kill(p.PID, sig); err != nil {
		p.t.Fatalf("send %v: %v", sig, err)
	}
}

// Wait returns the exit code, or 128+n when signal n killed the process.
func (p *Process) Wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(Patience):
		p.t.Fatal("process did not end")
	}
	ws := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// Running reports whether the process has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// AllGone waits until every process that holds the standard output, orphans
// included, is gone, and returns the lines that were not read before.
func (p *Process) AllGone() (rest []string) {
	p.t.Helper()
	deadline := time.After(Patience)
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				return rest
			}
			rest = append(rest, line)
		case <-deadline:
			p.t.Fatal("standard output is still held by a process")
		}
	}
}

// Eventually waits until condition holds.
func Eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	Within(t, Patience, what, condition)
}

// Within fails the test unless the condition holds within limit, and returns how
// long it took.
func Within(t testing.TB, limit time.Duration, what string, condition func() bool) time.Duration {
	t.Helper()
	start := time.Now()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for ; !condition(); <-tick.C {
		if time.Since(start) > limit {
			t.Fatalf("did not happen within %s: %s", limit, what)
		}
	}
	return time.Since(start)
}
