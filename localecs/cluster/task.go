package cluster

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Task is one running task. Its goroutine owns the state machine; all
// others see copies.
type Task struct {
	cluster *Cluster
	launch  launch
	name    string // the observer's name for it
	id      string
	def     *taskdef.TaskDefinition
	ns      *network.Namespace
	names   TaskNames
	facts   metadata.Facts
	// host is the host of metadata and credentials in URLs.
	host string
	// group starts the containers.
	group runtime.Group
	meter *meter
	// credentials is the ID under which the role's are served; empty without.
	credentials string
	// By container name, complete after prepare.
	env  map[string][]string
	logs map[string]*logFile
	// volumes are host directories by volume name.
	volumes map[string]string
	// shared are the host's files that all containers have, by path.
	shared map[string]string
	// closers release what the task holds, last acquired first.
	closers []func() error

	// unready is the error that keeps containers from starting: a secret that cannot be read.
	unready error

	events  chan scheduler.Event
	stopped chan struct{} // closed when no event counts any more
	done    chan struct{} // closed when nothing of the task is left

	mu         sync.Mutex
	view       scheduler.View
	containers map[string]*runtime.Container
	images     map[string]runtime.Image // by name, once pulled
}

// ID is the task ID, the last part of its ARN.
func (t *Task) ID() string { return t.id }

// Definition returns the task's, with overrides and the containers that AWS adds.
func (t *Task) Definition() *taskdef.TaskDefinition { return t.def }

// IP is the task's address in the VPC.
func (t *Task) IP() string { return t.ns.IP.String() }

// Facts are what the task's metadata shows besides its state.
func (t *Task) Facts() metadata.Facts { return t.facts }

// Done is closed when the task is STOPPED and nothing of it is left.
func (t *Task) Done() <-chan struct{} { return t.done }

// Ended reports whether Done is closed.
func (t *Task) Ended() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// Dial connects from inside the task, as its application would.
func (t *Task) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return t.ns.DialContext(ctx, network, address)
}

// View returns the current state of the task.
func (t *Task) View() scheduler.View {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.view
}

// stop asks for an orderly stop. Only the first request counts.
func (t *Task) stop(code, reason string) {
	t.send(scheduler.StopRequested{Code: code, Reason: reason})
}

// Kill sends a signal into a running container, as kill(1) does: to every
// process of the program with that name (the last element of its path), or to
// the container's first process when program is empty. It is an error when there
// is none.
func (t *Task) Kill(container, program string, s syscall.Signal) error {
	c, err := t.alive(container)
	switch {
	case err != nil:
		return err
	case program == "":
		return c.Signal(s)
	case c.SignalProgram(program, s) == 0:
		return notRun(container, program)
	}
	return nil
}

func (t *Task) abort() {
	t.send(scheduler.StopRequested{Code: scheduler.StopInfrastructureHealth, Reason: "the simulator is ending", Kill: true})
	<-t.done
}

func (t *Task) send(e scheduler.Event) {
	select {
	case t.events <- e:
	case <-t.stopped: // a late probe or pull
	}
}

// run is the task's goroutine: events into the state machine, actions out of
// it, until the task is stopped.
func (t *Task) run(state *scheduler.Task) {
	defer t.cluster.forget(t)
	defer close(t.done)
	defer func() {
		if err := errors.Join(t.keepMetadata(), t.release()); err != nil {
			t.cluster.options.Log.Warn("release task resources failed", logkey.TaskID, t.id, logkey.Error, err)
		}
	}()
	var acting sync.WaitGroup
	defer acting.Wait()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer close(t.stopped)
	var event scheduler.Event = scheduler.Tick{}
	if t.unready != nil {
		event = scheduler.StopRequested{Code: scheduler.StopTaskFailedToStart, Reason: t.unready.Error()}
	}
	for {
		if stop, ok := event.(scheduler.StopRequested); ok && stop.Kill {
			cancel() // starts as well
		}
		for _, a := range t.apply(state, event) {
			if _, ok := a.(scheduler.TaskStopped); ok {
				return
			}
			acting.Go(func() { t.act(ctx, a) })
		}
		var due <-chan time.Time
		if at, ok := state.Next(); ok {
			due = time.After(time.Until(at))
		}
		select {
		case event = <-t.events:
		case <-due:
			event = scheduler.Tick{}
		}
	}
}

