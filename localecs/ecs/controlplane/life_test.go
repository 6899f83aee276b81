package controlplane_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

func TestStatusesAndVersionsFollowThePublishedSequence(t *testing.T) {
	t.Parallel()
	w := newPlaneFixture(t, nil)
	id := w.run(nil)[0]
	w.start(id)
	if _, err := w.StopTask(w.call(), shapes.StopTaskInput{Task: id, Reason: "enough"}); err != nil {
		t.Fatal(err)
	}
	// Other states of the scheduler make no version.
	w.happen(id, scheduler.StopRequested{Code: scheduler.StopUserInitiated, Reason: "enough"})
	w.end(id, 143)
	want := []string{
		"1 PROVISIONING/RUNNING", "2 PENDING/RUNNING", "3 RUNNING/RUNNING", "4 RUNNING/STOPPED",
		"5 DEPROVISIONING/STOPPED", "6 STOPPED/STOPPED",
	}
	if d := cmp.Diff(want, w.events); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"UserInitiated enough"}, w.stops); d != "" {
		t.Errorf("stops (-want +got):\n%s", d)
	}
}

func TestEssentialExit(t *testing.T) {
	t.Parallel()
	w := newPlaneFixture(t, nil)
	id := w.run(nil)[0]
	w.start(id)
	w.now = w.now.Add(3 * time.Second)
	w.end(id, 7)
	task := w.describe(id)
	testkit.Equal(t, "LastStatus", task.LastStatus, shapes.Stopped)
	testkit.Equal(t, "StopCode", task.StopCode, "EssentialContainerExited")
	testkit.Equal(t, "StoppedReason", task.StoppedReason, "Essential container in task exited")
	if task.Containers[0].ExitCode == nil {
		t.Fatalf("%+v", task)
	}
	testkit.Equal(t, "Containers[0].ExitCode", *task.Containers[0].ExitCode, 7)
	if !task.StoppedAt.Equal(w.now) || !task.ExecutionStoppedAt.Equal(w.now) {
		t.Errorf("%+v", task)
	}
}

// A Spot interruption is announced two minutes before the capacity is gone: the task
// still runs.
func TestSpotInterruption(t *testing.T) {
	t.Parallel()
	w := newPlaneFixture(t, nil)
	id := w.run(nil)[0]
	w.start(id)
	w.happen(id, scheduler.StopRequested{Code: scheduler.StopSpotInterruption, Reason: scheduler.SpotReason})
	task := w.describe(id)
	testkit.Equal(t, "LastStatus", task.LastStatus, shapes.Running)
	testkit.Equal(t, "DesiredStatus", task.DesiredStatus, shapes.Stopped)
	testkit.Equal(t, "StopCode", task.StopCode, "SpotInterruption")
	testkit.Equal(t, "StoppedReason", task.StoppedReason, "Your Spot Task was interrupted.")
	if !task.StoppingAt.Equal(w.now) || !task.StoppedAt.IsZero() {
		t.Errorf("%+v", task)
	}
	w.end(id, 143)
	if task = w.describe(id); task.LastStatus != shapes.Stopped || task.StopCode != "SpotInterruption" {
		t.Errorf("%+v", task)
	}
}

func TestNetworkInterfaceAppearsWithoutNewVersions(t *testing.T) {
	t.Parallel()
	w := newPlaneFixture(t, func(o *controlplane.Options) { o.Lag = controlplane.Lag{Interface: 5 * time.Second} })
	id := w.run(nil)[0]
	look := func(want string, details, interfaces int) {
		t.Helper()
		task := w.describe(id)
		a := task.Attachments[0]
		testkit.Equal(t, "Type", a.Type, "ElasticNetworkInterface")
		testkit.Equal(t, "Status", a.Status, want)
		testkit.Equal(t, "len(a.Details)", len(a.Details), details)
		testkit.Equal(t, "len(task.Containers[0].NetworkInterfaces)", len(task.Containers[0].NetworkInterfaces),
			interfaces)
	}
	look("PRECREATED", 1, 0)
	w.happen(id, scheduler.Tick{})
	look("ATTACHING", 1, 0)
	w.now = w.now.Add(5 * time.Second)
	look("ATTACHED", 5, 1)
	if v := w.describe(id).Version; v != 2 {
		t.Errorf("version %d, want 2", v)
	}
	w.happen(id, scheduler.StopRequested{})
	look("DETACHING", 5, 1)
	w.end(id, 0)
	look("DELETED", 5, 1)
}

