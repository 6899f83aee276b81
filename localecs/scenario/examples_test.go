package scenario_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/network"
	"github.com/meshtask/consul-ecs/localecs/scenario"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
)

// follower records events and closes come when all of it has been.
type follower struct {
	t    *testing.T
	come chan struct{}

	mu     sync.Mutex
	await  []string
	output []string
}

// follow waits for events such as "blog/mysql HEALTHY", in any order; LISTENING is
// what the stand-ins say.
func follow(t *testing.T, await ...string) *follower {
	return &follower{t: t, come: make(chan struct{}), await: slices.Clone(await)}
}

func (f *follower) Event(e scenario.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.Kind == scenario.KindOutput {
		f.output = append(f.output, e.Prefix+e.Text)
		if strings.Contains(e.Text, " listening on ") { // before, it is deaf to TERM
			e.Status = "LISTENING"
		}
	} else {
		f.t.Logf("%6.2fs %s %s %s %s", e.Seconds, e.Task, e.Container, e.Kind, e.Text)
	}
	before := len(f.await)
	f.await = slices.DeleteFunc(f.await, func(want string) bool { return want == e.Task+"/"+e.Container+" "+e.Status })
	if before > 0 && len(f.await) == 0 {
		close(f.come)
	}
}

// run runs definitions and asks them to stop when the follower has seen all.
func run(t *testing.T, f *follower, s scenario.Sources, paths ...string) (*scenario.Report, string) {
	t.Helper()
	if os.Getuid() != 0 {
		testkit.Missing(t, "network namespaces need root")
	}
	s.Network = network.AWSVPC
	p, _, err := scenario.PrepareDefinitions(paths, s)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dir := t.TempDir()
	out, err := p.Run(ctx, scenario.Options{Dir: dir, Stop: f.come, Progress: f.Event,
		Log: hclog.New(&hclog.LoggerOptions{Output: t.Output()})})
	if err != nil {
		t.Fatal(err)
	}
	return out, dir
}

// TestExamples runs every public shape as its README says.
func TestExamples(t *testing.T) {
	t.Parallel()
	bin := testkit.Programs(t)
	files, err := filepath.Glob("../../examples/definitions/*.json")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		await, output, codes []string
	}{
		"storefront": {await: []string{"storefront/storefront HEALTHY"}, codes: []string{"storefront 0 HEALTHY"}},
		"blog": {
			await:  []string{"blog/mysql HEALTHY", "blog/wordpress LISTENING"},
			output: []string{"mysql     | database blog, a password of 15 characters"},
			codes:  []string{"mysql 0 HEALTHY", "wordpress 0 "},
		},
		"orders": {await: []string{"orders/datadog-agent HEALTHY"},
			codes: []string{"log_router 0 ", "orders 0 ", "datadog-agent 0 HEALTHY"}},
		"catalogue": {await: []string{"catalogue/envoy HEALTHY", "catalogue/nginx LISTENING"},
			codes: []string{"php 0 ", "nginx 0 ", "envoy 0 HEALTHY", "xray-daemon 0 "}},
		"nightly-report": {
			output: []string{
				"migrate | schema is up to date", "report  | schema is up to date",
				"report  | report as csv in EUR for yesterday",
			},
			codes: []string{"migrate 0 ", "report 0 "},
		},
	}
	// It needs another task beside it: the jobs of docs/localecs/how-to.md run it.
	files = slices.DeleteFunc(files, func(path string) bool { return filepath.Base(path) == "blog-tests.json" })
	if len(files) != len(cases) {
		t.Errorf("%d files, %d cases", len(files), len(cases))
	}
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		c, known := cases[name]
		if !known {
			t.Errorf("%s is not tried", path)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := follow(t, c.await...)
			out, dir := run(t, f, scenario.Sources{Vars: map[string]string{"bin": bin}}, path)
			if len(out.Failures) > 0 {
				t.Errorf("failures: %q", out.Failures)
			}
			var codes []string
			for _, c := range out.Ended[0].Containers {
				if c.ExitCode == nil {
					t.Errorf("%s never ran: %s", c.Name, c.Reason)
					continue
				}
				codes = append(codes, c.Name+" "+strconv.Itoa(*c.ExitCode)+" "+c.Health)
			}
			if diff := cmp.Diff(c.codes, codes); diff != "" {
				t.Errorf("ends (-want +got):\n%s", diff)
			}
			for _, line := range c.output {
				if !slices.Contains(f.output, line) {
					t.Errorf("no %q in %q", line, f.output)
				}
			}
			lastMetadata(t, filepath.Join(dir, "logs", name, "metadata.json"))
		})
	}
}

// lastMetadata looks at what is kept of a task's metadata: its end.
func lastMetadata(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		TaskARN, KnownStatus string
		Containers           []struct {
			Name, KnownStatus string
			ExitCode          *int
		}
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	if document.TaskARN == "" {
		t.Errorf("metadata %s", text)
	}
	testkit.Equal(t, "KnownStatus", document.KnownStatus, "STOPPED")
	if len(document.Containers) == 0 {
		t.Errorf("metadata %s", text)
	}
	for _, c := range document.Containers {
		if c.KnownStatus != "STOPPED" || c.ExitCode == nil {
			t.Errorf("container %+v", c)
		}
	}
}