// apply hands the event to the state machine, publishes the new view and notifies
// the observer of what changed.
func (t *Task) apply(state *scheduler.Task, event scheduler.Event) []scheduler.Action {
	now := time.Now()
	actions := state.Apply(event, now)
	view := state.View()
	t.mu.Lock()
	old := t.view
	t.view = view
	t.mu.Unlock()
	if t.launch.Observe != nil {
		t.launch.Observe(t, view)
	}
	for _, e := range scheduler.Changes(t.name, old, view, now) {
		t.cluster.options.Observe(e)
	}
	return actions
}

func (t *Task) act(ctx context.Context, action scheduler.Action) {
	switch a := action.(type) {
	case scheduler.Pull:
		t.pull(ctx, a)
	case scheduler.Start:
		t.start(ctx, a.Container)
	case scheduler.Signal:
		t.signal(a.Container)
	case scheduler.Kill:
		if c := t.container(a.Container); c != nil {
			c.Kill()
		}
	case scheduler.Probe:
		t.probe(a)
	}
}

// pull gets the image, and with it the defaults of the container.
func (t *Task) pull(ctx context.Context, a scheduler.Pull) {
	i, err := t.cluster.runtime.Pull(ctx, a.Image)
	if err != nil {
		t.cluster.fail(err)
		t.send(scheduler.PullFailed{Container: a.Container, Reason: err.Error()})
		return
	}
	t.mu.Lock()
	t.images[a.Image] = i
	t.mu.Unlock()
	t.send(scheduler.PullDone{Container: a.Container})
}

func (t *Task) image(container string) runtime.Image {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.images[t.def.Container(container).Image]
}

// signal sends the image's stop signal. A container that cannot be signalled is
// killed after its stopTimeout, so a failure is only logged.
func (t *Task) signal(name string) {
	c := t.container(name)
	if c == nil {
		return
	}
	signal, err := t.image(name).Signal()
	if err == nil {
		err = c.Signal(signal)
	}
	if err != nil {
		t.cluster.options.Log.Warn("container was not signalled", logkey.TaskID, t.id, logkey.Container, name, logkey.Error, err)
	}
}

func (t *Task) container(name string) *runtime.Container {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.containers[name]
}

func (t *Task) start(ctx context.Context, name string) {
	c, err := t.group.Start(ctx, t.spec(name))
	if err != nil {
		t.cluster.fail(err)
		reason := err.Error()
		if failed, ok := errors.AsType[*runtime.StartError](err); ok {
			reason = failed.Reason()
		}
		t.send(scheduler.StartFailed{Container: name, Reason: reason})
		return
	}
	started := c.Started()
	t.mu.Lock()
	t.containers[name] = c
	t.mu.Unlock()
	t.send(scheduler.Started{Container: name, At: started})
	t.meter.Begin(name, c)
	<-c.Done()
	exit := c.Exit()
	if exit.At.Before(started) { // it had ended before its start was reported
		exit.At = started
	}
	t.send(scheduler.Exited{Container: name, Code: exit.Code, OOM: exit.OOM, At: exit.At})
}

// KillAll ends the task as the death of its machine does: every container is
// killed without a stop signal, and nothing starts any more. A task that has
// stopped is no error.
func (t *Task) KillAll() {
	t.send(scheduler.StopRequested{Code: scheduler.StopEssentialContainerExited, Reason: scheduler.EssentialExited, Kill: true})
}

func (t *Task) release() error {
	var errs []error
	for _, closer := range slices.Backward(t.closers) {
		errs = append(errs, closer())
	}
	return errors.Join(errs...)
}
