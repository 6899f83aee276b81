package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/internal/testkit/dockerengine"
	"github.com/meshtask/consul-ecs/localecs/docker"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/host"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/taskdef"
)

func TestMain(m *testing.M) {
	host.Dispatch(append(docker.Roles(), runtime.Role())...)
	if filepath.Base(os.Args[0]) == "helper" {
		os.Exit(program(os.Args[1:]))
	}
	testkit.RunRole(dockerengine.Roles())
	os.Exit(testkit.Main(m))
}

const roleARN = "arn:aws:iam::123456789012:role/consul-ecs/web"

// fixture is a cluster with one image that has a shell and sleep.
type fixture struct {
	*Cluster
	dir string

	mu     sync.Mutex
	events []Event
}

func newFixture(t testing.TB, change func(*Options)) *fixture {
	t.Helper()
	w := &fixture{dir: t.TempDir()}
	o := Options{
		Name: "test", Region: "us-east-1", Account: "123456789012", Dir: w.dir,
		Docker: *inDocker,
		Images: map[string]runtime.Image{"shell": {
			Name: "shell", Programs: map[string]string{"/bin/sh": "/bin/sh", "/bin/sleep": "/bin/sleep", "/bin/env": "/usr/bin/env"},
			Env: []string{"FROM=image", "KEPT=image"},
		}},
		Roles: []iam.Role{{Name: "web", Path: "/consul-ecs/", Account: "123456789012"}},
		Observe: func(e Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, e)
		},
		Log: hclog.NewNullLogger(),
	}
	if change != nil {
		change(&o)
	}
	c, err := Open(o)
	var missing *host.MissingError
	if errors.As(err, &missing) {
		testkit.Missing(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	w.Cluster = c
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// shell returns a container that runs a script as PID 1.
func shell(name, script string) taskdef.Container {
	return taskdef.Container{Name: name, Image: "shell", EntryPoint: []string{"/bin/sh", "-c"}, Command: []string{script}}
}

// run starts a task of the containers.
func (w *fixture) run(t *testing.T, change func(*taskdef.TaskDefinition), containers ...taskdef.Container) *Task {
	t.Helper()
	def := &taskdef.TaskDefinition{Family: "web", NetworkMode: "awsvpc", CPU: "512", Memory: "1024", ContainerDefinitions: containers}
	if change != nil {
		change(def)
	}
	task, err := w.Run("web", def)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func wait(t testing.TB, task *Task) scheduler.View {
	t.Helper()
	select {
	case <-task.Done():
	case <-time.After(testkit.Patience):
		t.Fatalf("task did not end: %+v", task.View())
	}
	return task.View()
}

// until waits until the task's view fulfils a condition.
func until(t testing.TB, task *Task, what string, ok func(scheduler.View) bool) {
	t.Helper()
	deadline := time.After(testkit.Patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok(task.View()) {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: not within %s: %+v", what, testkit.Patience, task.View())
		}
	}
}

func running(v scheduler.View) bool { return v.KnownStatus == scheduler.StatusRunning }

func (w *fixture) log(t *testing.T, container string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.LogDir(), "web", container+".log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// With processes.
func TestEssentialExitStopsTheTask(t *testing.T) {
	w := newFixture(t, nil)
	// TERM before the trap is there would be lost on b, its namespace's PID 1.
	share := func(c taskdef.Container) taskdef.Container {
		c.MountPoints = []taskdef.MountPoint{{SourceVolume: "data", ContainerPath: "/data"}}
		return c
	}
	v := wait(t, w.run(t, func(d *taskdef.TaskDefinition) { d.Volumes = []taskdef.Volume{{Name: "data"}} },
		share(shell("a", "until [ -e /data/ready ]; do sleep 0.02; done; echo hello; exit 0")),
		share(shell("b", "trap 'exit 7' TERM; : > /data/ready; while :; do sleep 0.1; done"))))
	a, _ := v.Container("a")
	b, _ := v.Container("b")
	testkit.Equal(t, "stop code", v.StopCode, scheduler.StopEssentialContainerExited)
	testkit.Equal(t, "exit codes of a and b", [2]int{*a.ExitCode, *b.ExitCode}, [2]int{0, 7})
	if got := w.log(t, "a"); got != "hello\n" {
		t.Errorf("log of a: %q", got)
	}
}

func TestObserverSeesEveryStatusInOrder(t *testing.T) {
	w := newFixture(t, nil)
	wait(t, w.run(t, nil, shell("a", "exit 3")))
	var got []string
	for _, e := range w.events {
		got = append(got, strings.TrimSpace(strings.Join([]string{e.Container, e.What, e.Value, e.Detail}, " ")))
	}
	want := "a status PULLED, status MANIFEST_PULLED, a status RUNNING, status RUNNING, a status STOPPED exit code 3, desired STOPPED Essential container in task exited, status STOPPED EssentialContainerExited: Essential container in task exited"
	if s := strings.Join(got, ", "); !strings.HasSuffix(s, want[strings.Index(want, "a status RUNNING"):]) {
		t.Errorf("got  %s\nwant …%s", s, want[strings.Index(want, "a status RUNNING"):])
	}
}

// Both stop orders.
func TestStopOrder(t *testing.T) {
	for _, c := range []struct {
		atOnce bool
		bFirst bool
	}{{false, true}, {true, false}} {
		t.Run(fmt.Sprintf("atOnce=%t", c.atOnce), func(t *testing.T) {
			w := newFixture(t, func(o *Options) { o.AtOnce = c.atOnce })
			a := shell("a", "trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done")
			b := shell("b", "trap 'sleep 3; exit 0' TERM; echo up; while :; do sleep 0.05; done")
			b.DependsOn = []taskdef.Dependency{{ContainerName: "a", Condition: taskdef.ConditionStart}}
			task := w.run(t, nil, a, b)
			// The trap is there once the script has said so.
			until(t, task, "both up", func(v scheduler.View) bool {
				return running(v) && w.log(t, "a") == "up\n" && w.log(t, "b") == "up\n"
			})
			task.stop(scheduler.StopUserInitiated, "test")
			v := wait(t, task)
			av, _ := v.Container("a")
			bv, _ := v.Container("b")
			if got := !av.FinishedAt.Before(bv.FinishedAt); got != c.bFirst {
				t.Errorf("a finished %s, b %s: b first %t, want %t", av.FinishedAt, bv.FinishedAt, got, c.bFirst)
			}
		})
	}
}

// What a task finds at 169.254.170.2.
func TestEndpointsInsideTheTask(t *testing.T) {
	w := newFixture(t, nil)
	task := w.run(t, func(d *taskdef.TaskDefinition) { d.TaskRoleARN = roleARN }, shell("a", "env; exec sleep 1000"))
	until(t, task, "environment logged, and RUNNING in the metadata", func(v scheduler.View) bool {
		return running(v) && time.Since(v.StartedAt) > time.Second && strings.Contains(w.log(t, "a"), "RELATIVE_URI")
	})
	env := map[string]string{}
	for line := range strings.Lines(w.log(t, "a")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		env[name] = value
	}
	client := &http.Client{Transport: &http.Transport{DialContext: task.Dial, DisableKeepAlives: true}}
	get := func(url string, into any) int {
		resp, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		if err := json.Unmarshal(body, into); err != nil {
			t.Fatalf("%s: %v: %s", url, err, body)
		}
		return resp.StatusCode
	}
	var metadata struct {
		TaskARN, Family, KnownStatus string
		Containers                   []struct {
			Name, KnownStatus string
			Networks          []struct{ IPv4Addresses []string }
		}
	}
	if code := get(env["ECS_CONTAINER_METADATA_URI_V4"]+"/task", &metadata); code != 200 {
		t.Fatalf("metadata: status %d", code)
	}
	if !strings.HasSuffix(metadata.TaskARN, ":task/test/"+task.ID()) {
		t.Errorf("task ARN %s, want that of %s", metadata.TaskARN, task.ID())
	}
	testkit.Equal(t, "family", metadata.Family, "web")
	testkit.Equal(t, "known status", metadata.KnownStatus, "RUNNING")
	testkit.Equal(t, "address", metadata.Containers[0].Networks[0].IPv4Addresses[0], task.IP())
	var credentials struct{ RoleArn, AccessKeyId string }
	if code := get("http://"+network.MetadataIP+env["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"], &credentials); code != 200 || credentials.RoleArn != roleARN {
		t.Errorf("credentials: status %d, %+v", code, credentials)
	}
	var text string
	if code := get("http://"+network.MetadataIP+"/v4/nobody/task", &text); code != 404 {
		t.Errorf("unknown ID: status %d, %s", code, text)
	}
	if env["AWS_REGION"] != "us-east-1" || env["HOSTNAME"] != task.resources.ns.PrivateDNSName {
		t.Errorf("environment %v", env)
	}
}

// A secret without the key, and an image that is missing.
func TestNoContainerStartsWhenADependencyIsMissing(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*taskdef.Container)
		reason string
	}{
		{"secret", func(c *taskdef.Container) {
			c.Secrets = []taskdef.Secret{{Name: "S", ValueFrom: "arn:none"}}
		}, "ResourceInitializationError: "},
		{"image", func(c *taskdef.Container) { c.Image = "none" }, "CannotPullContainerError: "},
		{"program", func(c *taskdef.Container) { c.EntryPoint = []string{"/bin/none"} }, "CannotStartContainerError: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newFixture(t, nil)
			a := shell("a", "exit 0")
			c.change(&a)
			v := wait(t, w.run(t, nil, a))
			view, _ := v.Container("a")
			testkit.Equal(t, "stop code", v.StopCode, scheduler.StopTaskFailedToStart)
			if !strings.HasPrefix(v.StoppedReason, c.reason) {
				t.Errorf("reason %q, want %q", v.StoppedReason, c.reason)
			}
			if !view.StartedAt.IsZero() || view.ExitCode != nil {
				t.Errorf("container %+v, want one that did not start", view)
			}
		})
	}
}

func TestHealthCheckRunsInsideTheContainer(t *testing.T) {
	w := newFixture(t, nil)
	a := shell("a", "sleep 1000")
	one, minute := 1, 60
	a.Environment = []taskdef.KeyValue{{Name: "X", Value: "1"}}
	a.HealthCheck = &taskdef.HealthCheck{Command: []string{"CMD-SHELL", "echo x is $X; test $X = 2"}, Interval: &one, Timeout: &minute, Retries: &one}
	task := w.run(t, nil, a)
	until(t, task, "unhealthy", func(v scheduler.View) bool { return v.Containers[0].Health.Status == scheduler.HealthUnhealthy })
	if h := task.View().Containers[0].Health; h.ExitCode != 1 || h.Output != "x is 1\n" {
		t.Errorf("health %+v, want exit code 1 and the output", h)
	}
}

func TestTasksShareVolumesInsideAndNothingBetweenThem(t *testing.T) {
	w := newFixture(t, nil)
	volume := func(d *taskdef.TaskDefinition) { d.Volumes = []taskdef.Volume{{Name: "data"}} }
	mount := func(c taskdef.Container) taskdef.Container {
		c.MountPoints = []taskdef.MountPoint{{SourceVolume: "data", ContainerPath: "/data"}}
		return c
	}
	no := false
	writer := mount(shell("writer", "echo written > /data/file"))
	writer.Essential = &no
	reader := mount(shell("reader", "read x < /data/file; echo $x"))
	reader.DependsOn = []taskdef.Dependency{{ContainerName: "writer", Condition: taskdef.ConditionSuccess}}
	task := w.run(t, volume, writer, reader)
	wait(t, task)
	if got := w.log(t, "reader"); got != "written\n" {
		t.Errorf("reader saw %q", got)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "volumes", task.ID())); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the volume outlived its task: %v", err)
	}
	v := wait(t, w.run(t, volume, mount(shell("other", "test ! -e /data/file"))))
	if code := *v.Containers[0].ExitCode; code != 0 {
		t.Error("another task saw the file")
	}
}

