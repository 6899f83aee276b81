package control_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/control"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// pipes are the streams of a session, and their other ends.
type pipes struct {
	runtime.Session
	in       *os.File
	out, err *os.File
	signals  chan syscall.Signal
}

func newPipes(t *testing.T) *pipes {
	t.Helper()
	p := &pipes{signals: make(chan syscall.Signal, 1)}
	p.Signals = p.signals
	for _, ends := range []struct{ read, write **os.File }{{&p.Stdin, &p.in}, {&p.out, &p.Stdout},
		{&p.err, &p.Stderr}} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		*ends.read, *ends.write = r, w
		t.Cleanup(func() {
			r.Close()
			w.Close()
		})
	}
	return p
}

// dial serves a fakeController of one session, and returns its client and its server.
func dial(t *testing.T, do func(context.Context, control.Request, runtime.Session) (int, error)) (*control.Client,
	*control.Server) {
	t.Helper()
	dir := t.TempDir()
	s := serve(t, dir, &fakeController{session: do})
	c, err := control.Dial(t.Context(), dir, version)
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

func TestSessionHasStreamsAndSignals(t *testing.T) {
	t.Parallel()
	asked := control.Request{
		Argv: []string{"a", "b"}, TaskID: "1", Container: "web", Terminal: true, Env: []string{"X=1"},
	}
	var got control.Request
	c, _ := dial(t, func(_ context.Context, r control.Request, s runtime.Session) (int, error) {
		got = r
		text, err := io.ReadAll(s.Stdin)
		fmt.Fprintf(s.Stdout, "%s, %v, %q", text, err, s.Argv)
		fmt.Fprint(s.Stderr, (<-s.Signals).String(), s.Terminal)
		return 42, nil
	})
	p := newPipes(t)
	if _, err := p.in.WriteString("hello"); err != nil {
		t.Fatal(err)
	}
	p.in.Close()
	p.signals <- syscall.SIGUSR1
	code, err := c.Attach(t.Context(), asked, p.Session)
	p.Stdout.Close()
	p.Stderr.Close()
	out, _ := io.ReadAll(p.out)
	said, _ := io.ReadAll(p.err)
	testkit.Equal(t, "code", code, 42)
	if err != nil {
		t.Fatalf("%d, %v, %s, %s", code, err, out, said)
	}
	testkit.Equal(t, "string(out)", string(out), `hello, <nil>, ["a" "b"]`)
	testkit.Equal(t, "string(said)", string(said), "user defined signal 1true")
	if diff := cmp.Diff(asked, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestErrorsOfASessionHaveItsCode(t *testing.T) {
	t.Parallel()
	c, _ := dial(t, func(context.Context, control.Request, runtime.Session) (int, error) {
		return runtime.CodeNotFound, errors.New("no such program")
	})
	code, err := c.Visit(t.Context(), control.Request{}, newPipes(t).Session)
	testkit.Equal(t, "code", code, 127)
	if err == nil {
		t.Fatalf("%d, %v", code, err)
	}
	testkit.Equal(t, "Error()", err.Error(), "no such program")
}

func TestSessionEndsWithItsClient(t *testing.T) {
	t.Parallel()
	started, ended := make(chan struct{}), make(chan struct{})
	c, s := dial(t, func(ctx context.Context, _ control.Request, _ runtime.Session) (int, error) {
		close(started)
		<-ctx.Done()
		close(ended)
		return 137, nil
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	go func() {
		<-started
		cancel(enough)
	}()
	if code, err := c.Attach(ctx, control.Request{}, newPipes(t).Session); code != 125 || !errors.Is(err, enough) {
		t.Errorf("%d, %v", code, err)
	}
	testkit.Eventually(t, "the session ends", func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if code, err := c.Attach(t.Context(), control.Request{}, newPipes(t).Session); code != 125 ||
		!errors.Is(err, control.ErrGone) {
		t.Errorf("after the end: %d, %v", code, err)
	}
}
