package compose_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/compose"
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/metadata"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/taskdef"
)

const definition = `{"family": "web", "taskRoleArn": "arn:aws:iam::123456789012:role/apps/web", "containerDefinitions": [
  {"name": "envoy", "image": "e"}, {"name": "app", "image": "a", "dependsOn": [{"containerName": "envoy", "condition": "START"}]}]}`

// dock is an engine of one task.
type dock struct {
	mu         sync.Mutex
	containers []compose.Container
	err        error
	looks      int
	stopped    []string
	changed    chan *compose.StopRequest
}

func newDock() *dock {
	d := &dock{changed: make(chan *compose.StopRequest)}
	for _, name := range []string{"", "envoy", "app"} {
		d.containers = append(d.containers, compose.Container{ID: "id-" + name, Task: "web", Name: name, Status: "running", StartedAt: time.Now()})
	}
	return d
}

func (d *dock) Containers(context.Context) ([]compose.Container, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.looks++
	return append([]compose.Container(nil), d.containers...), d.err
}

func (d *dock) Watch(ctx context.Context, changed func(*compose.StopRequest)) error {
	for {
		select {
		case asked := <-d.changed:
			changed(asked)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Stop takes a time that does not end when the agent looks, whose order would be open then.
func (d *dock) Stop(ctx context.Context, id string) error {
	d.mu.Lock()
	d.stopped = append(d.stopped, id)
	d.mu.Unlock()
	select {
	case <-time.After(1500 * time.Millisecond):
	case <-ctx.Done():
		return ctx.Err()
	}
	if id == "id-" {
		return errors.New("no such container")
	}
	d.end(strings.TrimPrefix(id, "id-"))
	return nil
}

func (d *dock) end(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, c := range d.containers {
		if c.Name == name {
			d.containers[i].Status, d.containers[i].FinishedAt = "exited", time.Now()
		}
	}
}

// seen returns how often the agent looked, and what was stopped.
func (d *dock) seen() (looks int, stopped []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.looks, append([]string(nil), d.stopped...)
}

func (d *dock) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

// agentFixture is an agent of one task.
type agentFixture struct {
	*compose.Agent
	dock  *dock
	store *iam.Store
	state *compose.State
	log   *testkit.Log
}

func newAgentFixture(t *testing.T) *agentFixture {
	t.Helper()
	doc, err := taskdef.Parse([]byte(definition))
	if err != nil {
		t.Fatal(err)
	}
	r := &agentFixture{dock: newDock(), store: iam.NewStore(), log: &testkit.Log{}}
	r.state = compose.NewState(cluster.ClusterFacts{Account: shapes.Account{Region: "us-east-1", ID: "123456789012"}, Name: "shop"}, []compose.FileTask{{Name: "web", Definition: doc.Definition}})
	r.Agent = compose.NewAgent(r.dock, r.state, r.store, hclog.New(&hclog.LoggerOptions{Output: r.log, DisableTime: true}))
	return r
}

// bubble runs the agent while test does.
func bubble(t *testing.T, test func(t *testing.T, r *agentFixture)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newAgentFixture(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); r.Run(ctx) }()
		synctest.Wait()
		test(t, r)
		cancel()
		<-done
	})
}

// pass lets the bubble's time pass, and all timers fire.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (r *agentFixture) desired(t *testing.T) string {
	t.Helper()
	tasks := r.state.Tasks()
	if len(tasks) != 1 {
		t.Fatalf("%d tasks", len(tasks))
	}
	return tasks[0].View.DesiredStatus
}

func TestChangesAreSeenAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *agentFixture) {
		before, _ := r.dock.seen()
		r.dock.changed <- nil
		synctest.Wait()
		if looks, _ := r.dock.seen(); looks != before+1 {
			t.Errorf("%d looks after a change", looks-before)
		}
		pass(10*time.Second + time.Millisecond)
		if looks, _ := r.dock.seen(); looks-before-1 != 10 {
			t.Errorf("%d looks in 10 s of silence", looks-before-1)
		}
		r.dock.changed <- &compose.StopRequest{Task: "web", Container: "app", At: time.Now()}
		synctest.Wait()
		if got := r.desired(t); got != "STOPPED" {
			t.Errorf("desired status %s of a task that was asked to stop", got)
		}
		pass(5 * time.Second)
		if _, stopped := r.dock.seen(); len(stopped) > 0 {
			t.Errorf("stopped %v, which another process does", stopped)
		}
	})
}

func TestEssentialContainerEndsItsTask(t *testing.T) {
	bubble(t, func(t *testing.T, r *agentFixture) {
		r.dock.end("app")
		pass(20 * time.Second)
		_, stopped := r.dock.seen()
		if want := []string{"id-envoy", "id-"}; len(stopped) < 2 || !slices.Equal(stopped[:2], want) {
			t.Errorf("stopped %v, want it to begin with %v", stopped, want)
		}
		if !strings.Contains(r.log.String(), "container was not stopped") {
			t.Errorf("log %s", r.log)
		}
	})
}

// Without the engine the state stays, and that is logged once.
func TestUnreachableEngine(t *testing.T) {
	bubble(t, func(t *testing.T, r *agentFixture) {
		r.dock.fail(errors.New("engine is away"))
		pass(10 * time.Second)
		if got := r.desired(t); got != "RUNNING" {
			t.Errorf("desired status %s", got)
		}
		if n := strings.Count(r.log.String(), "engine is away"); n != 1 {
			t.Errorf("said %d times: %s", n, r.log)
		}
		r.dock.fail(nil)
		pass(2 * time.Second)
		r.dock.fail(errors.New("engine is away"))
		pass(2 * time.Second)
		if n := strings.Count(r.log.String(), "engine is away"); n != 2 {
			t.Errorf("said %d times: %s", n, r.log)
		}
	})
}

