package runtime

import (
	"context"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/meshtask/consul-ecs/internal/testkit"
)

// attach runs a session whose streams are pipes, and returns what came of it.
func attach(t *testing.T, ctx context.Context, c *Container, stdin string, signals <-chan syscall.Signal, argv ...string) (code int, output string, err error) {
	t.Helper()
	in, feed, pipeErr := os.Pipe()
	if pipeErr != nil {
		t.Fatal(pipeErr)
	}
	out, write, pipeErr := os.Pipe()
	if pipeErr != nil {
		t.Fatal(pipeErr)
	}
	defer out.Close()
	go func() {
		_, _ = io.WriteString(feed, stdin)
		feed.Close()
	}()
	code, err = c.Attach(ctx, Session{Argv: argv, Stdin: in, Stdout: write, Stderr: write, Signals: signals})
	in.Close()
	write.Close()
	text, readErr := io.ReadAll(out)
	if readErr != nil {
		t.Fatal(readErr)
	}
	return code, string(text), err
}

func TestSessionsRunAsTheContainer(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	c, _ := start(t, r, Spec{User: "envoy", WorkingDir: "/work", Env: []string{"X=1"}, ReadOnlyRoot: true, Args: []string{"/bin/sleep", "1000"}})
	for _, tt := range []struct {
		argv   []string
		stdin  string
		code   int
		output string
		error  string
	}{
		{[]string{"/bin/sh", "-c", "pwd; echo $X; echo err >&2; exit 3"}, "", 3, "/work\n1\nerr\n", ""},
		{[]string{"/bin/sh", "-c", "read a; echo got $a"}, "hello\n", 0, "got hello\n", ""},
		{[]string{"/bin/sh", "-c", "echo x 2>/dev/null >/x || echo read-only"}, "", 0, "read-only\n", ""},
		{[]string{"/bin/sh", "-c", "kill -9 $$"}, "", 137, "", ""},
		{[]string{"none"}, "", 127, "", `exec: "none": executable file not found in $PATH`},
		{[]string{"/work"}, "", 126, "", `exec: "/work": stat /work: is a directory`},
		{nil, "", 125, "", "no command specified"},
	} {
		code, output, err := attach(t, t.Context(), c, tt.stdin, nil, tt.argv...)
		said := ""
		if err != nil {
			said = err.Error()
		}
		what := fmt.Sprintf("%q: ", tt.argv)
		testkit.Equal(t, what+"exit code", code, tt.code)
		testkit.Equal(t, what+"output", output, tt.output)
		testkit.Equal(t, what+"error", said, tt.error)
	}
}

func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	c, _ := start(t, r, Spec{Args: []string{"/bin/sleep", "1000"}})
	signals := make(chan syscall.Signal, 2)
	signals <- syscall.SIGWINCH // which only other runtimes handle
	signals <- syscall.SIGTERM
	if code, _, err := attach(t, t.Context(), c, "", signals, "/bin/sleep", "1000"); code != 143 || err != nil {
		t.Errorf("by a signal: %d, %v", code, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, _ := attach(t, ctx, c, "", nil, "/bin/sleep", "1000"); code != 137 && code != 125 {
		t.Errorf("by its context: %d", code)
	}
	go c.Kill()
	code, _, err := attach(t, t.Context(), c, "", nil, "/bin/sleep", "1000")
	if code != 137 && code != 125 {
		t.Errorf("with its container: %d", code)
	}
	if code == 125 {
		testkit.ErrorContains(t, err, "stopped container")
	}
	<-c.Done()
	if code, _, err := attach(t, t.Context(), c, "", nil, "/bin/sleep", "1000"); code != 125 || err == nil {
		t.Errorf("after it: %d, %v", code, err)
	}
}
