package simulated

import (
	"fmt"
	"net/netip"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/logkey"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

type launcher struct {
	options LifeOptions
	log     hclog.Logger
	wake    chan struct{} // there are orders
	stop    chan struct{} // closed by close
	done    chan struct{} // closed when the goroutine has ended

	mu     sync.Mutex
	orders []func(now time.Time)

	// The rest is the goroutine's.
	addresses *shapes.Pool
	domain    string            // of private DNS names
	tasks     map[string]*entry // by ID, until they are gone
	due       []*entry          // those that wait for a time, the earliest first
}

type entry struct {
	launch     controlplane.Launch
	task       *Task
	address    *metadata.Network // nil where there was none
	containers map[string]metadata.ContainerFacts
	due        time.Time
}

func newLauncher(o LifeOptions, subnet netip.Prefix, region string, log hclog.Logger) *launcher {
	l := &launcher{
		options: o, log: log, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
		addresses: shapes.NewPool(subnet), domain: shapes.SearchDomain(region), tasks: map[string]*entry{},
	}
	go l.run()
	return l
}

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

func (l *launcher) order(do func(now time.Time)) {
	l.mu.Lock()
	l.orders = append(l.orders, do)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *launcher) run() {
	defer close(l.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-l.wake:
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
			l.report(l.due[0], l.due[0].task.Advance(now))
		}
		if len(l.due) > 0 {
			timer.Reset(time.Until(l.due[0].due))
		}
	}
}

// launch starts a task. One that cannot be simulated stops as one that failed to
// start.
func (l *launcher) launch(in controlplane.Launch, now time.Time) {
	task, err := New(in.Definition, l.options, now)
	e := &entry{launch: in, task: task, containers: map[string]metadata.ContainerFacts{}}
	if ip, full := l.addresses.Take(); full != nil {
		err = full
	} else {
		e.address = &metadata.Network{
			IP: ip.String(), MAC: shapes.MAC(ip).String(), PrivateDNSName: shapes.PrivateDNSName(ip, l.domain),
		}
	}
	for i := range in.Definition.ContainerDefinitions {
		c := &in.Definition.ContainerDefinitions[i]
		e.containers[c.Name] = metadata.ContainerFacts{
			DockerID: shapes.RuntimeID(in.ID), ImageID: shapes.ImageDigest(c.Image),
		}
	}
	l.tasks[in.ID] = e
	if err != nil {
		l.log.Warn("task could not be started", logkey.TaskID, in.ID, logkey.Error, err)
		l.report(e, task.Stop(scheduler.StopTaskFailedToStart, fmt.Sprintf("ResourceInitializationError: %v", err),
			now))
		return
	}
	l.report(e, task.Advance(now))
}

func (l *launcher) report(e *entry, snapshots []Snapshot) {
	gone := false
	for _, m := range snapshots {
		r := controlplane.Report{View: m.View, Containers: e.containers, Gone: m.Gone}
		if m.Attached {
			r.Network = e.address
		}
		e.launch.Report(r, m.At)
		gone = m.Gone
	}
	if gone {
		delete(l.tasks, e.launch.ID)
		if e.address != nil {
			l.addresses.Release(netip.MustParseAddr(e.address.IP))
		}
	}
	if i := slices.Index(l.due, e); i >= 0 {
		l.due = slices.Delete(l.due, i, i+1)
	}
	if at, waits := e.task.Next(); waits {
		e.due = at
		l.due = slices.Insert(l.due, sort.Search(len(l.due), func(i int) bool { return l.due[i].due.After(at) }), e)
	}
}
