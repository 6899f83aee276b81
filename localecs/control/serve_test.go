package control_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/control"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// waits is a script that runs until TERM, and then exits with 3.
const waits = `trap 'exit 3' TERM; echo "$GREETING $AWS_CONTAINER_CREDENTIALS_RELATIVE_URI ` +
	`$ECS_CONTAINER_METADATA_URI_V4"; while :; do sleep 0.05; done`

func TestRunTaskAndStopTaskWithRealContainers(t *testing.T) {
	t.Parallel()
	w := newServeFixture(t)
	w.registerFor(60, "web", "shell", waits)
	started := w.run(shapes.RunTaskInput{TaskDefinition: "web", Overrides: shapes.Overrides{
		TaskRoleARN: roleARN,
		Containers: []shapes.ContainerOverride{
			{Name: "app", Environment: []shapes.EnvironmentVariable{{Name: "GREETING", Value: "salut"}}},
		},
	}})
	running := w.await("", started.TaskARN, shapes.Running)
	c := running.Containers[0]
	testkit.Equal(t, "Version", running.Version, 3)
	testkit.Equal(t, "LastStatus", c.LastStatus, shapes.Running)
	testkit.Equal(t, "ContainerARN", c.ContainerARN, started.Containers[0].ContainerARN)
	if !strings.HasPrefix(c.RuntimeID, idOf(started.TaskARN)+"-") || !strings.HasPrefix(c.ImageDigest, "sha256:") {
		t.Errorf("%+v", running)
	}
	if !strings.HasPrefix(c.NetworkInterfaces[0].IPv4, "10.42.0.") {
		t.Errorf("%+v", running)
	}
	testkit.Equal(t, "Attachments[0].Details[4].Value", running.Attachments[0].Details[4].Value,
		c.NetworkInterfaces[0].IPv4)
	testkit.Eventually(t, "the script has its trap", func() bool { return w.log("web", started.TaskARN) != "" })
	w.stop("", started.TaskARN)
	stopped := w.await("", started.TaskARN, shapes.Stopped)
	testkit.Equal(t, "StopCode", stopped.StopCode, "UserInitiated")
	testkit.Equal(t, "StoppedReason", stopped.StoppedReason, "enough")
	testkit.Equal(t, "Containers[0].ExitCode", *stopped.Containers[0].ExitCode, 3)
	testkit.Equal(t, "Attachments[0].Status", stopped.Attachments[0].Status, "DELETED")
	if stopped.StoppedAt.IsZero() {
		t.Errorf("%+v", stopped)
	}
	log := strings.Fields(w.log("web", started.TaskARN))
	if len(log) != 3 {
		t.Fatalf("the container received %q", log)
	}
	testkit.Equal(t, "log[0]", log[0], "salut")
	if !strings.HasPrefix(log[1], "/v2/credentials/") || !strings.HasSuffix(log[2], c.RuntimeID) {
		t.Errorf("the container received %q", log)
	}
	id := idOf(started.TaskARN) + " "
	want := []string{
		id + "PROVISIONING/RUNNING", id + "PENDING/RUNNING", id + "RUNNING/RUNNING",
		id + "RUNNING/STOPPED", id + "DEPROVISIONING/STOPPED", id + "STOPPED/STOPPED",
	}
	if d := cmp.Diff(want, w.events); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}

func TestTasksThatCannotStart(t *testing.T) {
	t.Parallel()
	w := newServeFixture(t)
	w.register("unknown", "unknown/image:1", waits)
	w.register("web", "shell", waits)
	w.register("broken", "shell", waits)
	for _, tt := range []struct {
		in     shapes.RunTaskInput
		reason string
	}{
		{shapes.RunTaskInput{TaskDefinition: "unknown"},
			"CannotPullContainerError: pull access denied for unknown/image:1: not among the known images"},
		{
			shapes.RunTaskInput{
				TaskDefinition: "web", Overrides: shapes.Overrides{
					TaskRoleARN: "arn:aws:iam::123456789012:role/nobody",
				},
			},
			"ECS was unable to assume the role 'arn:aws:iam::123456789012:role/nobody' that was provided for this " +
				"task. Please verify that the role being passed " +
				"has the proper trust relationship and permissions and that your IAM user has permissions to pass " +
				"this role.",
		},
	} {
		task := w.await("", w.run(tt.in).TaskARN, shapes.Stopped)
		testkit.Equal(t, "StopCode", task.StopCode, "TaskFailedToStart")
		if !strings.HasPrefix(task.StoppedReason, tt.reason) {
			t.Errorf("%+v", task)
		}
		testkit.Equal(t, "DesiredStatus", task.DesiredStatus, shapes.Stopped)
		testkit.Equal(t, "Containers[0].LastStatus", task.Containers[0].LastStatus, shapes.Stopped)
		if task.Containers[0].ExitCode != nil || !task.StartedAt.IsZero() {
			t.Errorf("%+v", task)
		}
	}
}

