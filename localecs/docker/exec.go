package docker

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"syscall"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"
	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/localecs/runtime"
)

const (
	// look is how often the engine is asked whether a process still runs: its
	// children may hold the output open.
	look = 200 * time.Millisecond
	// answer is how long the engine may take to say how a process has ended.
	answer = 5 * time.Second
	// maxOutput is how much of a probe's output is kept, in bytes.
	maxOutput = 4096
)

// Exec runs a process by the engine, which cannot end one: the process is looked up
// here and killed, without its children.
func (l *life) Exec(ctx context.Context, s runtime.ExecSpec) runtime.ExecResult {
	if len(s.Argv) == 0 {
		return runtime.NotStarted(errors.New("no command specified"))
	}
	api := l.group.engine.api
	// The engine is asked without ctx: what it has begun must not get lost.
	calls, cancel := context.WithCancel(context.Background())
	defer cancel()
	created, err := api.ContainerExecCreate(calls, l.id, container.ExecOptions{Cmd: s.Argv, AttachStdout: true, AttachStderr: true})
	if err != nil {
		return runtime.NotStarted(runtime.ErrEnded)
	}
	attached, err := Hijack(calls, l.group.engine.limit, func() (types.HijackedResponse, error) {
		return api.ContainerExecAttach(calls, created.ID, container.ExecAttachOptions{})
	})
	if err != nil {
		return runtime.NotStarted(Error(err))
	}
	defer attached.Close()
	output := kept{done: make(chan struct{})}
	go func() {
		defer close(output.done)
		_, _ = stdcopy.StdCopy(&output, &output, attached.Reader)
	}()
	state, interrupted := l.await(ctx, created.ID, output.done, false)
	attached.Close()
	<-output.done
	return result(ctx, s, state, output.text.String(), interrupted)
}

// result is what came of a process.
func result(ctx context.Context, s runtime.ExecSpec, state container.ExecInspect, output string, interrupted bool) runtime.ExecResult {
	const killed = 128 + int(unix.SIGKILL)
	switch {
	case interrupted && (state.Running || state.ExitCode == killed):
		end := s.Interrupted(ctx)
		if !end.TimedOut {
			end.Output = output
		}
		end.Started = true
		return end
	case (state.ExitCode == 126 || state.ExitCode == 127) && strings.HasPrefix(output, refused):
		return runtime.ExecResult{Code: runtime.CodeNotStarted, Output: strings.TrimRight(output, "\r\n")}
	}
	return runtime.ExecResult{Code: state.ExitCode, Output: output, Started: true}
}

// refused begins the engine's error about a process that could not be executed.
const refused = "OCI runtime exec failed: "

// await waits for a process's end, and brings it about when ctx ends; with group
// also that of its children.
func (l *life) await(ctx context.Context, id string, silent <-chan struct{}, group bool) (state container.ExecInspect, interrupted bool) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	over := ctx.Done()
	var end <-chan time.Time
	for {
		select {
		case <-silent:
			silent = nil
			tick.Reset(look / 20) // it has ended, or is about to
		case <-tick.C:
		case <-over:
			over, interrupted = nil, true
			tick.Reset(look / 20)
			end = time.After(answer)
		case <-end:
			return state, interrupted
		}
		var err error
		if state, err = l.group.engine.api.ContainerExecInspect(context.Background(), id); err != nil {
			return container.ExecInspect{ExitCode: lost}, interrupted
		}
		switch {
		case !state.Running && (state.Pid != 0 || silent == nil):
			if silent != nil { // what it wrote last, unless its children hold the output open
				select {
				case <-silent:
				case <-time.After(look):
				}
			}
			return state, interrupted
		case interrupted && state.Pid != 0:
			l.signal(state.Pid, unix.SIGKILL, group)
		}
	}
}

// signal sends a signal to one process of the container, by the engine's number, or
// to the process group that it leads.
func (l *life) signal(engines int, s syscall.Signal, group bool) {
	e := l.group.engine
	e.mu.Lock()
	level := e.level
	e.mu.Unlock()
	pid, pidfd := OpenProcess(l.id, engines, level)
	if pidfd == nil {
		return
	}
	defer pidfd.Close()
	if group {
		_ = unix.Kill(-pid, s) // the number is held by pidfd
		return
	}
	if conn, err := pidfd.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { _ = unix.PidfdSendSignal(int(fd), s, nil, 0) })
	}
}

// kept keeps the beginning of what is written.
type kept struct {
	text bytes.Buffer
	done chan struct{}
}

// Write takes everything.
func (k *kept) Write(b []byte) (int, error) {
	k.text.Write(b[:min(len(b), maxOutput-k.text.Len())])
	return len(b), nil
}
