package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// childLimit is the time limit of a program that should exit.
const childLimit = 30 * time.Second

// child is a running program.
type child struct {
	name  string
	pid   int
	cmd   *exec.Cmd
	lines chan line
	ended chan struct{}
	log   *tail
	// ctx ends every wait for it.
	ctx context.Context
	// started and stopped bound its life; stopped is valid after ended.
	started, stopped time.Time
}

// line is one line of standard output and when it came.
type line struct {
	text string
	at   time.Time
}

// start runs a program with exactly that environment; the figure's end kills
// it.
func (s *fixture) start(env []string, args ...string) (*child, error) {
	c := &child{name: args[0], lines: make(chan line, 64), ended: make(chan struct{}), log: &tail{}, ctx: s.ctx}
	c.cmd = exec.Command(args[0], args[1:]...)
	c.cmd.Env = append([]string{"PATH=/usr/bin:/bin"}, env...)
	c.cmd.Stderr = c.log
	// What it started itself may hold the pipes longer than it lives.
	c.cmd.WaitDelay = 100 * time.Millisecond
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c.cmd.Stdout = w
	c.started = time.Now()
	err = c.cmd.Start()
	w.Close()
	if err != nil {
		r.Close()
		return nil, err
	}
	c.pid = c.cmd.Process.Pid
	go c.read(r)
	go func() {
		c.cmd.Wait()
		c.stopped = time.Now()
		close(c.ended)
	}()
	s.onClose(c.kill)
	return c, nil
}

func (c *child) read(r io.ReadCloser) {
	defer r.Close()
	defer close(c.lines)
	for scan := bufio.NewScanner(r); scan.Scan(); {
		select {
		case c.lines <- line{scan.Text(), time.Now()}:
		default: // the buffer is full
		}
	}
}

// expect returns when the line came.
func (c *child) expect(text string) (time.Time, error) {
	limit := time.After(childLimit)
	for {
		select {
		case l, ok := <-c.lines:
			if !ok {
				return time.Time{}, fmt.Errorf("%s ended without %q: %s", c.name, text, c.log)
			}
			if l.text == text {
				return l.at, nil
			}
		case <-c.ctx.Done():
			return time.Time{}, c.ctx.Err()
		case <-limit:
			return time.Time{}, fmt.Errorf("%s did not say %q in %s: %s", c.name, text, childLimit, c.log)
		}
	}
}

func (c *child) signal(sig syscall.Signal) error { return c.cmd.Process.Signal(sig) }

// wait returns when the program has ended with code 0.
func (c *child) wait() error {
	select {
	case <-c.ended:
	case <-c.ctx.Done():
		return c.ctx.Err()
	case <-time.After(childLimit):
		return fmt.Errorf("%s did not end in %s: %s", c.name, childLimit, c.log)
	}
	if code := c.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("%s ended with code %d: %s", c.name, code, c.log)
	}
	return nil
}

// kill ends the program at once, if it still runs.
func (c *child) kill() {
	c.cmd.Process.Kill()
	<-c.ended
}

// time runs a program to its end and returns how long that took.
func (s *fixture) time(env []string, args ...string) (time.Duration, error) {
	c, err := s.start(env, args...)
	if err != nil {
		return 0, err
	}
	if err := c.wait(); err != nil {
		return 0, err
	}
	return c.stopped.Sub(c.started), nil
}

// tail keeps the end of what is written to it, for error messages.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const tailSize = 2000

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(p)
	if extra := t.buf.Len() - tailSize; extra > 0 {
		t.buf.Next(extra)
	}
	return len(p), nil
}

// String returns the text so far.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}