func TestTasksFindEachOtherByName(t *testing.T) {
	w := newFixture(t, nil)
	first := w.run(t, nil, shell("a", "sleep 1000"))
	second := w.run(t, nil, shell("a", "sleep 1000"))
	until(t, first, "running", running)
	until(t, second, "running", running)
	// The resolver that resolv.conf names, asked from inside a task.
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return first.Dial(ctx, network, net.JoinHostPort(first.resources.ns.Resolver.String(), "53"))
	}}
	find := func(name string) string {
		addresses, _ := resolver.LookupHost(t.Context(), name+".")
		slices.Sort(addresses)
		return strings.Join(addresses, " ")
	}
	if got := find(second.resources.ns.PrivateDNSName); got != second.IP() {
		t.Errorf("%s: %q, want %s", second.resources.ns.PrivateDNSName, got, second.IP())
	}
	if got, want := find("web.test.local"), first.IP()+" "+second.IP(); got != want {
		t.Errorf("web.test.local: %q, want %q", got, want)
	}
	second.stop(scheduler.StopUserInitiated, "test")
	until(t, second, "asked to stop", func(v scheduler.View) bool { return v.DesiredStatus == scheduler.StatusStopped })
	if got := find("web.test.local"); got != first.IP() {
		t.Errorf("web.test.local while one stops: %q, want %s", got, first.IP())
	}
	if got := find("example.com"); got != "" {
		t.Errorf("example.com: %q, want nothing", got)
	}
}

