package docker

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

func TestRefusal(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		writes    []string
		out, said string
	}{
		"output":                {[]string{"hello\n"}, "hello\n", ""},
		"nothing":               {nil, "", ""},
		"begins like a refusal": {[]string{"OCI run", "time is fine\n", "more"}, "OCI runtime is fine\nmore", ""},
		"ends too early":        {[]string{"OCI"}, "OCI", ""},
		"a refusal":             {[]string{"OCI runtime exec", " failed: no such thing\r\n"}, "", "OCI runtime exec failed: no such thing"},
	} {
		var out strings.Builder
		r := &refusal{to: &out}
		for _, w := range tt.writes {
			if n, err := r.Write([]byte(w)); n != len(w) || err != nil {
				t.Errorf("%s: %d, %v", name, n, err)
			}
		}
		if said := r.end(); said != tt.said || out.String() != tt.out {
			t.Errorf("%s: said %q, out %q, want %q and %q", name, said, out.String(), tt.said, tt.out)
		}
	}
}

// streams are a session's, and what a test has of them.
type streams struct {
	session runtime.Session
	in      *os.File
	out     text
	copied  chan struct{}
}

func newStreams(t *testing.T, argv ...string) *streams {
	t.Helper()
	stdin, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	x := &streams{session: runtime.Session{Argv: argv, Stdin: stdin, Stdout: stdout, Stderr: stdout}, in: in, copied: make(chan struct{})}
	go func() {
		defer close(x.copied)
		for buf := make([]byte, 1024); ; {
			n, err := out.Read(buf)
			_, _ = x.out.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		for _, f := range []*os.File{stdin, in, stdout, out} {
			f.Close()
		}
	})
	return x
}

// attached runs a session to its end.
func attached(t *testing.T, c *runtime.Container, x *streams) (code int, out string, err error) {
	t.Helper()
	code, err = c.Attach(t.Context(), x.session)
	x.session.Stdout.Close()
	<-x.copied
	return code, x.out.String(), err
}

// sessions: streams, signals, terminals and ends.
func sessions(t *testing.T, c *runtime.Container) {
	x := newStreams(t, "/bin/sh", "-c", "read a; echo got $a; read b || echo end; echo oops >&2; exit 3")
	if _, err := x.in.WriteString("something\n"); err != nil {
		t.Fatal(err)
	}
	x.in.Close()
	code, out, err := attached(t, c, x)
	testkit.ErrorContains(t, err, "")
	testkit.Equal(t, "exit code", code, 3)
	if !strings.Contains(strings.ReplaceAll(out, "oops\n", ""), "got something\nend\n") {
		t.Errorf("output %q", out)
	}
	if !strings.Contains(out, "oops\n") {
		t.Errorf("output %q, want that of standard error in it", out)
	}
	code, out, err = attached(t, c, newStreams(t, "/bin/none"))
	testkit.ErrorContains(t, err, "no such file")
	testkit.Equal(t, "exit code without a program", code, runtime.CodeNotFound)
	testkit.Equal(t, "output without a program", out, "")

	x = newStreams(t, "/bin/sh", "-c", "trap 'echo heard; exit 5' TERM; echo ready; while :; do sleep 0.1; done")
	signals := make(chan syscall.Signal, 1)
	x.session.Signals = signals
	go func() {
		testkit.Eventually(t, "it is ready", func() bool { return strings.Contains(x.out.String(), "ready") })
		signals <- syscall.SIGTERM
	}()
	code, out, err = attached(t, c, x)
	testkit.ErrorContains(t, err, "")
	testkit.Equal(t, "exit code after a signal", code, 5)
	if !strings.Contains(out, "heard") {
		t.Errorf("output %q, want that of the handler", out)
	}

	ctx, cancel := context.WithCancel(t.Context())
	x = newStreams(t, "/bin/sh", "-c", "sleep 77 & echo ready; wait")
	go func() {
		testkit.Eventually(t, "it is ready", func() bool { return strings.Contains(x.out.String(), "ready") })
		cancel()
	}()
	if code, err := c.Attach(ctx, x.session); code != 137 || err != nil {
		t.Errorf("after the end of its context: %d, %v", code, err)
	}
	terminal(t, c)
}

// terminal: the container's terminal has the size of ours, and its settings.
func terminal(t *testing.T, c *runtime.Container) {
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer slave.Close()
	if err := pty.Setsize(slave, &pty.Winsize{Rows: 33, Cols: 77}); err != nil {
		t.Fatal(err)
	}
	out := new(text)
	go func() {
		for buf := make([]byte, 1024); ; {
			n, err := master.Read(buf)
			_, _ = out.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	signals := make(chan syscall.Signal, 1)
	done := make(chan int)
	go func() {
		code, err := c.Attach(t.Context(), runtime.Session{Argv: []string{"/bin/sh"}, Stdin: slave, Stdout: slave, Stderr: slave, Terminal: true, Signals: signals})
		if err != nil {
			t.Error(err)
		}
		done <- code
	}()
	say := func(line, want string) {
		t.Helper()
		if _, err := master.WriteString(line + "\n"); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, want, func() bool { return strings.Contains(out.String(), want) })
	}
	say("echo is$((40+2)) $TERM", "is42 xterm")
	say("stty size", "33 77")
	if err := pty.Setsize(slave, &pty.Winsize{Rows: 44, Cols: 88}); err != nil {
		t.Fatal(err)
	}
	signals <- syscall.SIGWINCH
	testkit.Eventually(t, "the new size", func() bool {
		_, err := master.WriteString("stty size\n")
		return err == nil && strings.Contains(out.String(), "44 88")
	})
	if _, err := master.WriteString("exit 9\n"); err != nil && !errors.Is(err, os.ErrClosed) {
		t.Fatal(err)
	}
	if code := <-done; code != 9 {
		t.Errorf("code %d, want 9: %q", code, out)
	}
}
