package docker

import (
	"context"
	"syscall"
	"time"

	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/localecs/runtime"
)

const (
	// look is how often the engine is asked whether a process still runs: its
	// children may hold the output open.
	look = 200 * time.Millisecond
	// answer is how long the engine may take to report how a process has ended.
	answer = 5 * time.Second
)

// refused begins the engine's error about a process that could not be executed.
const refused = "OCI runtime exec failed: "

// await waits for a process's end, and brings it about when ctx ends; with group
// also that of its children. The code is its exit code.
func (l *life) await(ctx context.Context, id string, silent <-chan struct{}, group bool) (code int) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	over := ctx.Done()
	interrupted := false
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
			return runtime.CodeKilled
		}
		state, err := l.group.engine.api.ExecInspect(context.Background(), id, client.ExecInspectOptions{})
		if err != nil {
			return runtime.CodeKilled
		}
		switch {
		case !state.Running && (state.PID != 0 || silent == nil):
			if silent != nil { // what it wrote last, unless its children hold the output open
				select {
				case <-silent:
				case <-time.After(look):
				}
			}
			return state.ExitCode
		case interrupted && state.PID != 0:
			l.signal(state.PID, unix.SIGKILL, group)
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
	pid, pidfd := openProcess(l.id, engines, level)
	if pidfd == nil {
		return
	}
	defer pidfd.Close()
	if group {
		_ = unix.Kill(-pid, s) // the number is held by pidfd
		return
	}
	_ = runtime.NewProcesses(pid, pidfd).Signal(s)
}
