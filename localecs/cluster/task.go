package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/host"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/taskdef"
)

// Task is one running task. Its executor owns the state machine; all others see copies.
type Task struct {
	cluster    *Cluster
	launch     controlplane.Launch
	name       string // the observer's name for it
	observe    func(*Task, scheduler.View)
	resources  *resources
	containers *containerSet

	events  chan scheduler.Event
	stopped chan struct{} // closed when the executor takes no more events
	done    chan struct{} // closed when the resources are released

	mu   sync.Mutex
	view scheduler.View
}

// launchOptions describe a task to run.
type launchOptions struct {
	// Launch is the request. Containers without an ARN get one; its Report is not used.
	Launch controlplane.Launch
	// Name identifies the task to observers, and names its log directory.
	Name string
	// Observe gets every view, in order, before any other observer. It must not block; nil is allowed.
	Observe func(*Task, scheduler.View)
}

// launch starts a task.
func (c *Cluster) launch(l launchOptions) (*Task, error) {
	end, ok := c.starting.Begin()
	if !ok {
		return nil, errClosed
	}
	defer end()
	o := c.options
	r := &resources{
		cluster: c, launch: l.Launch, name: l.Name,
		volumes: map[string]string{}, logs: map[string]*logFile{}, env: map[string][]string{},
	}
	t := &Task{
		cluster: c, launch: l.Launch, name: l.Name, observe: l.Observe, resources: r,
		containers: &containerSet{started: map[string]*runtime.Container{}},
		events:     make(chan scheduler.Event), stopped: make(chan struct{}), done: make(chan struct{}),
	}
	schedule := scheduler.Options{AtOnce: o.AtOnce, TimeScale: o.TimeScale, GatePeriod: o.GatePeriod}
	e := &executor{task: t, state: scheduler.New(l.Launch.Definition, schedule, time.Now())}
	t.view = e.state.View()
	if err := r.acquire(metadata.Options{Lookup: t.lookup, Stats: t.stats}); err != nil {
		return nil, errors.Join(host.Shortage(err), r.release())
	}
	c.tasks.add(t)
	if t.observe != nil {
		t.observe(t, t.view)
	}
	go e.run()
	return t, nil
}

// ID returns the task ID, the last part of its ARN.
func (t *Task) ID() string { return t.launch.ID }

// Definition returns the task definition, with overrides and the containers that AWS adds.
func (t *Task) Definition() *taskdef.TaskDefinition { return t.launch.Definition }

// IP returns the task's address in the VPC.
func (t *Task) IP() string { return t.resources.ns.IP.String() }

// Facts returns what the task's metadata shows besides its state.
func (t *Task) Facts() metadata.Facts { return t.resources.facts }

// Done returns a channel that is closed when the task is STOPPED and its resources are released.
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
	return t.resources.ns.DialContext(ctx, network, address)
}

// View returns the current state of the task.
func (t *Task) View() scheduler.View {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.view
}

// stop asks for an orderly stop. Only the first request counts.
func (t *Task) stop(code, reason string) {
	t.send(scheduler.StopRequested{Code: code, Reason: reason, Prompt: t.cluster.draining.Load()})
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

// stats returns a container's answer to /stats; nil before its start.
func (t *Task) stats(container string) *metadata.Stats {
	c := t.containers.get(container)
	if c == nil {
		return nil
	}
	return t.resources.meter.Stats(container, c)
}

// lookup finds the task by a container's endpoint ID. Only this task's
// containers can reach the server, so no other IDs exist here.
func (t *Task) lookup(endpointID string) (metadata.Snapshot, bool) {
	for _, c := range t.Facts().Containers {
		if c.EndpointID == endpointID {
			return metadata.At(time.Now(), t.Facts(), t.View()), true
		}
	}
	return metadata.Snapshot{}, false
}

// saveMetadata writes the last metadata document beside the logs. It describes the stopped task, when no
// program of the task can read it any more.
func (t *Task) saveMetadata() error {
	document, err := json.MarshalIndent(metadata.At(time.Now(), t.Facts(), t.View()).Document(), "", "  ")
	if err != nil {
		return fmt.Errorf("encode metadata: %w", err)
	}
	path := filepath.Join(t.cluster.LogDir(), t.name, "metadata.json")
	if err := os.WriteFile(path, append(document, '\n'), 0o644); err != nil {
		return fmt.Errorf("keep metadata: %w", err)
	}
	return nil
}
