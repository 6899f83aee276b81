package docker

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"
	"github.com/meshtask/consul-ecs/localecs/docker/hostpid"
	"github.com/meshtask/consul-ecs/localecs/docker/remains"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/localecs/runtime/cgroup"
	"github.com/meshtask/consul-ecs/localecs/runtime/processes"
)

// outputGrace is how long output is awaited after the end of a container.
const outputGrace = time.Second

// The engine hears that a container was killed for its memory, and of its end, in either
// order: what SIGKILL has ended is asked about so often, so far apart.
const (
	memoryLooks = 20
	memoryPause = 50 * time.Millisecond
)

// codeKilled is the exit code of a container that SIGKILL has ended.
const codeKilled = 128 + int(syscall.SIGKILL)

// lost is the exit code of a container whose engine does not answer any more.
const lost = codeKilled

// life is a container of the engine's.
type life struct {
	group     *group
	id, name  string
	processes *processes.Group
	pidfd     *os.File // nil when it ended before it was found
	measured  *cgroup.Group
	started   time.Time
	results   <-chan container.WaitResponse
	errs      <-chan error
	stop      context.CancelFunc // of both
	attached  types.HijackedResponse
	written   chan struct{} // closed when all output is
}

// live starts a container that was created. Its output and its end are listened for
// before.
func (g *group) live(ctx context.Context, id string, s runtime.Spec) (*life, error) {
	api := g.engine.api
	l := &life{group: g, id: id, name: s.Name, written: make(chan struct{})}
	var err error
	if l.attached, err = api.ContainerAttach(ctx, id, container.AttachOptions{Stream: true, Stdout: true, Stderr: true}); err != nil {
		return nil, fmt.Errorf("attach to its output: %w", err)
	}
	go l.copy(s)
	waiting, stop := context.WithCancel(ctx)
	l.stop = stop
	l.results, l.errs = api.ContainerWait(waiting, id, container.WaitConditionNextExit)
	err = api.ContainerStart(ctx, id, container.StartOptions{})
	if err == nil {
		err = l.find(ctx)
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// find finds the container's first process. One that has ended has none.
func (l *life) find(ctx context.Context) error {
	e := l.group.engine
	state, err := e.api.ContainerInspect(ctx, l.id)
	if err != nil {
		return err
	}
	e.mu.Lock()
	level := e.level
	e.mu.Unlock()
	pid := 0
	if state.State.Pid != 0 {
		pid, l.pidfd = hostpid.Open(l.id, state.State.Pid, level)
	}
	l.started = moment(state.State.StartedAt, time.Time{})
	if l.pidfd != nil {
		l.measured, _ = cgroup.Of(pid) // nil is not measured
	}
	l.processes = processes.New(pid, l.pidfd)
	return nil
}

// moment is a time that the engine tells, now when it makes no sense: the engine may
// be slow to tell what has happened.
func moment(text string, after time.Time) time.Time {
	now := time.Now()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.Before(after) || at.IsZero() || at.After(now) {
		return now
	}
	return now.Add(-now.Sub(at)) // with now's monotonic clock
}

// copy writes the container's output until it ends.
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
	exit := runtime.Exit{Code: lost}
	select {
	case r := <-l.results:
		exit.Code = int(r.StatusCode)
	case err := <-l.errs:
		e.lose(fmt.Errorf("the Docker engine does not say any more how containers are: %w", err))
	}
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
	l.group.removals.Go(func() { _ = remains.Remove(ctx, e.api, l.id) }) // what stays, Close or the next run finds
	return exit
}

// final is how the engine says that the container has ended, nil when it does not.
func (l *life) final(ctx context.Context, code int) *container.State {
	var last *container.State
	for look := 1; ; look++ {
		now, err := l.group.engine.api.ContainerInspect(ctx, l.id)
		if err != nil || now.ContainerJSONBase == nil || now.State == nil {
			return last
		}
		last = now.State
		limited := now.HostConfig != nil && now.HostConfig.Memory > 0
		if code != codeKilled || last.OOMKilled || !limited || l.processes.Killed() || look == memoryLooks {
			return last
		}
		<-time.After(memoryPause)
	}
}

// close ends what listens.
func (l *life) close() {
	l.stop()
	l.attached.Close()
	<-l.written
	if l.pidfd != nil {
		l.pidfd.Close()
	}
}

// Usage reads the counters of the control group that the engine has made. It would
// take a second to say them.
func (l *life) Usage() (u runtime.Usage, ok bool) {
	if l.measured == nil {
		return u, false
	}
	return l.measured.Usage(), true
}
