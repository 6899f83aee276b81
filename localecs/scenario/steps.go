package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"

	"github.com/meshtask/consul-ecs/localecs/runtime/image"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/localecs/scenario/progress"
	"github.com/meshtask/consul-ecs/localecs/scheduler"
	"golang.org/x/sys/unix"
)

// steps carries out the steps in order; the first that fails ends them.
func (r *runner) steps(ctx context.Context) error {
	for i, s := range r.file.Steps {
		end := r.beginStep(i+1, s)
		err := r.step(ctx, s)
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
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range r.names {
		t := r.tasks[name]
		v := t.task.View()
		if t.mayEnd || v.DesiredStatus != scheduler.StatusStopped || strings.Contains(err.Error(), "task "+name+" ended") {
			continue
		}
		err = fmt.Errorf("%w; task %s ended by itself: %s", err, name, r.whyEnded(name, v))
	}
	return err
}

func (r *runner) step(ctx context.Context, s file.Step) error {
	switch {
	case s.Start != nil:
		return r.start(s.Start)
	case s.Stop != nil:
		return r.stop(ctx, *s.Stop)
	case s.Kill != nil:
		return r.kill(*s.Kill)
	case s.Await != nil:
		return r.await(ctx, *s.Await)
	case s.MTLS != nil:
		return r.mtls(ctx, *s.MTLS)
	case s.Get != nil:
		return r.get(ctx, *s.Get)
	case s.Post != nil:
		return r.post(ctx, *s.Post)
	case s.Traffic != nil:
		return r.startTraffic(ctx, *s.Traffic)
	default:
		r.endTraffic(*s.EndTraffic)
		return nil
	}
}

func (r *runner) start(names []string) error {
	for _, name := range names {
		t := r.tasks[name]
		task, err := r.cluster.RunInService(t.service, name, t.def)
		if err != nil {
			return fmt.Errorf("start %s: %w", name, err)
		}
		r.mu.Lock()
		t.task = task
		r.names = append(r.names, name)
		r.mu.Unlock()
		r.tell(progress.Event{Kind: progress.Task, Task: name, TaskID: task.ID(), Address: task.IP(), Text: "task " + task.ID() + " at " + task.IP()})
	}
	return nil
}

// kill sends a signal into a container. ECS ends the task of an essential one,
// which is then no surprise; nor is that it had to be killed.
func (r *runner) kill(k file.Kill) error {
	signal, process := syscall.SIGKILL, "its first process"
	if k.Signal != "" {
		signal, _ = image.ParseSignal(k.Signal) // the file was checked
	}
	if k.Process != "" {
		process = k.Process
	}
	t := r.tasks[k.Task]
	r.mu.Lock()
	t.killed = append(t.killed, k.Container)
	if t.def.Container(k.Container).IsEssential() {
		t.mayEnd = true
	}
	r.mu.Unlock()
	name := unix.SignalName(signal)
	r.tell(progress.Event{Kind: progress.Kill, Task: k.Task, Container: k.Container, Detail: name, Text: name + " to " + process})
	if err := t.task.Kill(k.Container, k.Process, signal); err != nil {
		return fmt.Errorf("kill in %s: %w", k.Task, err)
	}
	return nil
}

// stop stops the tasks side by side and waits until they are STOPPED and
// nothing of them is left in Consul.
func (r *runner) stop(ctx context.Context, s file.Stop) error {
	errs := make([]error, len(s.Tasks))
	var all sync.WaitGroup
	for i, name := range s.Tasks {
		all.Go(func() {
			if err := r.stopOne(ctx, name, s.Leaves()); err != nil {
				errs[i] = fmt.Errorf("stop %s: %w", name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (r *runner) stopOne(ctx context.Context, name string, leaves file.Leaves) error {
	r.mayEnd(name)
	task := r.tasks[name].task
	task.Stop(scheduler.StopUserInitiated, "Task stopped by user")
	select {
	case <-task.Done():
	case <-ctx.Done():
		return ctx.Err()
	}
	return r.cleared(ctx, name, leaves)
}
