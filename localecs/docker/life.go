package docker

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/meshtask/consul-ecs/localecs/runtime"
)

const outputGrace = time.Second

// The engine learns of a container's end and that it was killed for its memory in
// either order: after an end by SIGKILL it is asked so often, so far apart.
const (
	memoryLooks = 20
	memoryPause = 50 * time.Millisecond
)

type life struct {
	group     *group
	id, name  string
	processes *runtime.Processes
	pidfd     *os.File // nil when it ended before it was found
	measured  *runtime.ControlGroup
	started   time.Time
	waiting   client.ContainerWaitResult
	stop      context.CancelFunc // of waiting
	attached  client.HijackedResponse
	written   chan struct{} // closed when all output is
}

// live starts a container that was created. Its output and its end are listened for before.
func (g *group) live(ctx context.Context, id string, s runtime.Spec) (*life, error) {
	api := g.engine.api
	l := &life{group: g, id: id, name: s.Name, written: make(chan struct{})}
	var err error
	l.attached, err = hijack(ctx, g.engine.limit, func() (client.HijackedResponse, error) {
		r, err := api.ContainerAttach(ctx, id, client.ContainerAttachOptions{Stream: true, Stdout: true, Stderr: true})
		return r.HijackedResponse, err
	})
	if err != nil {
		return nil, fmt.Errorf("attach to its output: %w", err)
	}
	go l.copy(s)
	waiting, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	l.waiting = api.ContainerWait(waiting, id, client.ContainerWaitOptions{Condition: container.WaitConditionNextExit})
	_, err = api.ContainerStart(ctx, id, client.ContainerStartOptions{})
	if err == nil {
		err = l.find(ctx)
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *life) find(ctx context.Context) error {
	e := l.group.engine
	found, err := e.api.ContainerInspect(ctx, l.id, client.ContainerInspectOptions{})
	if err != nil {
		return err
	}
	state := found.Container.State
	e.mu.Lock()
	level := e.level
	e.mu.Unlock()
	pid := 0
	if state.Pid != 0 {
		pid, l.pidfd = openProcess(l.id, state.Pid, level)
	}
	l.started = moment(state.StartedAt, time.Time{})
	if l.pidfd != nil {
		l.measured, _ = runtime.GroupOfProcess(pid) // nil is not measured
	}
	l.processes = runtime.NewProcesses(pid, l.pidfd)
	return nil
}

// moment returns a time that the engine reports, now when it cannot be right: the engine may be slow to report.
func moment(text string, after time.Time) time.Time {
	now := time.Now()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.Before(after) || at.IsZero() || at.After(now) {
		return now
	}
	return now.Add(-now.Sub(at)) // with now's monotonic clock
}

func (l *life) copy(s runtime.Spec) {
	defer close(l.written)
	var copies sync.WaitGroup
	lines := func(to io.Writer) *io.PipeWriter {
		if to == nil {
			to = io.Discard
		}
		read, write := io.Pipe()
		copies.Go(func() { runtime.CopyLines(to, read) })
		return write
	}
	out, errs := lines(s.Stdout), lines(s.Stderr)
	_, _ = stdcopy.StdCopy(out, errs, l.attached.Reader)
	out.Close()
	errs.Close()
	copies.Wait()
}

// Wait asks the engine how the container has ended, and has it removed meanwhile.
func (l *life) Wait() runtime.Exit {
	e, ctx := l.group.engine, context.Background()
	exit := runtime.Exit{Code: l.code()}
	exit.At = time.Now()
	l.processes.End()
	if state := l.final(ctx, exit.Code); state != nil {
		exit.OOM, exit.At = state.OOMKilled, moment(state.FinishedAt, l.started)
	}
	select {
	case <-l.written:
	case <-time.After(outputGrace):
	}
	l.close()
	l.group.removals.Go(func() { _ = remove(ctx, e.api, l.id) }) // what stays, Close or the next run finds
	return exit
}

// code returns the container's exit code; runtime.CodeKilled also when the engine does not answer any more.
func (l *life) code() int {
	ended := l.processes.Ended()
	var late <-chan time.Time
	for {
		select {
		case r := <-l.waiting.Result:
			return int(r.StatusCode)
		case err := <-l.waiting.Error:
			l.group.engine.lose(fmt.Errorf("the Docker engine stopped reporting the states of containers: %w", err))
			return runtime.CodeKilled
		case <-ended:
			ended, late = nil, time.After(l.group.engine.limit)
		case <-late:
			l.group.engine.lose(fmt.Errorf("the Docker engine has not reported the end of container %s within %s", l.name, l.group.engine.limit))
			return runtime.CodeKilled
		}
	}
}

// final returns the engine's state of the container that has ended; nil when it reports none.
func (l *life) final(ctx context.Context, code int) *container.State {
	var last *container.State
	for look := 1; ; look++ {
		found, err := l.group.engine.api.ContainerInspect(ctx, l.id, client.ContainerInspectOptions{})
		now := found.Container
		if err != nil || now.State == nil {
			return last
		}
		last = now.State
		limited := now.HostConfig != nil && now.HostConfig.Memory > 0
		if code != runtime.CodeKilled || last.OOMKilled || !limited || l.processes.Killed() || look == memoryLooks {
			return last
		}
		<-time.After(memoryPause)
	}
}

func (l *life) close() {
	l.stop()
	l.attached.Close()
	<-l.written
	if l.pidfd != nil {
		l.pidfd.Close()
	}
}

// Usage reads the counters of the control group that the engine has made. Its own answer would take a second.
func (l *life) Usage() (u runtime.Usage, ok bool) {
	if l.measured == nil {
		return u, false
	}
	return l.measured.Usage(), true
}
