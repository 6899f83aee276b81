package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// executor gives the events of a task to its state machine, and carries out the actions.
type executor struct {
	task  *Task
	state *scheduler.Task
}

// run executes the task until it has stopped, and releases it.
func (e *executor) run() {
	t := e.task
	defer t.cluster.tasks.remove(t)
	defer close(t.done)
	defer func() {
		if err := errors.Join(t.saveMetadata(), t.resources.release()); err != nil {
			t.cluster.options.Log.Warn("release task resources failed", logkey.TaskID, t.launch.ID, logkey.Error, err)
		}
	}()
	var acting sync.WaitGroup
	defer acting.Wait()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer close(t.stopped)
	var event scheduler.Event = scheduler.Tick{}
	if err := t.resources.unready; err != nil {
		event = scheduler.StopRequested{Code: scheduler.StopTaskFailedToStart, Reason: err.Error()}
	}
	for {
		if stop, ok := event.(scheduler.StopRequested); ok && stop.Kill {
			cancel() // starts as well
		}
		for _, a := range e.apply(event) {
			if _, ok := a.(scheduler.TaskStopped); ok {
				return
			}
			acting.Go(func() { e.act(ctx, a) })
		}
		var due <-chan time.Time
		if at, ok := e.state.Next(); ok {
			due = time.After(time.Until(at))
		}
		select {
		case event = <-t.events:
		case <-due:
			event = scheduler.Tick{}
		}
	}
}

// apply hands the event to the state machine, publishes the new view and notifies the observers of what changed.
func (e *executor) apply(event scheduler.Event) []scheduler.Action {
	t, now := e.task, time.Now()
	actions := e.state.Apply(event, now)
	view := e.state.View()
	t.mu.Lock()
	old := t.view
	t.view = view
	t.mu.Unlock()
	if t.observe != nil {
		t.observe(t, view)
	}
	for _, change := range scheduler.Changes(t.name, old, view, now) {
		t.cluster.options.Observe(change)
	}
	return actions
}

func (e *executor) act(ctx context.Context, action scheduler.Action) {
	switch a := action.(type) {
	case scheduler.Pull:
		e.pull(ctx, a)
	case scheduler.Start:
		e.start(ctx, a.Container)
	case scheduler.Signal:
		e.signal(a.Container)
	case scheduler.Kill:
		if c := e.task.containers.get(a.Container); c != nil {
			c.Kill()
		}
	case scheduler.Probe:
		e.probe(a)
	}
}

// pull gets the image, and with it the defaults of the container.
func (e *executor) pull(ctx context.Context, a scheduler.Pull) {
	i, err := e.task.cluster.runtime.Pull(ctx, a.Image)
	if err != nil {
		e.task.cluster.fail(err)
		e.task.send(scheduler.PullFailed{Container: a.Container, Reason: err.Error()})
		return
	}
	e.task.containers.images.Store(a.Image, i)
	e.task.send(scheduler.PullDone{Container: a.Container})
}

func (e *executor) start(ctx context.Context, name string) {
	t := e.task
	def := *t.launch.Definition.Container(name) // the scheduler knows no other names
	c, err := t.resources.group.Start(ctx, t.resources.spec(def, t.containers.image(def.Image)))
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
	t.containers.put(name, c)
	t.send(scheduler.Started{Container: name, At: started})
	t.resources.meter.Begin(name, c)
	<-c.Done()
	exit := c.Exit()
	if exit.At.Before(started) { // it had ended before its start was reported
		exit.At = started
	}
	t.send(scheduler.Exited{Container: name, Code: exit.Code, OOM: exit.OOM, At: exit.At})
}

// signal sends the image's stop signal. A container that cannot be signalled is
// killed after its stopTimeout, so a failure is only logged.
func (e *executor) signal(name string) {
	t := e.task
	c := t.containers.get(name)
	if c == nil {
		return
	}
	signal, err := t.containers.image(t.launch.Definition.Container(name).Image).Signal()
	if err == nil {
		err = c.Signal(signal)
	}
	if err != nil {
		log := t.cluster.options.Log.With(logkey.TaskID, t.launch.ID)
		log.Warn("container was not signalled", logkey.Container, name, logkey.Error, err)
	}
}

func (e *executor) probe(p scheduler.Probe) {
	result := scheduler.ProbeDone{Container: p.Container, StartedAt: time.Now()}
	if c := e.task.containers.get(p.Container); c != nil {
		r := c.Exec(context.Background(), runtime.ExecSpec{
			Argv: Probe(e.task.launch.Definition.Container(p.Container).HealthCheck.Command), Timeout: p.Timeout,
		})
		result.Code, result.Output, result.TimedOut = r.Code, r.Output, r.TimedOut
	}
	result.At = time.Now()
	e.task.send(result)
}

// containerSet holds the started containers of a task by their names, and its pulled images by theirs.
type containerSet struct {
	mu      sync.Mutex
	started map[string]*runtime.Container
	images  sync.Map // of runtime.Image
}

// get returns the last start of a container, or nil.
func (s *containerSet) get(name string) *runtime.Container {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started[name]
}

func (s *containerSet) put(name string, c *runtime.Container) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started[name] = c
}

// image returns a pulled image.
func (s *containerSet) image(name string) runtime.Image {
	i, _ := s.images.Load(name)
	return i.(runtime.Image)
}

// running returns a container that has started and has not ended.
func (s *containerSet) running(name string) (*runtime.Container, error) {
	switch c := s.get(name); {
	case c == nil:
		return nil, fmt.Errorf("container %s has not started", name)
	case c.Exited():
		return nil, fmt.Errorf("container %s has ended", name)
	default:
		return c, nil
	}
}
