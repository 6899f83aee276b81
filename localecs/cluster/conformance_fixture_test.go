package cluster

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/runtime"
	"github.com/meshtask/consul-ecs/taskdef"
)

// epsilon is how late something may be. docs/localecs/fidelity.md says one second, which package scheduler keeps to
// without a real clock; here, on a machine that runs other tests beside, it distinguishes a time that was set from
// ECS's own of 30 s.
const epsilon = 20 * time.Second

// newTools makes a fixture with the image "tools": a shell, sleep, and this test binary as /bin/helper.
func newTools(t testing.TB, change func(*Options)) *fixture {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return newFixture(t, func(o *Options) {
		o.Images["tools"] = runtime.Image{
			Name:     "tools",
			Programs: map[string]string{"/bin/helper": self, "/bin/sh": "/bin/sh", "/bin/sleep": "/bin/sleep", "/bin/env": "/usr/bin/env"},
			// The race detector would hold every exit for a second.
			Env: []string{"GORACE=atexit_sleep_ms=0"},
		}
		if change != nil {
			change(o)
		}
	})
}

// taskFixture is a task of a scenario.
type taskFixture struct {
	*Task
	t       *testing.T
	fixture *fixture

	mu      sync.Mutex
	samples []sample
}

// startTask starts a task of the containers in its own fixture.
func startTask(t *testing.T, change func(*taskdef.TaskDefinition), containers ...taskdef.Container) *taskFixture {
	t.Helper()
	return newTools(t, nil).startTask(t, change, containers...)
}

// startTask starts a task of the containers. Its name is its definition's family.
func (w *fixture) startTask(t *testing.T, change func(*taskdef.TaskDefinition), containers ...taskdef.Container) *taskFixture {
	t.Helper()
	def := &taskdef.TaskDefinition{Family: "web", NetworkMode: "awsvpc", CPU: "512", Memory: "1024", ContainerDefinitions: containers}
	if change != nil {
		change(def)
	}
	task, err := w.Run(def.Family, def)
	if err != nil {
		t.Fatal(err)
	}
	s := &taskFixture{Task: task, t: t, fixture: w}
	ended := make(chan struct{})
	go s.sample(ended)
	t.Cleanup(func() {
		task.abort()
		<-ended
	})
	return s
}

// helper returns a container of the test's own program.
func helper(name string, args ...string) taskdef.Container {
	return taskdef.Container{Name: name, Image: "tools", EntryPoint: []string{"/bin/helper"}, Command: args}
}

// optional makes a container non-essential.
func optional(c taskdef.Container) taskdef.Container {
	no := false
	c.Essential = &no
	return c
}

// after adds b→a:condition.
func after(b taskdef.Container, a, condition string) taskdef.Container {
	b.DependsOn = append(b.DependsOn, taskdef.Dependency{ContainerName: a, Condition: condition})
	return b
}

// checked gives a container a health check every second, which may take its time.
func checked(c taskdef.Container, retries int, command ...string) taskdef.Container {
	one, minute := 1, 60
	c.HealthCheck = &taskdef.HealthCheck{Command: command, Interval: &one, Timeout: &minute, Retries: &retries}
	return c
}

// stopTimeout sets a container's, in seconds.
func stopTimeout(c taskdef.Container, seconds int) taskdef.Container {
	c.StopTimeout = &seconds
	return c
}

// lingering returns a container that does not end by its TERM, but by taskFixture.release.
func lingering(name string) taskdef.Container {
	return stopTimeout(helper(name, "run", "linger", "0"), 120)
}

// release ends a lingering container, once it has its TERM.
func (s *taskFixture) release(name string) {
	s.t.Helper()
	s.terminated(name)
	if err := s.Kill(name, "", syscall.SIGINT); err != nil {
		s.t.Fatal(err)
	}
}

// terminated waits for a container's TERM.
func (s *taskFixture) terminated(name string) {
	s.t.Helper()
	testkit.Eventually(s.t, name+" has TERM", func() bool { return len(times(s.log(name), "SIGTERM")) == 1 })
}

// deaf returns a container whose PID 1 has no handler.
func deaf(name string, seconds int) taskdef.Container {
	return stopTimeout(taskdef.Container{Name: name, Image: "tools", EntryPoint: []string{"/bin/sleep"}, Command: []string{"1000"}}, seconds)
}

// sample is /task at a moment between began and ended.
type sample struct {
	began, ended               time.Time
	KnownStatus, DesiredStatus string
	ExecutionStoppedAt         *time.Time
	Containers                 []sampled
}

