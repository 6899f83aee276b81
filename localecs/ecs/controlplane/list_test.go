package controlplane_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

func TestListTasksFilters(t *testing.T) {
	t.Parallel()
	w := newPlaneFixture(t, nil)
	w.register(planeTask("api"))
	if _, err := w.CreateCluster(w.call(), shapes.CreateClusterInput{ClusterName: "other"}); err != nil {
		t.Fatal(err)
	}
	web := w.run(func(in *shapes.RunTaskInput) { in.StartedBy = "me" })[0]
	api := w.run(func(in *shapes.RunTaskInput) { in.TaskDefinition = "api" })[0]
	w.run(func(in *shapes.RunTaskInput) { in.Cluster, in.LaunchType = "other", "FARGATE" })
	if _, err := w.CreateService(w.call(), input(func(in *shapes.ServiceInput) {
		in.ServiceName, in.DesiredCount = "front", new(0)
	})); err != nil {
		t.Fatal(err)
	}
	served, err := w.RunForService(w.call(), "front", planeInput(func(in *shapes.RunTaskInput) {
		in.StartedBy, in.Group = "ecs-svc/1", "service:front"
	}))
	if err != nil {
		t.Fatal(err)
	}
	front := idOf(served.Tasks[0].TaskARN)
	w.happen(api, scheduler.StopRequested{Reason: "x"})
	for _, tt := range []struct {
		name string
		in   shapes.ListTasksInput
		want []string
	}{
		{"default", shapes.ListTasksInput{}, []string{web, front}},
		{"stopped", shapes.ListTasksInput{DesiredStatus: "STOPPED"}, []string{api}},
		{"none is pending", shapes.ListTasksInput{DesiredStatus: "PENDING"}, []string{}},
		{"family", shapes.ListTasksInput{Family: "api", DesiredStatus: "STOPPED"}, []string{api}},
		{"started by", shapes.ListTasksInput{StartedBy: "me"}, []string{web}},
		{"service", shapes.ListTasksInput{ServiceName: "front"}, []string{front}},
		{"service ARN", shapes.ListTasksInput{ServiceName: planeAccount + "service/default/front"}, []string{front}},
		{"launch type", shapes.ListTasksInput{LaunchType: "FARGATE"}, []string{web, front}},
		{"no EC2", shapes.ListTasksInput{LaunchType: "EC2"}, []string{}},
	} {
		if d := cmp.Diff(tt.want, w.list(tt.in)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
	for want, in := range map[string]shapes.ListTasksInput{
		"InvalidParameterException: startedBy must be the only filter.": {StartedBy: "me",
			Family: "web"},
		"InvalidParameterException: The referenced container instance was not found.": {ContainerInstance: "x"},
		"InvalidParameterException: maxResults must be between 1 and 100.": {
			PageInput: shapes.PageInput{MaxResults: new(101)},
		},
		"InvalidParameterException: Invalid token":     {PageInput: shapes.PageInput{NextToken: "x"}},
		"ClusterNotFoundException: Cluster not found.": {Cluster: "nowhere"},
		"ServiceNotFoundException: Service not found.": {ServiceName: "back"},
		"InvalidParameterException: Invalid identifier: Expected a service, got a cluster.": {
			ServiceName: planeAccount + "cluster/default",
		},
	} {
		_, err := w.ListTasks(w.call(), in)
		testkit.WantError[*shapes.Error](t, err, want)
	}
}

// pages reads a whole list as the aws program does.
func (w *planeFixture) pages(in shapes.ListTasksInput, each func(page int)) (arns []string) {
	w.t.Helper()
	for n := 1; ; n++ {
		out, err := w.ListTasks(w.call(), in)
		if err != nil {
			w.t.Fatal(err)
		}
		arns = append(arns, out.TaskARNs...)
		if in.NextToken = out.NextToken; in.NextToken == "" {
			return arns
		}
		each(n)
	}
}

func TestPagesNeitherRepeatNorHide(t *testing.T) {
	t.Parallel()
	w := newPlaneFixture(t, nil)
	var ids []string
	for range 25 {
		ids = append(ids, w.run(func(in *shapes.RunTaskInput) { in.Count = new(10) })...)
	}
	// Between the pages one that was listed goes, one that was not goes, and one
	// comes.
	var late string
	arns := w.pages(shapes.ListTasksInput{}, func(page int) {
		if page == 1 {
			w.happen(ids[99], scheduler.StopRequested{})
			w.happen(ids[240], scheduler.StopRequested{})
			late = w.run(nil)[0]
		}
	})
	var got []string
	for _, a := range arns {
		got = append(got, idOf(a))
	}
	want := append(slices.Delete(slices.Clone(ids), 240, 241), late)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestTokensAreForTheirListAndADay(t *testing.T) {
	t.Parallel()
	w := newPlaneFixture(t, nil)
	w.run(func(in *shapes.RunTaskInput) { in.Count = new(3) })
	one := shapes.ListTasksInput{PageInput: shapes.PageInput{MaxResults: new(1)}}
	out, err := w.ListTasks(w.call(), one)
	if err != nil {
		t.Fatalf("%+v, %v", out, err)
	}
	if len(out.TaskARNs) != 1 || out.NextToken == "" {
		t.Fatalf("%+v, %v", out, err)
	}
	one.NextToken = out.NextToken
	other := one
	other.Family = "web"
	_, err = w.ListTasks(w.call(), other)
	testkit.WantError[*shapes.Error](t, err, "InvalidParameterException: Invalid token")
	w.now = w.now.Add(24 * time.Hour)
	if _, err := w.ListTasks(w.call(), one); err != nil {
		t.Error(err)
	}
	w.now = w.now.Add(time.Second)
	_, err = w.ListTasks(w.call(), one)
	testkit.WantError[*shapes.Error](t, err, "InvalidParameterException: Invalid token")
}

func TestDescribeTasks(t *testing.T) {
	t.Parallel()
	w := newPlaneFixture(t, nil)
	id := w.run(nil)[0]
	if _, err := w.CreateCluster(w.call(), shapes.CreateClusterInput{ClusterName: "other"}); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{id, planeAccount + "task/default/" + id, planeAccount + "task/" + id} {
		out, err := w.DescribeTasks(w.call(),
			shapes.DescribeTasksInput{Cluster: planeAccount + "cluster/default", Tasks: []string{ref}})
		if err != nil {
			t.Fatalf("%s: %+v, %v", ref, out, err)
		}
		testkit.Equal(t, ref+": len(out.Tasks)", len(out.Tasks), 1)
		testkit.Equal(t, ref+": len(out.Failures)", len(out.Failures), 0)
	}
	const unknown = "0123456789abcdef0123456789abcdef"
	out, err := w.DescribeTasks(w.call(), shapes.DescribeTasksInput{Tasks: []string{unknown, id}})
	d := cmp.Diff([]shapes.Failure{{ARN: planeAccount + "task/default/" + unknown, Reason: "MISSING"}},
		out.Failures)
	if err != nil {
		t.Fatalf("%v (-want +got):\n%s", err, d)
	}
	if d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	testkit.Equal(t, "len(out.Tasks)", len(out.Tasks), 1)
	if out, err := w.DescribeTasks(w.call(),
		shapes.DescribeTasksInput{Cluster: "other", Tasks: []string{id}}); err != nil || len(out.Failures) != 1 {
		t.Errorf("in another cluster: %+v, %v", out, err)
	}
	for want, in := range map[string]shapes.DescribeTasksInput{
		"InvalidParameterException: Tasks cannot be empty.":                 {},
		"InvalidParameterException: taskIds can have at most 100 items.":    {Tasks: make([]string, 101)},
		"InvalidParameterException: taskId length should be one of [32,36]": {Tasks: []string{"None"}},
		"InvalidParameterException: Invalid identifier: Identifier is for cluster default. Your cluster is other": {
			Cluster: "other", Tasks: []string{planeAccount + "task/default/" + id}},
		"InvalidParameterException: Invalid identifier: Account 210987654321. Your account is 123456789012.": {
			Tasks: []string{"arn:aws:ecs:us-east-1:210987654321:task/default/" + id}},
		"InvalidParameterException: 1 validation error detected: Value 'ALL' at 'include' failed to satisfy " +
			"constraint: Member must satisfy enum value set: [TAGS]": {
			Tasks: []string{id}, Include: []string{"ALL"}},
	} {
		_, err := w.DescribeTasks(w.call(), in)
		testkit.WantError[*shapes.Error](t, err, want)
	}
}

// TestTenThousandTasks reads them as a controller does: without a process, and
// with two calls for each hundred.
func TestTenThousandTasks(t *testing.T) {
	t.Parallel()
	w := newPlaneFixture(t, nil)
	const tasks = 10_000
	like := w.run(nil)[0]
	w.start(like)
	alike := w.reportOf(like)
	w.end(like, 0)
	for range tasks / 10 {
		for _, id := range w.run(func(in *shapes.RunTaskInput) { in.Count = new(10) }) {
			w.launches[id].Report(alike, w.now)
		}
	}
	calls, running := 0, 0
	var part []string
	read := func() {
		out, err := w.DescribeTasks(w.call(), shapes.DescribeTasksInput{Tasks: part, Include: []string{"TAGS"}})
		if err != nil || len(out.Failures) != 0 {
			t.Fatalf("%+v, %v", out.Failures, err)
		}
		for _, task := range out.Tasks {
			if task.LastStatus == shapes.Running && len(task.Attachments[0].Details) == 5 {
				running++
			}
		}
		calls++
	}
	arns := w.pages(shapes.ListTasksInput{}, func(int) { calls++ })
	calls++
	for part = range slices.Chunk(arns, 100) {
		read()
	}
	if running != tasks || calls != 200 {
		t.Errorf("%d running tasks in %d calls", running, calls)
	}
	out, err := w.DescribeClusters(w.call(), shapes.DescribeClustersInput{})
	if err != nil || out.Clusters[0].RunningTasks != tasks {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestThereAreNoContainerInstances(t *testing.T) {
	t.Parallel()
	w := newPlaneFixture(t, nil)
	missing := []shapes.Failure{{ARN: planeAccount + "container-instance/default/x", Reason: "MISSING"}}
	started, err := w.StartTask(w.call(),
		shapes.ContainerInstancesInput{TaskDefinition: "web", ContainerInstances: []string{"x"}})
	d := cmp.Diff(missing, started.Failures)
	if err != nil {
		t.Fatalf("%v (-want +got):\n%s", err, d)
	}
	if d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	testkit.Equal(t, "len(started.Tasks)", len(started.Tasks), 0)
	described, err := w.DescribeContainerInstances(w.call(),
		shapes.ContainerInstancesInput{ContainerInstances: []string{planeAccount + "container-instance/default/x"}})
	if d := cmp.Diff(missing, described.Failures); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	listed, err := w.ListContainerInstances(w.call(), shapes.ContainerInstancesInput{})
	if err != nil {
		t.Fatalf("%+v, %v", listed, err)
	}
	if listed.ARNs == nil {
		t.Errorf("%+v, %v", listed, err)
	}
	testkit.Equal(t, "len(listed.ARNs)", len(listed.ARNs), 0)
	_, err1 := w.StartTask(w.call(), shapes.ContainerInstancesInput{TaskDefinition: "web"})
	_, err2 := w.StartTask(w.call(),
		shapes.ContainerInstancesInput{TaskDefinition: "nope", ContainerInstances: []string{"x"}})
	_, err3 := w.DescribeContainerInstances(w.call(), shapes.ContainerInstancesInput{})
	testkit.WantError[*shapes.Error](t, err1, "InvalidParameterException: Container instances cannot be empty.")
	testkit.WantError[*shapes.Error](t, err2, "ClientException: TaskDefinition not found.")
	testkit.WantError[*shapes.Error](t, err3, "InvalidParameterException: Container instance cannot be empty.")
}

func TestServiceTasks(t *testing.T) {
	t.Parallel()
	w := newPlaneFixture(t, nil)
	out, err := w.RunForService(w.call(), "front", planeInput(func(in *shapes.RunTaskInput) {
		in.Group, in.StartedBy, in.Tags = "service:front", "ecs-svc/1", []shapes.Tag{{Key: "a", Value: "b"}}
	}))
	if err != nil {
		t.Fatal(err)
	}
	id := idOf(out.Tasks[0].TaskARN)
	if l := w.launches[id]; l.Service != "front" {
		t.Errorf("launched for %q", l.Service)
	}
	w.run(nil)
	w.start(id)
	tasks := w.ServiceTasks(w.call(), "default", "front")
	if len(tasks) != 1 {
		t.Fatalf("%+v", tasks)
	}
	testkit.Equal(t, "tasks[0].Group", tasks[0].Group, "service:front")
	testkit.Equal(t, "tasks[0].StartedBy", tasks[0].StartedBy, "ecs-svc/1")
	testkit.Equal(t, "len(tasks[0].Tags)", len(tasks[0].Tags), 1)
	testkit.Equal(t, "tasks[0].LastStatus", tasks[0].LastStatus, shapes.Running)
	w.StopForService(w.call(), id, "Scaling activity initiated by (deployment ecs-svc/1)")
	w.StopForService(w.call(), id, "again")
	w.StopForService(w.call(), strings.Repeat("0", 32), "no such task")
	task := w.describe(id)
	testkit.Equal(t, "StopCode", task.StopCode, "ServiceSchedulerInitiated")
	testkit.Equal(t, "StoppedReason", task.StoppedReason, "Scaling activity initiated by (deployment ecs-svc/1)")
	testkit.Equal(t, "len(task.Tags)", len(task.Tags), 1)
	if d := cmp.Diff([]string{"ServiceSchedulerInitiated Scaling activity initiated by (deployment ecs-svc/1)"},
		w.stops); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
