package simulated

import (
	"container/heap"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
)

// launcher runs the control plane's tasks: one goroutine for all of them.
type launcher struct {
	options LifeOptions
	log     hclog.Logger
	news    chan struct{} // there are orders
	stop    chan struct{} // closed by close
	done    chan struct{} // closed when the goroutine has ended

	mu     sync.Mutex
	orders []func(now time.Time)

	// The rest is the goroutine's.
	addresses *addresses
	digests   digests
	tasks     map[string]*entry // by ID, until they are gone
	due       dueHeap
}

func newLauncher(o LifeOptions, a *addresses, log hclog.Logger) *launcher {
	l := &launcher{
		options: o, log: log, news: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
		addresses: a, digests: digests{}, tasks: map[string]*entry{},
	}
	go l.run()
	return l
}

// close ends the goroutine. Nothing happens to a task any more.
func (l *launcher) close() {
	close(l.stop)
	<-l.done
}

// Launch implements controlplane.Launcher.
func (l *launcher) Launch(in controlplane.Launch) {
	l.order(func(now time.Time) { l.launch(in, now) })
}

// Stop implements controlplane.Launcher.
func (l *launcher) Stop(id, code, reason string) {
	l.order(func(now time.Time) {
		if e := l.tasks[id]; e != nil {
			l.report(e, e.task.Stop(code, reason, now))
		}
	})
}

// order has the goroutine do something, after all that was ordered before.
func (l *launcher) order(do func(now time.Time)) {
	l.mu.Lock()
	l.orders = append(l.orders, do)
	l.mu.Unlock()
	select {
	case l.news <- struct{}{}:
	default:
	}
}

// ask orders something and waits until it is done. It is an error when the
// launcher is closed before.
func (l *launcher) ask(do func(now time.Time) error) error {
	answer := make(chan error, 1)
	l.order(func(now time.Time) { answer <- do(now) })
	select {
	case err := <-answer:
		return err
	case <-l.done:
		return errClosed
	}
}

// run is the goroutine: orders as they come, tasks as they are due.
func (l *launcher) run() {
	defer close(l.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-l.news:
		case <-timer.C:
		}
		l.mu.Lock()
		orders := l.orders
		l.orders = nil
		l.mu.Unlock()
		for _, do := range orders {
			do(time.Now())
		}
		for now := time.Now(); len(l.due) > 0 && !l.due[0].due.After(now); {
			e := l.due[0]
			l.report(e, e.task.Advance(now))
		}
		if len(l.due) > 0 {
			timer.Reset(time.Until(l.due[0].due))
		}
	}
}

// launch begins a task. One that cannot be simulated stops as one that failed to
// start.
func (l *launcher) launch(in controlplane.Launch, now time.Time) {
	task, err := New(in.Definition, l.options, now)
	e := &entry{launch: in, task: task, at: -1, containers: map[string]controlplane.ContainerFacts{}}
	var full error
	if e.address, full = l.addresses.take(); full != nil {
		err = full
	}
	for i := range in.Definition.ContainerDefinitions {
		c := &in.Definition.ContainerDefinitions[i]
		e.containers[c.Name] = controlplane.ContainerFacts{RuntimeID: runtimeID(in.ID), ImageDigest: l.digests.of(c.Image)}
	}
	l.tasks[in.ID] = e
	if err != nil {
		l.log.Warn("task could not be started", logkey.TaskID, in.ID, logkey.Error, err)
		l.report(e, task.Stop(scheduler.StopTaskFailedToStart, fmt.Sprintf("ResourceInitializationError: %v", err), now))
		return
	}
	l.report(e, task.Advance(now))
}

// report tells the control plane how the task was at each of the moments, and
// puts it where it is due next.
func (l *launcher) report(e *entry, moments []Moment) {
	for _, m := range moments {
		r := controlplane.Report{View: m.View, Containers: e.containers, Gone: m.Gone}
		if m.Attached {
			r.Network = e.address
		}
		e.reached(r)
		e.launch.Report(r, m.At)
	}
	for _, w := range e.satisfied() {
		close(w)
	}
	at, waits := e.task.Next()
	if len(moments) > 0 && moments[len(moments)-1].Gone {
		delete(l.tasks, e.launch.ID)
		l.addresses.give(e.address)
	}
	switch e.due = at; {
	case !waits && e.at >= 0:
		heap.Remove(&l.due, e.at)
	case !waits:
	case e.at >= 0:
		heap.Fix(&l.due, e.at)
	default:
		heap.Push(&l.due, e)
	}
}
