package scenario

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/scenario/file"
	"github.com/meshtask/consul-ecs/taskdef"
)

func TestOnlyEssentialContainersCanFail(t *testing.T) {
	t.Parallel()
	started := time.Date(2026, 3, 2, 17, 0, 0, 0, time.UTC)
	code := func(n int) *int { return &n }
	stopping := started.Add(time.Minute)
	for name, c := range map[string]struct {
		view scheduler.ContainerView
		want string
	}{
		"a good end": {scheduler.ContainerView{Essential: true, ExitCode: code(0), StartedAt: started,
			FinishedAt: started.Add(1)}, ""},
		"a bad one": {scheduler.ContainerView{Essential: true, ExitCode: code(1), StartedAt: started,
			FinishedAt: started.Add(1)}, "exited with 1"},
		"of no importance": {scheduler.ContainerView{ExitCode: code(1), StartedAt: started,
			FinishedAt: started.Add(1)}, ""},
		"out of memory": {scheduler.ContainerView{Essential: true, ExitCode: code(137),
			Reason: "OutOfMemoryError: x", StartedAt: started, FinishedAt: started.Add(1)},
			"exited with 137: OutOfMemoryError: x"},
		"by the stop signal": {scheduler.ContainerView{Essential: true, ExitCode: code(143), StartedAt: started,
			FinishedAt: stopping.Add(1)}, ""},
		"by its own signal": {scheduler.ContainerView{Essential: true, ExitCode: code(143), StartedAt: started,
			FinishedAt: stopping.Add(-1)}, "exited with 143"},
		"never": {scheduler.ContainerView{Essential: true, Reason: "no image"},
			"never ran: no image"},
		"never, for ECS it ended": {scheduler.ContainerView{Essential: true, ExitCode: code(143)}, "never ran"},
		"killed": {scheduler.ContainerView{Essential: true, ExitCode: code(137), StartedAt: started,
			FinishedAt: stopping.Add(1)},
			"had to be killed: it still ran 7 s (stopTimeout) after its stop signal; a program that is a container's " +
				"first process gets SIGTERM only if it handles it, or with initProcessEnabled"},
	} {
		if got := failure(c.view, stopping, 7, 143); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestReportOfTaskDefinitions(t *testing.T) {
	t.Parallel()
	code, started, ended := 0, 0.5, 61.25
	o := &Report{
		Name: "shop", StopOrder: "reverse", Tasks: 1, Failures: []string{}, Elapsed: 61310 * time.Millisecond,
		LogDir: "/logs", Timeline: "/timeline.html",
		Ended: []TaskEnd{{Task: "shop", TaskID: "0123", StopCode: "UserInitiated",
			StoppedReason: "Task stopped by user", Containers: []ContainerEnd{
				{Name: "web", Essential: true, ExitCode: &code, Health: "HEALTHY", StartedSeconds: &started,
					EndedSeconds: &ended},
				{Name: "never-there", Reason: "no image"},
			}}},
	}
	want := `
shop: UserInitiated: Task stopped by user
  container    essential  started  ended    exit  health
  web          yes        0.50 s   61.25 s  0     HEALTHY
  never-there             -        -        -

Logs and metadata: /logs
Timeline: /timeline.html
shop: all essential containers ended well in 1m1.3s
`
	if diff := cmp.Diff(want, o.text()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	o.Failures = []string{"web exited with 1"}
	if got := o.text(); !strings.HasSuffix(got, "timeline.html\nshop: FAILED: web exited with 1\n") {
		t.Errorf("got %s", got)
	}
	var b bytes.Buffer
	if err := o.Write(&b, true); err != nil {
		t.Fatal(err)
	}
	_, object, _ := strings.Cut(b.String(), `"kind":`)
	wantObject := `"report","name":"shop","stop_order":"reverse","tasks":1,"failures":["web exited with ` +
		`1"],"answered":0,"failed":0,"slowest_ns":0,` +
		`"ended":[{"task":"shop","task_id":"0123","stop_code":"UserInitiated",` +
		`"stopped_reason":"Task stopped by user",` +
		`"containers":[{"name":"web","essential":true,"exit_code":0,"health":"HEALTHY","started_seconds":0.5,` +
		`"ended_seconds":61.25},` +
		`{"name":"never-there","essential":false,"exit_code":null,"reason":"no ` +
		`image"}]}],"elapsed_ns":61310000000,"log_dir":"/logs","timeline":"/timeline.html"}` + "\n"
	if diff := cmp.Diff(wantObject, object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPrefixesHaveOneWidth(t *testing.T) {
	t.Parallel()
	dir := writeFile(t, map[string]string{"shop.json": shop, "job.json": job})
	plan := func(files ...string) *Plan {
		t.Helper()
		d := &definitions{plan: &Plan{
			file: &file.Scenario{Tasks: map[string]file.Task{}},
			defs: file.Definitions{
				Files: map[string]*taskdef.TaskDefinition{}, Tasks: map[string]*taskdef.TaskDefinition{},
			},
		}}
		if _, err := d.read(files); err != nil {
			t.Fatal(err)
		}
		return d.plan
	}
	if diff := cmp.Diff(map[string]string{"shop/db": "db  | ", "shop/web": "web | "},
		plan(dir+"/shop.json").prefixes(false)); diff != "" {
		t.Errorf("one task (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{
		"shop/db": "\x1b[36mshop/db  | \x1b[0m", "shop/web": "\x1b[33mshop/web | \x1b[0m",
		"job/job": "\x1b[32mjob/job  | \x1b[0m",
	}, plan(dir+"/shop.json", dir+"/job.json").prefixes(true)); diff != "" {
		t.Errorf("two (-want +got):\n%s", diff)
	}
}