func TestCloseEndsRunningTasks(t *testing.T) {
	w := newFixture(t, nil)
	task := w.run(t, nil, shell("a", "sleep 1000"), shell("b", "sleep 1000"))
	until(t, task, "running", running)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range task.View().Containers {
		if c.KnownStatus != scheduler.StatusStopped || *c.ExitCode != 137 {
			t.Errorf("container %s: %s, exit code %d; want killed", c.Name, c.KnownStatus, *c.ExitCode)
		}
	}
	if _, err := os.Stat(filepath.Join(w.dir, "volumes")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("volumes are left: %v", err)
	}
	if _, err := w.Fabric().Infra().DialContext(context.Background(), "tcp", "10.42.0.1:80"); err == nil {
		t.Error("STS and IAM still answer")
	}
}

// Run starts a task of the definition under a name.
func (c *Cluster) Run(name string, def *taskdef.TaskDefinition) (*Task, error) {
	return c.runFor("", name, def)
}

// runFor starts a task of a service.
func (c *Cluster) runFor(service, name string, def *taskdef.TaskDefinition) (*Task, error) {
	return c.launch(launchOptions{Name: name, Launch: controlplane.Launch{
		ID: shapes.NewID(), Cluster: c.options.Name, Service: service, Definition: def,
	}})
}
