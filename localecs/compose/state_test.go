package compose

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/taskdef"
)

// The task of these tests: init, then envoy and app, which are essential, and a log router that nothing needs.
const definition = `{"family": "web", "cpu": "256", "memory": "512", "tags": [{"key": "team", "value": "shop"}],
"containerDefinitions": [
  {"name": "init", "image": "i", "essential": false},
  {"name": "envoy", "image": "e", "dependsOn": [{"containerName": "init", "condition": "SUCCESS"}],
   "restartPolicy": {"enabled": true}},
  {"name": "app", "image": "a", "dependsOn": [{"containerName": "envoy", "condition": "START"}],
   "healthCheck": {"command": ["CMD", "/check"]}},
  {"name": "logs", "image": "l", "essential": false}
]}`

// at returns n seconds after everything began.
func at(n int) time.Time { return time.Date(2026, 3, 2, 17, 0, n, 0, time.UTC) }

// fixture has a State and the engine's containers.
type fixture struct {
	*State
	t          *testing.T
	containers []Container
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	doc, err := taskdef.Parse([]byte(definition))
	if err != nil {
		t.Fatal(err)
	}
	w := &fixture{t: t, State: NewState(cluster.ClusterFacts{Account: shapes.Account{Region: "us-east-1", ID: "123456789012"}, Name: "shop"}, []FileTask{{Name: "web", Definition: doc.Definition}})}
	w.set("", func(c *Container) {
		c.Status, c.StartedAt = "running", at(0)
		c.Networks = []network.Addressing{
			{IP: netip.MustParseAddr("169.254.170.3"), Gateway: netip.MustParseAddr("169.254.170.1"), CIDR: netip.MustParsePrefix("169.254.170.0/24")},
			{IP: netip.MustParseAddr("10.0.0.5"), Gateway: netip.MustParseAddr("10.0.0.1"), CIDR: netip.MustParsePrefix("10.0.0.0/24"), MAC: net.HardwareAddr{0x02, 0x42, 0x0a, 0, 0, 5}},
		}
	})
	return w
}

// set changes a container, which is made if it is new.
func (w *fixture) set(name string, change func(*Container)) {
	for i := range w.containers {
		if w.containers[i].Name == name {
			change(&w.containers[i])
			return
		}
	}
	c := Container{ID: "id-" + name, Image: "sha256:" + name, Task: "web", Name: name, Status: "created"}
	change(&c)
	w.containers = append(w.containers, c)
}

func (w *fixture) start(name string, n int) {
	w.set(name, func(c *Container) { c.Status, c.StartedAt, c.FinishedAt = "running", at(n), time.Time{} })
}

func (w *fixture) end(name string, n, code int) {
	w.set(name, func(c *Container) { c.Status, c.FinishedAt, c.ExitCode = "exited", at(n), code })
}

// look updates and returns the task.
func (w *fixture) look(n int) Task {
	w.t.Helper()
	w.update(w.containers, at(n))
	tasks := w.Tasks()
	if len(tasks) != 1 {
		w.t.Fatalf("%d tasks", len(tasks))
	}
	return tasks[0]
}

// running returns a fixture in which everything runs at 5 s.
func running(t *testing.T) *fixture {
	w := newFixture(t)
	w.start("init", 1)
	w.end("init", 2, 0)
	w.start("envoy", 3)
	w.start("app", 4)
	w.start("logs", 4)
	w.look(5)
	return w
}

// statuses returns name: desired known, of the task first.
func statuses(v scheduler.View) map[string]string {
	all := map[string]string{"": v.DesiredStatus + " " + v.KnownStatus}
	for _, c := range v.Containers {
		all[c.Name] = c.DesiredStatus + " " + c.KnownStatus
	}
	return all
}

