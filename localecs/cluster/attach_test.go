package cluster

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// streams returns the streams of a session, with what it has written when it has ended.
func streams(t *testing.T, stdin string) (s runtime.Session, ended func() (output string)) {
	t.Helper()
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = io.WriteString(feed, stdin) // a session need not read it
		feed.Close()
	}()
	return runtime.Session{Stdin: in, Stdout: write, Stderr: write}, func() string {
		in.Close()
		write.Close()
		text, err := io.ReadAll(out)
		if err != nil {
			t.Error(err)
		}
		out.Close()
		return string(text)
	}
}

// Whatever runs the container, a session is the same.
func TestAttachRunsInTheContainer(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	task := w.run(t, nil, shell("a", "sleep 1000"))
	until(t, task, "running", running)
	for name, tt := range map[string]struct {
		argv  []string
		stdin string
		code  int
		lines []string // in any order: there are two streams
	}{
		"streams": {[]string{"/bin/sh", "-c", "read x; echo got $x; echo err >&2; exit 3"}, "hello\n", 3, []string{"err\n", "got hello\n"}},
		"signal":  {[]string{"/bin/sh", "-c", "kill -9 $$"}, "", 137, nil},
		"nothing": {[]string{"nosuch"}, "", 127, nil},
		"no end":  {[]string{"/bin/sh", "-c", "exit 4"}, strings.Repeat("more than a pipe holds\n", 10000), 4, nil},
	} {
		s, ended := streams(t, tt.stdin)
		s.Argv = tt.argv
		code, err := task.Attach(t.Context(), "a", s)
		got := slices.Sorted(strings.Lines(ended()))
		testkit.Equal(t, name+": code", code, tt.code)
		if tt.lines != nil {
			testkit.Equal(t, name+": output", got, tt.lines)
		}
		if err != nil && tt.code < 125 {
			t.Errorf("%s: %v, want no error", name, err)
		}
	}
	if _, err := task.Attach(t.Context(), "b", runtime.Session{Argv: []string{"true"}}); err == nil || err.Error() != "container b has not started" {
		t.Errorf("a container that there is not: %v", err)
	}
}

func TestAttachEndsBySignalsAndWithItsContext(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	task := w.run(t, nil, shell("a", "sleep 1000"))
	until(t, task, "running", running)
	const script = "trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done"
	for name, tt := range map[string]struct {
		act  func(signals chan<- syscall.Signal, cancel func())
		code int
	}{
		"signal":  {func(signals chan<- syscall.Signal, _ func()) { signals <- syscall.SIGTERM }, 5},
		"context": {func(_ chan<- syscall.Signal, cancel func()) { cancel() }, 137},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		s, ended := streams(t, "")
		signals := make(chan syscall.Signal, 1)
		s.Stdout, s.Signals, s.Argv = write, signals, []string{"/bin/sh", "-c", script}
		go func() {
			_, _ = io.ReadFull(read, make([]byte, len("ready\n"))) // else the session's end fails the test
			tt.act(signals, cancel)
		}()
		if code, err := task.Attach(ctx, "a", s); code != tt.code || err != nil {
			t.Errorf("%s: %d, %v, want %d", name, code, err, tt.code)
		}
		cancel()
		ended()
		read.Close()
		write.Close()
	}
}

func TestVisitorsAreInTheNetworkUntilClose(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	task := w.run(t, nil, shell("a", "sleep 1000"))
	until(t, task, "running", running)
	program := testkit.RequireBinary(t, "getent")
	visit := func(s runtime.Session, path string, argv ...string) (int, error) {
		s.Argv = argv
		return w.Visit(t.Context(), Visitor{Session: s, Path: path, Dir: "/", Env: []string{"PATH=/bin:/usr/bin"}})
	}
	s, ended := streams(t, "")
	code, err := visit(s, program, "getent", "ahostsv4", "web")
	output := ended()
	testkit.ErrorContains(t, err, "")
	testkit.Equal(t, "exit code", code, 0)
	if !strings.HasPrefix(output, task.IP()+" ") {
		t.Errorf("output %q, want %s", output, task.IP())
	}
	s, ended = streams(t, "")
	over := make(chan int, 1)
	go func() {
		code, _ := visit(s, "/bin/sh", "sh", "-c", "sleep 1000 & wait")
		over <- code
	}()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if code := <-over; code != 137 && code != runtime.CodeFailed {
		t.Errorf("at the end: %d", code)
	}
	ended() // no process has them open any more
	code, err = visit(runtime.Session{}, program)
	testkit.Equal(t, "exit code after it", code, runtime.CodeFailed)
	if err == nil || err.Error() != "the cluster is closed" {
		t.Errorf("after it: %v", err)
	}
}
