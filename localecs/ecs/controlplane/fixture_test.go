package controlplane_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

const (
	planeAccount = "arn:aws:ecs:us-east-1:123456789012:"
	planeCaller  = "arn:aws:iam::123456789012:user/me"
)

// begin is when every test begins.
var planeStart = time.Date(2026, 3, 2, 17, 0, 0, 0, time.UTC)

// fixture is a plane whose tasks are state machines without processes.
type planeFixture struct {
	*controlplane.Plane
	t *testing.T
	// now is the time of calls and reports.
	now      time.Time
	launches map[string]controlplane.Launch
	states   map[string]*scheduler.Task
	stops    []string
	events   []string
	// protections are the Plane's.
	protections *metadata.Protections
}

func newPlaneFixture(t *testing.T, change func(*controlplane.Options)) *planeFixture {
	t.Helper()
	w := &planeFixture{
		t: t, now: planeStart, launches: map[string]controlplane.Launch{}, states: map[string]*scheduler.Task{},
		protections: metadata.NewProtections(),
	}
	o := controlplane.Options{
		Account: shapes.Account{Region: "us-east-1", ID: "123456789012"}, Launcher: w, Protections: w.protections,
		Observe: func(task shapes.Task, _ time.Time) {
			w.events = append(w.events, fmt.Sprintf("%d %s/%s", task.Version, task.LastStatus, task.DesiredStatus))
		},
	}
	if change != nil {
		change(&o)
	}
	w.Plane = controlplane.New(o)
	w.register(planeTask("web"))
	return w
}

// Launch implements controlplane.Launcher.
func (w *planeFixture) Launch(l controlplane.Launch) { w.launches[l.ID] = l }

// Stop implements controlplane.Launcher.
func (w *planeFixture) Stop(id, code, reason string) { w.stops = append(w.stops, code+" "+reason) }

func (w *planeFixture) call() shapes.Call { return shapes.Call{Now: w.now, Principal: planeCaller} }

// happen feeds the task's state machine, and reports how the task is then.
func (w *planeFixture) happen(id string, events ...scheduler.Event) {
	w.t.Helper()
	l, ok := w.launches[id]
	if !ok {
		w.t.Fatalf("task %q was not launched", id)
	}
	if w.states[id] == nil {
		w.states[id] = scheduler.New(l.Definition, scheduler.Options{}, w.now)
	}
	for _, e := range events {
		w.states[id].Apply(e, w.now)
	}
	l.Report(w.reportOf(id), w.now)
}

func (w *planeFixture) reportOf(id string) controlplane.Report {
	return controlplane.Report{
		View: w.states[id].View(),
		Network: &metadata.Network{
			IP: "10.42.0.4", MAC: "0a:ec:0a:2a:00:04", PrivateDNSName: "ip-10-42-0-4.ec2.internal",
		},
		Containers: map[string]metadata.ContainerFacts{"app": {DockerID: id + "-0123456789", ImageID: "sha256:11"}},
	}
}

// start brings a task to RUNNING, end from there to STOPPED.
func (w *planeFixture) start(id string) {
	w.t.Helper()
	w.happen(id, scheduler.Tick{})
	w.happen(id, scheduler.PullDone{Container: "app"})
	w.happen(id, scheduler.Started{Container: "app"})
}

func (w *planeFixture) end(id string, code int) {
	w.t.Helper()
	w.happen(id, scheduler.Exited{Container: "app", Code: code})
	r := w.reportOf(id)
	r.Gone = true
	w.launches[id].Report(r, w.now)
}

// planeTask returns a task definition for Fargate with one container, app.
func planeTask(family string) string {
	return `{"family": "` + family +
		`", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "256", "memory": "512",
		"containerDefinitions": [{"name": "app", "image": "app:1", "command": ["serve"], "environment": [{"name": "A",
		"value": "1"}, {"name": "B", "value": "2"}]}],
		"tags": [{"key": "team", "value": "shop"}]}`
}

func (w *planeFixture) register(document string) shapes.TaskDefinitionOutput {
	w.t.Helper()
	out, err := w.RegisterTaskDefinition(w.call(), shapes.RegisterTaskDefinitionInput{Document: []byte(document)})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// planeInput returns one for RunTask that is accepted, then changed.
func planeInput(change func(*shapes.RunTaskInput)) shapes.RunTaskInput {
	in := shapes.RunTaskInput{
		TaskDefinition: "web",
		NetworkConfiguration: &shapes.NetworkConfiguration{
			AWSVPC: &shapes.VPCConfiguration{Subnets: []string{"subnet-1"}},
		},
	}
	if change != nil {
		change(&in)
	}
	return in
}

// run starts tasks and returns their IDs.
func (w *planeFixture) run(change func(*shapes.RunTaskInput)) []string {
	w.t.Helper()
	out, err := w.RunTask(w.call(), planeInput(change))
	if err != nil {
		w.t.Fatal(err)
	}
	var ids []string
	for _, task := range out.Tasks {
		ids = append(ids, idOf(task.TaskARN))
	}
	return ids
}

func idOf(arn string) string { return arn[strings.LastIndex(arn, "/")+1:] }

// describe finds one task of the default cluster.
func (w *planeFixture) describe(id string) shapes.Task {
	w.t.Helper()
	out, err := w.DescribeTasks(w.call(), shapes.DescribeTasksInput{Tasks: []string{id}, Include: []string{"TAGS"}})
	if err != nil || len(out.Tasks) != 1 {
		w.t.Fatalf("describe %s: %+v, %v", id, out.Failures, err)
	}
	return out.Tasks[0]
}

// list returns the IDs in a list of tasks.
func (w *planeFixture) list(in shapes.ListTasksInput) []string {
	w.t.Helper()
	out, err := w.ListTasks(w.call(), in)
	if err != nil {
		w.t.Fatal(err)
	}
	ids := []string{}
	for _, a := range out.TaskARNs {
		ids = append(ids, idOf(a))
	}
	return ids
}