func TestStopComesBeforeTheTask(t *testing.T) {
	t.Parallel()
	w := newServeFixture(t)
	w.register("web", "shell", waits)
	for range 5 {
		arn := w.run(shapes.RunTaskInput{TaskDefinition: "web"}).TaskARN
		w.stop("", arn)
		if task := w.await("", arn, shapes.Stopped); task.StopCode != "UserInitiated" ||
			task.StoppedReason != "enough" {
			t.Errorf("%+v", task)
		}
	}
}

func TestTasksOfSeveralClusters(t *testing.T) {
	t.Parallel()
	w := newServeFixture(t)
	w.register("web", "shell", waits)
	var made shapes.ClusterOutput
	if err := w.call("CreateCluster", shapes.CreateClusterInput{ClusterName: "other"}, &made); err != nil {
		t.Fatal(err)
	}
	arn := w.run(shapes.RunTaskInput{TaskDefinition: "web", Cluster: "other", LaunchType: "FARGATE"}).TaskARN
	w.await("other", arn, shapes.Running)
	if !strings.Contains(arn, ":task/other/") {
		t.Error(arn)
	}
	w.stop("other", arn)
	w.await("other", arn, shapes.Stopped)
}

func TestSettingsThatAreNotEmulatedAreLoggedOnce(t *testing.T) {
	t.Parallel()
	w := newServeFixture(t)
	if err := w.call("RegisterTaskDefinition", map[string]any{
		"family": "web", "networkMode": "awsvpc", "requiresCompatibilities": []string{"FARGATE"}, "cpu": "256",
		"memory": "512",
		"containerDefinitions": []any{map[string]any{"name": "app", "image": "shell",
			"command": []string{"/bin/sh", "-c", ":"}, "pseudoTerminal": true}},
	}, &shapes.Empty{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.await("", w.run(shapes.RunTaskInput{TaskDefinition: "web"}).TaskARN, shapes.Stopped)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if text := w.warnings.String(); strings.Count(text, "pseudoTerminal: not emulated") != 1 ||
		!strings.Contains(text, "task-definition/web:1") {
		t.Errorf("it says %s", text)
	}
}

// What is open when it ends is closed, and of tasks only logs stay.
func TestCloseStopsTasksAndKeepsOnlyLogs(t *testing.T) {
	t.Parallel()
	w := newServeFixture(t)
	w.register("deaf", "shell", `trap '' TERM; while :; do sleep 0.05; done`)
	arn := w.run(shapes.RunTaskInput{TaskDefinition: "deaf"}).TaskARN
	w.await("", arn, shapes.Running)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(w.dir)
	if err != nil || len(left) != 1 {
		t.Fatalf("%v, %v", left, err)
	}
	testkit.Equal(t, "left[0].Name()", left[0].Name(), "logs")
	w.mu.Lock()
	defer w.mu.Unlock()
	if last := w.events[len(w.events)-1]; last != idOf(arn)+" STOPPED/STOPPED" {
		t.Errorf("last event %s", last)
	}
	if err := w.call("ListTasks", shapes.ListTasksInput{}, &shapes.ListTasksOutput{}); err == nil {
		t.Error("the API still answers")
	}
}

func TestExports(t *testing.T) {
	t.Parallel()
	w := newServeFixture(t)
	var names []string
	for _, v := range w.Exports() {
		name, _, _ := strings.Cut(v, "=")
		names = append(names, name)
	}
	want := []string{
		"AWS_ENDPOINT_URL_ECS", "AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL_IAM", "AWS_ACCESS_KEY_ID",
		"AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION",
	}
	if !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
	// The same address has STS and IAM, which speak XML.
	res, err := http.Get(w.exports["AWS_ENDPOINT_URL_STS"])
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, err := io.ReadAll(res.Body); err != nil ||
		!strings.Contains(string(text), "<Code>MissingAuthenticationToken</Code>") {
		t.Errorf("%s, %v", text, err)
	}
	if matches, err := filepath.Glob(filepath.Join(w.dir, "logs", "*")); err != nil || len(matches) != 0 {
		t.Errorf("an empty cluster has logs: %v, %v", matches, err)
	}
}

func TestOnlyLoopbackIsListenedOn(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{
		"127.0.0.1:0": true, "localhost:8080": true, "[::1]:1": true, "127.42.0.1:1": true,
		":8080": false, "0.0.0.0:0": false, "10.0.0.1:1": false, "example.org:1": false, "127.0.0.1": false,
	} {
		if err := control.CheckLoopback(address); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}