func TestDescribeRunningTask(t *testing.T) {
	t.Parallel()
	w := newPlaneFixture(t, nil)
	id := w.run(func(in *shapes.RunTaskInput) {
		in.StartedBy, in.LaunchType, in.EnableExecuteCommand = "me", "FARGATE", true
		in.Tags = []shapes.Tag{{Key: "one", Value: "two"}}
	})[0]
	w.now = w.now.Add(time.Second)
	w.start(id)
	at := shapes.At(w.now)
	got := w.describe(id)
	task, arn := planeAccount+"task/default/"+id, got.Containers[0].ContainerARN
	want := shapes.Task{
		Attachments: []shapes.Attachment{{ID: got.Attachments[0].ID, Type: "ElasticNetworkInterface",
			Status: "ATTACHED", Details: []shapes.NameValue{
				{Name: "subnetId", Value: "subnet-1"}, {Name: "networkInterfaceId", Value: "eni-" + id[:17]},
				{Name: "macAddress", Value: "0a:ec:0a:2a:00:04"},
				{Name: "privateDnsName", Value: "ip-10-42-0-4.ec2.internal"},
				{Name: "privateIPv4Address", Value: "10.42.0.4"},
			}}},
		Attributes: []shapes.NameValue{{Name: "ecs.cpu-architecture", Value: "x86_64"}}, AvailabilityZone: "us-east-1a",
		ClusterARN: planeAccount + "cluster/default", Connectivity: "CONNECTED", ConnectivityAt: at,
		Containers: []shapes.Container{{
			ContainerARN: arn, TaskARN: task, Name: "app", Image: "app:1", ImageDigest: "sha256:11",
			RuntimeID:  id + "-0123456789",
			LastStatus: "RUNNING", NetworkInterfaces: []shapes.NetworkInterface{
				{AttachmentID: got.Attachments[0].ID, IPv4: "10.42.0.4"},
			},
			HealthStatus: "UNKNOWN", CPU: "0",
		}},
		CPU: "256", CreatedAt: shapes.At(planeStart), DesiredStatus: "RUNNING", EnableExecuteCommand: true,
		Group: "family:web", HealthStatus: "UNKNOWN",
		LastStatus: "RUNNING", LaunchType: "FARGATE", Memory: "512",
		Overrides: shapes.Overrides{
			Containers: []shapes.ContainerOverride{{Name: "app"}}, Accelerators: []map[string]any{},
		},
		PlatformVersion: "1.4.0", PlatformFamily: "Linux", PullStartedAt: at, PullStoppedAt: at, StartedAt: at,
		StartedBy: "me",
		Tags:      []shapes.Tag{{Key: "one", Value: "two"}}, TaskARN: task,
		TaskDefinitionARN: planeAccount + "task-definition/web:1", Version: 3,
		EphemeralStorage: &shapes.EphemeralStorage{SizeInGiB: 20}, FargateStorage: &shapes.EphemeralStorage{
			SizeInGiB: 20,
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	l := w.launches[id]
	testkit.Equal(t, `ContainerARNs["app"]`, l.ContainerARNs["app"], arn)
	testkit.Equal(t, "Cluster", l.Cluster, "default")
	testkit.Equal(t, "Service", l.Service, "")
}

// Tasks have those of every cluster by creation, stopped ones for an hour, as DescribeTasks shows
// them but without its delays.
func TestTasksOfAllClusters(t *testing.T) {
	t.Parallel()
	w := newPlaneFixture(t, func(o *controlplane.Options) {
		o.Lag = controlplane.Lag{New: time.Hour, Interface: time.Hour, Tags: time.Hour}
	})
	if _, err := w.CreateCluster(w.call(), shapes.CreateClusterInput{ClusterName: "other"}); err != nil {
		t.Fatal(err)
	}
	ids := append(
		w.run(func(in *shapes.RunTaskInput) { in.Cluster, in.LaunchType = "other", "FARGATE" }),
		w.run(func(in *shapes.RunTaskInput) { in.Tags = []shapes.Tag{{Key: "a", Value: "b"}} })...)
	ids = append(ids, w.run(nil)...)
	w.start(ids[0])
	w.end(ids[0], 3)
	w.start(ids[1])
	words := func(after time.Duration) (words []string) {
		for _, task := range w.Tasks(planeStart.Add(after)) {
			words = append(words, fmt.Sprintf("%s %s %d tags, reported %s", task.ID(), task.LastStatus, len(task.Tags),
				task.Report.View.KnownStatus))
		}
		return words
	}
	later := []string{ids[1] + " RUNNING 1 tags, reported RUNNING", ids[2] + " PROVISIONING 0 tags, reported "}
	if d := cmp.Diff(append([]string{ids[0] + " STOPPED 0 tags, reported STOPPED"}, later...),
		words(time.Hour-time.Second)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff(later, words(time.Hour)); d != "" {
		t.Errorf("after an hour (-want +got):\n%s", d)
	}
	w.now = planeStart.Add(time.Hour)
	if d := cmp.Diff(w.describe(ids[1]), w.Tasks(w.now)[0].Task); d != "" {
		t.Errorf("differs from DescribeTasks (-want +got):\n%s", d)
	}
}

func TestStoppedTasksAreSeenForAnHour(t *testing.T) {
	t.Parallel()
	w := newPlaneFixture(t, nil)
	id := w.run(nil)[0]
	w.start(id)
	w.end(id, 0)
	w.now = w.now.Add(time.Hour - time.Second)
	if got := w.list(shapes.ListTasksInput{DesiredStatus: "STOPPED"}); len(got) != 1 ||
		w.describe(id).LastStatus != shapes.Stopped {
		t.Errorf("after 59 minutes the list is %q", got)
	}
	w.now = w.now.Add(time.Second)
	out, err := w.DescribeTasks(w.call(), shapes.DescribeTasksInput{Tasks: []string{id}})
	want := []shapes.Failure{{ARN: planeAccount + "task/default/" + id, Reason: "MISSING"}}
	d := cmp.Diff(want, out.Failures)
	if err != nil {
		t.Fatalf("after an hour: %v (-want +got):\n%s", err, d)
	}
	if d != "" {
		t.Errorf("after an hour: %v (-want +got):\n%s", err, d)
	}
	testkit.Equal(t, "after an hour: len(w.list(shapes.ListTasksInput{DesiredStatus: \"STOPPED\"}))",
		len(w.list(shapes.ListTasksInput{DesiredStatus: "STOPPED"})), 0)
}

func TestStopTask(t *testing.T) {
	t.Parallel()
	w := newPlaneFixture(t, nil)
	id := w.run(func(in *shapes.RunTaskInput) { in.PropagateTags = "TASK_DEFINITION" })[0]
	w.start(id)
	if tags := w.describe(id).Tags; len(tags) != 1 {
		t.Errorf("tags %v", tags)
	}
	first, err := w.StopTask(w.call(), shapes.StopTaskInput{Task: planeAccount + "task/default/" + id})
	if err != nil {
		t.Fatalf("%+v, %v", first.Task, err)
	}
	testkit.Equal(t, "Task.DesiredStatus", first.Task.DesiredStatus, shapes.Stopped)
	testkit.Equal(t, "Task.LastStatus", first.Task.LastStatus, shapes.Running)
	testkit.Equal(t, "Task.StoppedReason", first.Task.StoppedReason, "Task stopped by user")
	testkit.Equal(t, "Task.StopCode", first.Task.StopCode, "UserInitiated")
	if first.Task.StoppingAt.IsZero() {
		t.Errorf("%+v, %v", first.Task, err)
	}
	testkit.Equal(t, "len(first.Task.Tags)", len(first.Task.Tags), 0)
	// It leaves the default list while it drains.
	if got := w.list(shapes.ListTasksInput{}); len(got) != 0 {
		t.Errorf("listed as RUNNING: %q", got)
	}
	again, err := w.StopTask(w.call(), shapes.StopTaskInput{Task: id, Reason: "other"})
	if err != nil {
		t.Fatalf("second stop: %+v, %v, %q", again.Task, err, w.stops)
	}
	testkit.Equal(t, "second stop: Task.StoppedReason", again.Task.StoppedReason, "Task stopped by user")
	testkit.Equal(t, "second stop: len(w.stops)", len(w.stops), 1)
	_, err = w.StopTask(w.call(), shapes.StopTaskInput{Task: "0123456789abcdef0123456789abcdef"})
	testkit.WantError[*shapes.Error](t, err, "InvalidParameterException: The referenced task was not found.")
}

func TestAnswersMayBeLate(t *testing.T) {
	t.Parallel()
	w := newPlaneFixture(t, func(o *controlplane.Options) {
		o.Lag = controlplane.Lag{New: time.Second, Tags: 3 * time.Second, Lists: 5 * time.Second}
	})
	id := w.run(func(in *shapes.RunTaskInput) { in.Tags = []shapes.Tag{{Key: "a"}} })[0]
	w.start(id)
	if out, err := w.DescribeTasks(w.call(), shapes.DescribeTasksInput{Tasks: []string{id}}); err != nil ||
		len(out.Failures) != 1 {
		t.Errorf("a new task is found at once: %+v, %v", out, err)
	}
	w.now = planeStart.Add(2 * time.Second)
	if tags := w.describe(id).Tags; len(tags) != 0 {
		t.Errorf("tags after 2 s: %v", tags)
	}
	if out, err := w.ListTagsForResource(w.call(),
		shapes.ResourceInput{ResourceARN: planeAccount + "task/default/" + id}); err != nil || len(out.Tags) != 0 {
		t.Errorf("tags after 2 s: %v, %v", out, err)
	}
	w.now = planeStart.Add(4 * time.Second)
	if tags := w.describe(id).Tags; len(tags) != 1 || len(w.list(shapes.ListTasksInput{})) != 0 {
		t.Errorf("after 4 s: tags %v, list %q", tags, w.list(shapes.ListTasksInput{}))
	}
	w.now = planeStart.Add(5 * time.Second)
	if len(w.list(shapes.ListTasksInput{})) != 1 {
		t.Error("not listed after 5 s")
	}
	w.now = planeStart.Add(10 * time.Second)
	if _, err := w.StopTask(w.call(), shapes.StopTaskInput{Task: id}); err != nil {
		t.Fatal(err)
	}
	w.now = planeStart.Add(14 * time.Second)
	if len(w.list(shapes.ListTasksInput{})) != 1 || w.describe(id).DesiredStatus != shapes.Stopped {
		t.Error("a list of 5 s ago knows that the task stops")
	}
	w.now = planeStart.Add(15 * time.Second)
	if got := w.list(shapes.ListTasksInput{DesiredStatus: "STOPPED"}); len(got) != 1 {
		t.Errorf("%q", got)
	}
}
