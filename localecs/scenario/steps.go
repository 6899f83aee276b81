package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/localecs/view"
)

// steps carries out the steps in order; the first that fails ends them.
func (r *runner) steps(ctx context.Context) error {
	r.faults.Add(r.file.Faults)
	for i, s := range r.file.Steps {
		if r.live.Ended() {
			return context.Cause(ctx)
		}
		end := r.beginStep(i+1, s)
		err := r.clock.Await(ctx, s.At)
		if err == nil {
			err = r.step(ctx, s)
		}
		if err != nil {
			err = fmt.Errorf("step %d: %w", i+1, r.because(err))
		}
		end(err)
		if err != nil {
			return err
		}
	}
	return nil
}

// because adds to an error the task that is stopping without having been asked:
// a refused connection has its reason there.
func (r *runner) because(err error) error {
	for _, t := range r.tasks.Begun() {
		if t.Ended() && !strings.Contains(err.Error(), "task "+t.Name+" ended") {
			err = fmt.Errorf("%w; task %s ended by itself: %s", err, t.Name, r.whyEnded(t.Name, t.View()))
		}
	}
	return err
}

func (r *runner) step(ctx context.Context, s file.Step) error {
	for _, name := range s.Tasks() {
		if of := r.file.ServiceOf(name); of != "" && r.task(name) == nil {
			return fmt.Errorf("%s: service %s has not started a task %s so far", s, of, name)
		}
	}
	switch {
	case s.Start != nil:
		return r.start(s.Start)
	case s.Stop != nil:
		return r.stop(ctx, *s.Stop)
	case s.Scale != nil, s.Deploy != nil:
		return r.changeService(s)
	case s.Kill != nil:
		return r.kill(*s.Kill)
	case s.Await != nil:
		return r.await(ctx, *s.Await)
	case s.MTLS != nil, s.Get != nil, s.Post != nil:
		return r.question(ctx, s)
	case s.Faults != nil:
		r.faults.Add(s.Faults)
		return nil
	case s.Traffic != nil:
		return r.startTraffic(ctx, *s.Traffic)
	case s.Pause > 0:
		return r.pause(ctx, s.Pause)
	default:
		r.endTraffic(*s.EndTraffic)
		return nil
	}
}

// pause waits, and fails when a task ends that no step has brought to its end.
func (r *runner) pause(ctx context.Context, d time.Duration) error {
	ctx, release := r.whileTasksRun(ctx)
	defer release()
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *runner) start(names []string) error {
	for _, name := range names {
		if _, service := r.file.Services[name]; service {
			if err := r.create(name); err != nil {
				return err
			}
			continue
		}
		task, err := r.fleet.Run(name, r.file.Tasks[name])
		if err != nil {
			return fmt.Errorf("start %s: %w", name, err)
		}
		r.began(name, task)
	}
	return nil
}

// began notes a task that has begun.
func (r *runner) began(name string, task *cluster.Task) {
	r.tasks.Begin(name, task)
	r.record.Begin(r.tasks.Task(name))
	r.tell(Event{Kind: KindTask, Task: name, TaskID: task.ID(), Address: task.IP(), Text: "task " + task.ID() + " at " + task.IP()})
}

// task is a task that has begun; nil for one that has not.
func (r *runner) task(name string) *cluster.Task { return r.tasks.Task(name).Task }

// kill sends a signal into a container. ECS ends the task of an essential one,
// which is then no surprise; nor is that it had to be killed.
func (r *runner) kill(k file.Kill) error {
	signal, process := syscall.SIGKILL, "its first process"
	if k.Signal != "" {
		signal, _ = runtime.ParseSignal(k.Signal) // the file was checked
	}
	if k.Process != "" {
		process = k.Process
	}
	if k.Container == "" {
		return r.killAll(k.Task)
	}
	r.tasks.MayKill(k.Task, k.Container)
	name := unix.SignalName(signal)
	r.tell(Event{Kind: view.KindKill, Task: k.Task, Container: k.Container, Detail: name, Text: name + " to " + process})
	if err := r.task(k.Task).Kill(k.Container, k.Process, signal); err != nil {
		return fmt.Errorf("kill in %s: %w", k.Task, err)
	}
	return nil
}

// killAll kills everything in a task at once, as the death of what it runs on
// does.
func (r *runner) killAll(name string) error {
	r.tasks.Change(name, func(t *Task) {
		t.MayEnd = true
		for _, c := range t.Definition.ContainerDefinitions {
			t.Killed = append(t.Killed, c.Name)
		}
	})
	r.tell(Event{Kind: view.KindKill, Task: name, Detail: unix.SignalName(syscall.SIGKILL), Text: "SIGKILL to everything in it"})
	r.task(name).KillAll()
	return nil
}

// stop stops the tasks side by side and, unless it is for the background, waits
// until they are STOPPED and nothing of them is left in Consul.
func (r *runner) stop(ctx context.Context, s file.Stop) error {
	errs := make([]error, len(s.Tasks))
	var all sync.WaitGroup
	for i, name := range s.Tasks {
		all.Go(func() {
			if err := r.stopOne(ctx, name, s.Background, s.Leaves()); err != nil {
				errs[i] = fmt.Errorf("stop %s: %w", name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (r *runner) stopOne(ctx context.Context, name string, background bool, leaves file.Leaves) error {
	if _, service := r.file.Services[name]; service {
		return r.remove(ctx, name, leaves)
	}
	r.tasks.MayEnd(name)
	task := r.task(name)
	if err := r.fleet.Stop(task.ID()); err != nil {
		return err
	}
	if background {
		return nil
	}
	select {
	case <-task.Done():
	case <-ctx.Done():
		return ctx.Err()
	}
	return r.cleared(ctx, name, leaves)
}