// Two tasks run side by side and find each other by name; what is not essential may
// fail, what is may not.
func TestTasksSideBySide(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"db.json": `{"family": "db", "networkMode": "awsvpc", "containerDefinitions": [{"name": "db", "image": "any",
		"memory": 64,
			"command": ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done"]}]}`,
		"job.json": `{"family": "job", "networkMode": "awsvpc", "containerDefinitions": [
			{"name": "lookup", "image": "any", "memory": 64, "command": ["sh", "-c",
			"until getent hosts db.default.local; do sleep 0.1; done; kill -0 1; exit 3"]},
			{"name": "early", "image": "any", "memory": 64, "essential": false, "command": ["sh", "-c", "exit 9"]}]}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var all scenario.Flags
	if err := all.Set("*=host"); err != nil {
		t.Fatal(err)
	}
	f := follow(t, "job/ STOPPED", "db/ RUNNING")
	out, _ := run(t, f, scenario.Sources{Images: all}, filepath.Join(dir, "db.json"), filepath.Join(dir, "job.json"))
	if diff := cmp.Diff([]string{"job/lookup exited with 3"}, out.Failures); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	if !slices.ContainsFunc(f.output, func(line string) bool {
		return strings.HasPrefix(line, "job/lookup | 10.42.0.") && strings.HasSuffix(line, "db.default.local")
	}) {
		t.Errorf("output %q", f.output)
	}
}

// A container that waits for what never comes is named, with what it waits for.
func TestContainersThatNeverStartAreReported(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "slow.json")
	if err := os.WriteFile(path, []byte(`{"family": "slow", "networkMode": "awsvpc", "containerDefinitions": [
		{"name": "db", "image": "any", "memory": 64, "command": ["sh", "-c",
		"trap 'exit 0' TERM; while :; do sleep 0.1; done"], "healthCheck": {"command": ["CMD-SHELL", "false"],
		"interval": 5, "retries": 1}},
		{"name": "web", "image": "any", "memory": 64, "command": ["true"],
		"dependsOn": [{"containerName": "db", "condition": "HEALTHY"}]}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	var all scenario.Flags
	if err := all.Set("*=host"); err != nil {
		t.Fatal(err)
	}
	out, _ := run(t, follow(t, "slow/db UNHEALTHY"), scenario.Sources{Images: all}, path)
	if diff := cmp.Diff([]string{"web never ran: it waited for db HEALTHY"}, out.Failures); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}

// When the run is given up, nothing is waited for.
func TestCancelKillsAtOnce(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		testkit.Missing(t, "network namespaces need root")
	}
	testkit.RequireOnPath(t, "sleep")
	path := filepath.Join(t.TempDir(), "deaf.json")
	if err := os.WriteFile(path,
		[]byte(`{"family": "deaf", "networkMode": "awsvpc", "containerDefinitions": [{"name": "deaf", "image": `+
			`"any", "memory": 64, "command": ["sleep", "600"], "stopTimeout": 120}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	var all scenario.Flags
	if err := all.Set("*=sleep"); err != nil {
		t.Fatal(err)
	}
	p, _, err := scenario.PrepareDefinitions([]string{path}, scenario.Sources{Images: all, Network: network.AWSVPC})
	if err != nil {
		t.Fatal(err)
	}
	f := follow(t, "deaf/ RUNNING")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	enough := errors.New("enough")
	go func() {
		<-f.come
		cancel(enough)
	}()
	started := time.Now()
	out, err := p.Run(ctx, scenario.Options{Dir: t.TempDir(), Progress: f.Event, Log: hclog.NewNullLogger()})
	if out != nil || !errors.Is(err, enough) {
		t.Errorf("got %v, %v", out, err)
	}
	if took := time.Since(started); took > time.Minute {
		t.Errorf("took %s", took)
	}
}

// A task that a container starts runs beside those of the definitions, which wait
// for its end.
func TestTasksStartedByContainersAreAwaited(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		testkit.Missing(t, "network namespaces need root")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "job.json")
	if err := os.WriteFile(path,
		[]byte(`{"family": "job", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "256",
		"memory": "512",
		"containerDefinitions": [{"name": "job", "image": "any", "command": ["sh", "-c",
		"trap 'exit 0' TERM; echo ready; i=0; while [ $i -lt 30 ]; do sleep 0.1; i=$((i+1)); done; exit 5"]}]}`),
		0o644); err != nil {
		t.Fatal(err)
	}
	var all scenario.Flags
	if err := all.Set("*=host"); err != nil {
		t.Fatal(err)
	}
	p, _, err := scenario.PrepareDefinitions([]string{path}, scenario.Sources{Images: all, Network: network.AWSVPC})
	if err != nil {
		t.Fatal(err)
	}
	f := follow(t, "job/job RUNNING")
	var running scenario.LiveRun
	attend := func(r scenario.LiveRun) func() { running = r; return func() {} }
	go func() {
		<-f.come
		_, err := running.Region().Plane().RunTask(running.Region().Call(), shapes.RunTaskInput{
			TaskDefinition: "job", LaunchType: shapes.Fargate, NetworkConfiguration: file.Network(),
		})
		if err != nil {
			t.Error(err)
		}
	}()
	out, err := p.Run(t.Context(),
		scenario.Options{Dir: t.TempDir(), Progress: f.Event, Attend: attend, Log: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	testkit.Equal(t, "len(out.Ended)", len(out.Ended), 2)
	testkit.Equal(t, "Tasks", out.Tasks, 2)
	if len(out.Failures) != 2 {
		t.Fatalf("got %+v", out)
	}
	testkit.Equal(t, "Failures[0]", out.Failures[0], "job exited with 5")
	if !strings.HasSuffix(out.Failures[1], "/job exited with 5") {
		t.Errorf("got %+v", out)
	}
}
