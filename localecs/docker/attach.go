package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/meshtask/consul-ecs/internal/retry"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// Attach runs a process by the engine, and carries its streams, signals and the terminal's size.
func (l *life) Attach(ctx context.Context, s runtime.Session) (code int, err error) {
	if len(s.Argv) == 0 {
		return runtime.CodeFailed, errors.New("no command specified")
	}
	api := l.group.engine.api
	// Without ctx: the process is killed then, and its end awaited.
	calls, cancel := context.WithCancel(context.Background())
	defer cancel()
	created, err := api.ExecCreate(calls, l.id, client.ExecCreateOptions{
		Cmd: s.Argv, TTY: s.Terminal, AttachStdin: true, AttachStdout: true, AttachStderr: true,
	})
	if err != nil {
		return runtime.CodeFailed, runtime.ErrEnded
	}
	attached, err := hijack(calls, l.group.engine.limit, func() (client.HijackedResponse, error) {
		r, err := api.ExecAttach(calls, created.ID, client.ExecAttachOptions{TTY: s.Terminal})
		return r.HijackedResponse, err
	})
	if err != nil {
		return runtime.CodeFailed, engineError(err)
	}
	defer attached.Close()
	if s.Terminal {
		defer raw(s.Stdin)()
		l.resize(calls, created.ID, s.Stdin)
	}
	defer carryInput(attached, s.Stdin)()
	refusal := &refusal{to: s.Stdout}
	silent := make(chan struct{})
	go func() {
		defer close(silent)
		if s.Terminal {
			_, _ = io.Copy(refusal, attached.Reader)
		} else {
			_, _ = stdcopy.StdCopy(refusal, s.Stderr, attached.Reader)
		}
	}()
	go l.pass(calls, created.ID, s)
	code = l.await(ctx, created.ID, silent, !s.Alone)
	attached.Close()
	<-silent
	text := refusal.end()
	switch {
	case text == "":
		return code, nil
	case strings.Contains(text, "no such file or directory"), strings.Contains(text, "executable file not found"):
		return runtime.CodeNotFound, cause(errors.New(text))
	}
	return runtime.CodeNotExecutable, cause(errors.New(text))
}

// carryInput copies what the process reads. Where the file has no deadlines, that ends when its other side is closed.
func carryInput(to client.HijackedResponse, from *os.File) (stop func()) {
	go func() {
		_, _ = io.Copy(to.Conn, from)
		_ = to.CloseWrite()
	}()
	return func() { _ = from.SetReadDeadline(time.Now()) }
}

func (l *life) pass(ctx context.Context, id string, s runtime.Session) {
	for signals := s.Signals; ; {
		select {
		case <-ctx.Done():
			return
		case signal, ok := <-signals:
			switch {
			case !ok:
				signals = nil
			case signal == unix.SIGWINCH:
				l.resize(ctx, id, s.Stdin)
			default:
				l.deliver(ctx, id, signal)
			}
		}
	}
}

// deliver hands a signal to a process and its children. What a process writes may come
// before the engine reports its number.
func (l *life) deliver(ctx context.Context, id string, signal syscall.Signal) {
	for ctx.Err() == nil {
		state, err := l.group.engine.api.ExecInspect(ctx, id, client.ExecInspectOptions{})
		switch {
		case err != nil:
			return
		case state.PID != 0:
			if state.Running {
				l.signal(state.PID, signal, true)
			}
			return
		}
		_ = retry.Sleep(ctx, look/20)
	}
}

// resize gives the process's terminal the size of ours. One that it has not is left as it is.
func (l *life) resize(ctx context.Context, id string, terminal *os.File) {
	size, err := ioctl(terminal, func(fd int) (*unix.Winsize, error) { return unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ) })
	if err == nil && size.Row > 0 && size.Col > 0 {
		_, _ = l.group.engine.api.ExecResize(ctx, id, client.ExecResizeOptions{Height: uint(size.Row), Width: uint(size.Col)})
	}
}

// raw makes a terminal pass everything through: the container's does the rest.
func raw(terminal *os.File) (restore func()) {
	old, err := ioctl(terminal, term.MakeRaw)
	if err != nil {
		return func() {}
	}
	return func() {
		_, _ = ioctl(terminal, func(fd int) (*term.State, error) { return nil, term.Restore(fd, old) })
	}
}

// ioctl calls with a file's descriptor, and leaves its mode alone.
func ioctl[T any](f *os.File, call func(fd int) (*T, error)) (got *T, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	controlErr := conn.Control(func(fd uintptr) { got, err = call(int(fd)) })
	return got, errors.Join(controlErr, err)
}

// refusal passes output on, but for the engine's error when it cannot run the process.
type refusal struct {
	to   io.Writer
	held strings.Builder
	past bool // it is output
}

// Write holds back what may be a refusal.
func (r *refusal) Write(b []byte) (int, error) {
	if r.past {
		return r.to.Write(b)
	}
	r.held.Write(b)
	text := r.held.String()
	if strings.HasPrefix(text, refused) || strings.HasPrefix(refused, text) {
		return len(b), nil
	}
	r.past = true
	_, err := io.WriteString(r.to, text)
	return len(b), err
}

// end returns the refusal, if it was one; what was held and is none is passed on.
func (r *refusal) end() string {
	text := r.held.String()
	if r.past {
		return ""
	}
	if !strings.HasPrefix(text, refused) {
		_, _ = fmt.Fprint(r.to, text)
		return ""
	}
	return strings.TrimRight(text, "\r\n")
}