func expect(t *testing.T, when string, v scheduler.View, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, statuses(v)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

func TestNothingIsKnownBeforeTheNetworkIsThere(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.set("", func(c *Container) { c.Status, c.StartedAt = "created", time.Time{} })
	if began := w.update(w.containers, at(1)); len(began) > 0 || len(w.Tasks()) > 0 {
		t.Errorf("began %v", began)
	}
	if _, ok := w.lookup("web.app"); ok {
		t.Error("there is metadata")
	}
}

func TestTaskStarts(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.start("init", 1)
	w.set("envoy", func(c *Container) {})
	v := w.look(1).View
	expect(t, "init runs", v, map[string]string{"": "RUNNING NONE", "init": "RUNNING RUNNING", "envoy": "RUNNING PULLED", "app": "RUNNING NONE", "logs": "RUNNING NONE"})
	w.end("init", 2, 0)
	w.start("envoy", 3)
	w.start("logs", 3)
	w.start("app", 4)
	v = w.look(5).View
	expect(t, "all have started", v, map[string]string{"": "RUNNING RUNNING", "init": "RUNNING STOPPED", "envoy": "RUNNING RUNNING", "app": "RUNNING RUNNING", "logs": "RUNNING RUNNING"})
	c, _ := v.Container("init")
	if c.ExitCode == nil || *c.ExitCode != 0 {
		t.Errorf("init is %+v, want exit code 0", c)
	}
	if !c.FinishedAt.Equal(at(2)) {
		t.Errorf("init finished at %s, want %s", c.FinishedAt, at(2))
	}
	if c, _ := v.Container("envoy"); c.RestartCount == nil {
		t.Errorf("envoy is %+v, want a count of restarts", c)
	} else if c.Health != nil || c.ExitCode != nil {
		t.Errorf("envoy is %+v, want neither health nor an exit code", c)
	}
	if !v.StartedAt.Equal(at(4)) || !v.StoppedAt.IsZero() {
		t.Errorf("started %s, stopped %s", v.StartedAt, v.StoppedAt)
	}
}

func TestFactsAreTheEngines(t *testing.T) {
	t.Parallel()
	task := running(t).look(6)
	n := task.Facts.Network
	testkit.Equal(t, "address", n.IP, "10.0.0.5")
	testkit.Equal(t, "network", n.CIDR, "10.0.0.0/24")
	testkit.Equal(t, "gateway", n.Gateway, "10.0.0.1")
	testkit.Equal(t, "MAC", n.MAC, "02:42:0a:00:00:05")
	testkit.Equal(t, "DNS name", n.PrivateDNSName, "ip-10-0-0-5.ec2.internal")
	testkit.Equal(t, "resolver", n.Resolver, "127.0.0.11")
	app := task.Facts.Containers["app"]
	testkit.Equal(t, "endpoint ID", app.EndpointID, "web.app")
	testkit.Equal(t, "image ID", app.ImageID, "sha256:app")
	testkit.Equal(t, "length of the task's ID", len(task.ID), 32)
	testkit.Equal(t, "task ARN", task.Facts.TaskARN, "arn:aws:ecs:us-east-1:123456789012:task/shop/"+task.ID)
}

func TestEveryStartOfTheNetworkIsANewTask(t *testing.T) {
	t.Parallel()
	w := running(t)
	first := w.look(6)
	if again := w.look(7); again.ID != first.ID {
		t.Error("the same run has another ID")
	}
	for _, name := range []string{"logs", "app", "envoy", ""} {
		w.end(name, 8, 0)
	}
	w.look(9)
	w.start("", 10)
	second := w.look(10)
	if second.ID == first.ID {
		t.Error("the next run has the same ID")
	}
	// The containers of the first run are not the second's.
	expect(t, "second run", second.View, map[string]string{"": "RUNNING NONE", "init": "RUNNING NONE", "envoy": "RUNNING NONE", "app": "RUNNING NONE", "logs": "RUNNING NONE"})
}

func TestEssentialContainerEnds(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.end("logs", 6, 3)
	expect(t, "one that is not", w.look(6).View, map[string]string{"": "RUNNING RUNNING", "init": "RUNNING STOPPED", "envoy": "RUNNING RUNNING", "app": "RUNNING RUNNING", "logs": "RUNNING STOPPED"})
	if ids := w.toStop(); len(ids) > 0 {
		t.Errorf("stop %v", ids)
	}
	w.set("envoy", func(c *Container) { c.Status, c.RestartCount = "restarting", 2 })
	v := w.look(7).View
	c, _ := v.Container("envoy")
	testkit.Equal(t, "known status", c.KnownStatus, "RUNNING")
	testkit.Equal(t, "restarts", *c.RestartCount, 2)
	testkit.Equal(t, "desired status", v.DesiredStatus, "RUNNING")
	w.start("envoy", 8)
	w.end("app", 9, 137)
	v = w.look(9).View
	expect(t, "app has ended", v, map[string]string{"": "STOPPED RUNNING", "init": "STOPPED STOPPED", "envoy": "STOPPED RUNNING", "app": "STOPPED STOPPED", "logs": "STOPPED STOPPED"})
	testkit.Equal(t, "stop code", v.StopCode, "EssentialContainerExited")
	if !v.ExecutionStoppedAt.Equal(at(9)) || !v.StoppingAt.Equal(at(9)) {
		t.Errorf("execution stopped at %s, stopping at %s; want %s", v.ExecutionStoppedAt, v.StoppingAt, at(9))
	}
	if v = w.look(11).View; !v.StoppingAt.Equal(at(9)) {
		t.Error("it was stopped a second time")
	}
	w.end("envoy", 12, 0)
	v = w.look(12).View
	testkit.Equal(t, "known status", v.KnownStatus, "STOPPED")
	if !v.StoppedAt.Equal(at(12)) || !v.ExecutionStoppedAt.Equal(at(9)) {
		t.Errorf("stopped at %s, execution at %s; want %s and %s", v.StoppedAt, v.ExecutionStoppedAt, at(12), at(9))
	}
}

func TestProjectIsStoppedByAnotherProcess(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.asked("web", "app", at(6))
	v := w.look(6).View
	expect(t, "app was asked", v, map[string]string{"": "STOPPED RUNNING", "init": "STOPPED STOPPED", "envoy": "STOPPED RUNNING", "app": "STOPPED RUNNING", "logs": "STOPPED RUNNING"})
	if v.StopCode != "UserInitiated" || v.StoppedReason != "Task stopped by user" {
		t.Errorf("%s %s", v.StopCode, v.StoppedReason)
	}
	w.end("app", 8, 0)
	w.look(8)
	if ids := w.toStop(); len(ids) > 0 {
		t.Errorf("stop %v, which another process does", ids)
	}
	w.start("app", 9) // and changes his mind
	expect(t, "started again", w.look(9).View, map[string]string{"": "RUNNING RUNNING", "init": "RUNNING STOPPED", "envoy": "RUNNING RUNNING", "app": "RUNNING RUNNING", "logs": "RUNNING RUNNING"})
	w.asked("other", "app", at(10))
	if v := w.look(10).View; v.DesiredStatus != "RUNNING" {
		t.Error("another task was asked")
	}
	w.asked("web", "", at(11))
	if v := w.look(11).View; v.DesiredStatus != "STOPPED" {
		t.Error("the network goes, and the task does not")
	}
}

func TestContainersThatAreRemoved(t *testing.T) {
	t.Parallel()
	w := running(t)
	for _, name := range []string{"logs", "app"} {
		w.end(name, 6, 0)
	}
	w.look(6)
	w.containers = w.containers[:1] // envoy is removed while it runs, the network stays
	v := w.look(7).View
	expect(t, "removed", v, map[string]string{"": "STOPPED STOPPED", "init": "STOPPED STOPPED", "envoy": "STOPPED STOPPED", "app": "STOPPED STOPPED", "logs": "STOPPED STOPPED"})
	w.containers = nil
	if v := w.look(8).View; v.KnownStatus != "STOPPED" {
		t.Errorf("%+v", v)
	}
	if m, ok := w.lookup("web.app"); !ok || m.View.KnownStatus != "STOPPED" {
		t.Error("metadata does not know it any more")
	}
}

// An essential container that was never started ends with its task.
func TestTaskThatNeverGetsUp(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.end("init", 2, 1)
	w.set("init", func(c *Container) { c.StartedAt = at(1) })
	w.set("app", func(*Container) {})
	if v := w.look(3).View; v.KnownStatus != "NONE" || v.DesiredStatus != "RUNNING" {
		t.Errorf("%+v", v)
	}
	w.end("", 4, 0)
	expect(t, "down", w.look(5).View, map[string]string{"": "STOPPED STOPPED", "init": "STOPPED STOPPED", "envoy": "STOPPED NONE", "app": "STOPPED STOPPED", "logs": "STOPPED NONE"})
}