func get(t *testing.T, h http.Handler, path string) (int, map[string]any) {
	t.Helper()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
	var answer map[string]any
	json.Unmarshal(rec.Body.Bytes(), &answer) // what is no object is nil
	return rec.Code, answer
}

func TestCredentialsAreRenewedBeforeTheirEnd(t *testing.T) {
	bubble(t, func(t *testing.T, r *agentFixture) {
		h := r.TaskHandler(t.Context(), nil)
		key := func() (id any) {
			code, answer := get(t, h, "/v2/credentials/web")
			if code != http.StatusOK || answer["RoleArn"] != "arn:aws:iam::123456789012:role/apps/web" {
				t.Errorf("%d %v", code, answer)
			}
			return answer["AccessKeyId"]
		}
		first := key()
		pass(4 * time.Hour)
		if key() != first {
			t.Error("renewed after four hours of six")
		}
		pass(time.Hour + 2*time.Second)
		second := key()
		if second == first {
			t.Error("not renewed after five hours of six")
		}
		r.dock.mu.Lock()
		r.dock.containers[0].StartedAt = time.Now() // another run
		r.dock.mu.Unlock()
		pass(2 * time.Second)
		third, ok := r.store.Key(key().(string))
		if !ok || third.AccessKeyID == second {
			t.Errorf("key %s of another task, before it %s", third.AccessKeyID, second)
		}
		if id := r.state.Tasks()[0].ID; !strings.HasSuffix(third.Principal.ARN, id) {
			t.Errorf("key of %+v, want that of %s", third.Principal, id)
		}
	})
}

func TestTaskThatHasJustStarted(t *testing.T) {
	t.Parallel()
	r := newAgentFixture(t) // which does not run: only a request has it look
	stats := func(_ context.Context, id string) *metadata.Stats {
		s := &metadata.Stats{}
		s.Memory.Usage = uint64(len(id))
		return s
	}
	h := r.TaskHandler(t.Context(), stats)
	code, task := get(t, h, "/v4/web.app/task")
	testkit.Equal(t, "status of the task", code, 200)
	testkit.Equal(t, "DesiredStatus", task["DesiredStatus"], any("RUNNING"))
	testkit.Equal(t, "LaunchType", task["LaunchType"], any("FARGATE"))
	testkit.Equal(t, "number of containers", len(task["Containers"].([]any)), 2)
	if code, c := get(t, h, "/v4/web.app"); code != 200 || c["Name"] != "app" {
		t.Errorf("container %d %v", code, c)
	}
	code, s := get(t, h, "/v4/web.app/stats")
	testkit.Equal(t, "status of the figures", code, 200)
	testkit.Equal(t, "name", s["name"], any("app"))
	testkit.Equal(t, "memory usage", s["memory_stats"].(map[string]any)["usage"], any(6.0))
	for path, want := range map[string]int{
		"/v4/web.none": 404, "/v4/api.app/task": 404, "/v2/credentials/api": 400, "/v2/credentials/": 400,
		"/v2/credentials/web": 200, "/api/web.app/task-protection/v1/state": 200, "/": 404,
	} {
		if code, answer := get(t, h, path); code != want {
			t.Errorf("%s: %d %v, want %d", path, code, answer, want)
		}
	}
}

// A container that asks right after its task was started again gets the new
// run: by the ID of the old one it would lose its tokens.
func TestTaskThatHasJustRestarted(t *testing.T) {
	t.Parallel()
	r := newAgentFixture(t) // which does not run: only a request has it look
	h := r.TaskHandler(t.Context(), nil)
	_, first := get(t, h, "/v4/web.app/task")
	for _, name := range []string{"", "envoy", "app"} {
		r.dock.end(name)
	}
	if err := r.Update(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.dock.mu.Lock()
	for i := range r.dock.containers {
		r.dock.containers[i].Status, r.dock.containers[i].StartedAt = "running", time.Now().Add(time.Minute)
	}
	r.dock.mu.Unlock()
	if _, second := get(t, h, "/v4/web.app/task"); second["TaskARN"] == first["TaskARN"] || second["DesiredStatus"] != "RUNNING" {
		t.Errorf("second run is %v and %v, the first was %v", second["TaskARN"], second["DesiredStatus"], first["TaskARN"])
	}
	looks, _ := r.dock.seen()
	get(t, h, "/v4/web.app/task")
	if again, _ := r.dock.seen(); again != looks {
		t.Error("looked again for a container that was known to run")
	}
}

func TestAWSRequestsAreSigned(t *testing.T) {
	t.Parallel()
	r := newAgentFixture(t)
	h := r.AWSHandler("us-east-1")
	for name, req := range map[string]*http.Request{
		"STS": httptest.NewRequest(http.MethodPost, "/", strings.NewReader("Action=GetCallerIdentity&Version=2011-06-15")),
		"ECS": httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}")),
	} {
		if name == "ECS" {
			req.Header.Set("X-Amz-Target", "AmazonEC2ContainerServiceV20141113.ListTasks")
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		if body := rec.Body.String(); !strings.Contains(body, "MissingAuthenticationToken") || strings.HasPrefix(body, "{") != (name == "ECS") {
			t.Errorf("%s: %d %s", name, rec.Code, body)
		}
	}
}