// sampled is one container of a sample; what is absent is nil.
type sampled struct {
	DockerId, Name, KnownStatus, DesiredStatus string
	CreatedAt, StartedAt, FinishedAt           *time.Time
	ExitCode, RestartCount                     *int
	Health                                     *struct {
		Status      string
		StatusSince time.Time
		ExitCode    *int
		Output      string
	}
	Networks []struct{ IPv4Addresses []string }
}

func (s sample) container(name string) sampled {
	for _, c := range s.Containers {
		if c.Name == name {
			return c
		}
	}
	return sampled{}
}

// sample polls /task every 200 ms while the task is there.
func (s *taskFixture) sample(ended chan struct{}) {
	defer close(ended)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-s.Done() // with the task's network, an answer may go
		cancel()
	}()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		now := sample{began: time.Now()}
		if code, body, err := s.try(ctx, http.MethodGet, s.base(s.launch.Definition.ContainerDefinitions[0].Name)+"/task", ""); err == nil && code == http.StatusOK {
			if err := json.Unmarshal(body, &now); err != nil {
				s.t.Errorf("metadata: %v: %s", err, body)
			}
			now.ended = time.Now()
			s.mu.Lock()
			s.samples = append(s.samples, now)
			s.mu.Unlock()
		}
		select {
		case <-tick.C:
		case <-s.Done():
			return
		}
	}
}

// seen returns the samples so far that fulfil a condition.
func (s *taskFixture) seen(ok func(sample) bool) []sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []sample
	for _, one := range s.samples {
		if ok(one) {
			found = append(found, one)
		}
	}
	return found
}

// base returns the value of a container's ECS_CONTAINER_METADATA_URI_V4.
func (s *taskFixture) base(container string) string {
	return "http://" + s.resources.host + "/v4/" + s.resources.facts.Containers[container].EndpointID
}

// try makes a request from inside the task.
func (s *taskFixture) try(ctx context.Context, method, url, body string) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, testkit.Patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	client := &http.Client{Transport: &http.Transport{DialContext: s.Dial, DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	return answer.StatusCode, got, err
}

// request makes a request that must succeed, and returns the answer's code and text.
func (s *taskFixture) request(method, url, body string) (int, string) {
	s.t.Helper()
	code, got, err := s.try(s.t.Context(), method, url, body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, url, err)
	}
	return code, string(got)
}

// log returns what a container has written.
func (s *taskFixture) log(container string) string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.fixture.LogDir(), s.name, container+".log"))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// await waits until the containers have written "ready", and the task knows that
// they run: it learns that from elsewhere, on a busy machine later.
func (s *taskFixture) await(containers ...string) *taskFixture {
	s.t.Helper()
	for _, name := range containers {
		testkit.Eventually(s.t, name+" is ready", func() bool {
			return len(times(s.log(name), "ready")) > 0 && !s.container(name).StartedAt.IsZero()
		})
	}
	return s
}

// until waits until the task's view fulfils a condition.
func (s *taskFixture) until(what string, ok func(scheduler.View) bool) scheduler.View {
	s.t.Helper()
	until(s.t, s.Task, what, ok)
	return s.View()
}

// end asks for the task's stop.
func (s *taskFixture) end() *taskFixture {
	s.stop("", "bye")
	return s
}

// stopped waits for the task's end.
func (s *taskFixture) stopped() scheduler.View {
	s.t.Helper()
	return wait(s.t, s.Task)
}

// container returns one of the view, which must have it.
func (s *taskFixture) container(name string) scheduler.ContainerView {
	s.t.Helper()
	c, ok := s.View().Container(name)
	if !ok {
		s.t.Fatalf("no container %s", name)
	}
	return c
}

// code returns a container's exit code, -1 without one.
func (s *taskFixture) code(name string) int {
	s.t.Helper()
	if code := s.container(name).ExitCode; code != nil {
		return *code
	}
	return -1
}

// signalled returns the time at which a container got its stop signal.
func (s *taskFixture) signalled(name string) time.Time {
	s.t.Helper()
	got := times(s.log(name), "SIGTERM")
	if len(got) != 1 {
		s.t.Fatalf("%s got %d TERM, want one:\n%s", name, len(got), s.log(name))
	}
	return got[0]
}

// between fails unless low <= got <= high + epsilon.
func between(t *testing.T, what string, got, low, high time.Duration) {
	t.Helper()
	if got < low || got > high+epsilon {
		t.Errorf("%s: %v, want %v to %v and at most %v more", what, got, low, high, epsilon)
	}
}

// withRole gives the task a role.
func withRole(d *taskdef.TaskDefinition) { d.TaskRoleARN = roleARN }

func (s *taskFixture) credentialsURL() string {
	return "http://" + s.resources.host + "/v2/credentials/" + s.resources.credentials
}
