package controlplane_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

const (
	caller  = "arn:aws:iam::123456789012:user/me"
	account = "arn:aws:ecs:us-east-1:123456789012:"
)

// fixture has services whose tasks are state machines without processes: they run
// as soon as they are launched, and end when they are asked to.
type fixture struct {
	*controlplane.Plane
	t   *testing.T
	now time.Time

	mu     sync.Mutex
	states map[string]*scheduler.Task
	launch map[string]controlplane.Launch
	order  []string // task IDs
	// protections are the Plane's.
	protections *metadata.Protections
}

func newFixture(t *testing.T, now time.Time) *fixture {
	t.Helper()
	return newLateFixture(t, now, controlplane.Lag{})
}

// newLateFixture returns one whose answers about services are late.
func newLateFixture(t *testing.T, now time.Time, lag controlplane.Lag) *fixture {
	t.Helper()
	w := &fixture{
		t: t, now: now, states: map[string]*scheduler.Task{}, launch: map[string]controlplane.Launch{},
		protections: metadata.NewProtections(),
	}
	w.Plane = controlplane.New(controlplane.Options{
		Account: shapes.Account{Region: "us-east-1", ID: "123456789012"}, Launcher: w, Protections: w.protections,
		Lag: lag,
	})
	w.register("web")
	return w
}

// Launch implements controlplane.Launcher.
func (w *fixture) Launch(l controlplane.Launch) {
	w.mu.Lock()
	state := scheduler.New(l.Definition, scheduler.Options{}, w.now)
	w.states[l.ID], w.launch[l.ID] = state, l
	w.order = append(w.order, l.ID)
	for _, e := range []scheduler.Event{scheduler.Tick{}, scheduler.PullDone{Container: "app"},
		scheduler.Started{Container: "app"}} {
		state.Apply(e, w.now)
	}
	w.mu.Unlock()
	l.Report(controlplane.Report{View: state.View(), Network: &metadata.Network{IP: "10.42.0.4"}}, w.now)
}

// Stop implements controlplane.Launcher.
func (w *fixture) Stop(id, code, reason string) {
	w.end(id, scheduler.StopRequested{Code: code, Reason: reason})
}

// end ends a task, by itself or as it was asked to.
func (w *fixture) end(id string, events ...scheduler.Event) {
	w.mu.Lock()
	for _, e := range append(events, scheduler.Exited{Container: "app", Code: 1}) {
		w.states[id].Apply(e, w.now)
	}
	r := controlplane.Report{View: w.states[id].View(), Network: &metadata.Network{IP: "10.42.0.4"}, Gone: true}
	w.mu.Unlock()
	w.launch[id].Report(r, w.now)
}

func (w *fixture) call() shapes.Call { return shapes.Call{Now: w.now, Principal: caller} }

func (w *fixture) register(family string) {
	w.t.Helper()
	_, err := w.RegisterTaskDefinition(w.call(),
		shapes.RegisterTaskDefinitionInput{Document: []byte(`{"family": "` + family + `",
		"networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "256", "memory": "512",
		"containerDefinitions": [{"name": "app", "image": "app:1"}], "tags": [{"key": "of", "value": "definition"}]}`)})
	if err != nil {
		w.t.Fatal(err)
	}
}

// input returns one for CreateService that is accepted, then changed.
func input(change func(*shapes.ServiceInput)) shapes.ServiceInput {
	in := shapes.ServiceInput{
		ServiceName: "web", TaskDefinition: "web", DesiredCount: new(2), LaunchType: "FARGATE",
		NetworkConfiguration: &shapes.NetworkConfiguration{
			AWSVPC: &shapes.VPCConfiguration{Subnets: []string{"subnet-1"}},
		},
	}
	if change != nil {
		change(&in)
	}
	return in
}

// create makes a service and brings it to rest.
func (w *fixture) create(change func(*shapes.ServiceInput)) shapes.Service {
	w.t.Helper()
	out, err := w.CreateService(w.call(), input(change))
	if err != nil {
		w.t.Fatal(err)
	}
	w.settle()
	return out.Service
}

// settle looks until nothing is left to do.
func (w *fixture) settle() {
	for range 8 {
		w.ReconcileServices(w.now)
	}
}

func (w *fixture) describe(ref string) shapes.Service {
	w.t.Helper()
	out, err := w.DescribeServices(w.call(),
		shapes.DescribeServicesInput{Services: []string{ref}, Include: []string{"TAGS"}})
	if err != nil || len(out.Services) != 1 {
		w.t.Fatalf("describe %s: %+v, %v", ref, out.Failures, err)
	}
	return out.Services[0]
}

// running returns the service's tasks that are to run, by creation.
func (w *fixture) running() []shapes.Task {
	var tasks []shapes.Task
	for _, t := range w.ServiceTasks(w.call(), "default", "web") {
		if t.DesiredStatus == "RUNNING" {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

func (w *fixture) update(in shapes.ServiceInput) shapes.Service {
	w.t.Helper()
	in.Service = "web"
	out, err := w.UpdateService(w.call(), in)
	if err != nil {
		w.t.Fatal(err)
	}
	return out.Service
}

// messages returns the service's events, oldest first, without task IDs.
func messages(s shapes.Service) []string {
	var out []string
	for _, e := range s.Events {
		text, _, _ := strings.Cut(e.Message, ": (task ")
		out = append([]string{text}, out...)
	}
	return out
}
