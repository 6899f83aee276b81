package cluster

import (
	"errors"
	"path"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/host"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// openRegion opens a region that has an image with a shell and the task definition web, whose
// container runs until it is stopped.
func openRegion(t *testing.T, o RegionOptions) *Region {
	t.Helper()
	o.Log = hclog.NewNullLogger()
	o.Cluster = Options{
		Name: "default", Region: "us-east-1", Account: "123456789012", Subnet: "10.42.0.0/24", Dir: t.TempDir(), Log: o.Log,
		Images: map[string]runtime.Image{"shell": {Name: "shell", Programs: map[string]string{"/bin/sh": "/bin/sh"}}},
	}
	r, err := OpenRegion(o)
	if missing, ok := errors.AsType[*host.MissingError](err); ok {
		testkit.Missing(t, missing.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	_, err = r.Plane().RegisterTaskDefinition(r.Call(), shapes.RegisterTaskDefinitionInput{Document: []byte(`{"family": "web", "networkMode": "awsvpc",
		"requiresCompatibilities": ["FARGATE"], "cpu": "256", "memory": "512",
		"containerDefinitions": [{"name": "app", "image": "shell", "entryPoint": ["/bin/sh", "-c"], "command": ["while :; do read x; done"]}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// runWeb starts a task of web.
func runWeb(r *Region, role string) error {
	_, err := r.Plane().RunTask(r.Call(), shapes.RunTaskInput{
		TaskDefinition: "web", Overrides: shapes.Overrides{TaskRoleARN: role},
		NetworkConfiguration: &shapes.NetworkConfiguration{AWSVPC: &shapes.VPCConfiguration{Subnets: []string{"subnet-1"}}},
	})
	return err
}

// What a caller of Started has learned of a task, the control plane has, too.
func TestTaskIsReportedBeforeStarted(t *testing.T) {
	t.Parallel()
	starts := make(chan TaskStart, 2)
	r := openRegion(t, RegionOptions{Started: func(start TaskStart) { starts <- start }})
	for _, role := range []string{"", "arn:aws:iam::123456789012:role/nobody"} {
		if err := runWeb(r, role); err != nil {
			t.Fatal(err)
		}
		start := <-starts
		tasks := r.Plane().Tasks(time.Now())
		last := tasks[len(tasks)-1]
		testkit.Equal(t, "role "+role+": name", last.Report.Name, start.Name)
		testkit.Equal(t, "role "+role+": ID", last.ID(), start.Launch.ID)
		if last.LastStatus == shapes.Provisioning {
			t.Errorf("role %q: %s %s is still %s", role, start.Name, last.ID(), last.LastStatus)
		}
		if failed := role != ""; failed != (start.Err != nil) || failed != (last.DesiredStatus == shapes.Stopped) {
			t.Errorf("role %q: started with %v, reported %s", role, start.Err, last.LastStatus)
		}
	}
}

// Drain stops a task that RunTask has accepted and of which nothing exists yet.
func TestDrainStopsTasksThatAreBeingMade(t *testing.T) {
	t.Parallel()
	making, release, stopping := make(chan struct{}), make(chan struct{}), make(chan struct{})
	r := openRegion(t, RegionOptions{
		Name: func(controlplane.Launch) string {
			close(making)
			<-release
			return "slow"
		},
		Observe: func(task shapes.Task, _ time.Time) {
			if task.DesiredStatus == shapes.Stopped && task.LastStatus == shapes.Provisioning {
				close(stopping)
			}
		},
	})
	ran := make(chan error, 1)
	go func() { ran <- runWeb(r, "") }()
	<-making
	drained := make(chan error, 1)
	go func() { drained <- r.Drain(t.Context(), "draining") }()
	select {
	case <-stopping:
	case err := <-drained:
		t.Errorf("Drain did not wait for the task: %v", err)
		drained <- err
	}
	close(release)
	if err := errors.Join(<-ran, <-drained); err != nil {
		t.Error(err)
	}
	tasks := r.Plane().Tasks(time.Now())
	if len(tasks) != 1 {
		t.Fatalf("tasks after Drain: %+v, want one", tasks)
	}
	testkit.Equal(t, "name", tasks[0].Report.Name, "slow")
	testkit.Equal(t, "last status", tasks[0].LastStatus, shapes.Stopped)
	if v := tasks[0].Report.View; v.StopCode != "UserInitiated" || v.StoppedReason != "draining" {
		t.Errorf("stopped by %s: %s", v.StopCode, v.StoppedReason)
	}
}

// The end of a whole run waits for no poll of the agent, while StopTask does.
func TestDrainWaitsForNoPoll(t *testing.T) {
	t.Parallel()
	r := openRegion(t, RegionOptions{})
	r.launcher.cluster.options.GatePeriod = time.Hour
	_, err := r.Plane().RegisterTaskDefinition(r.Call(), shapes.RegisterTaskDefinitionInput{Document: []byte(`{"family": "web", "networkMode": "awsvpc",
		"requiresCompatibilities": ["FARGATE"], "cpu": "256", "memory": "512", "containerDefinitions": [
			{"name": "setup", "image": "shell", "essential": false, "entryPoint": ["/bin/sh", "-c"], "command": ["trap 'exit 0' TERM; while :; do :; done"]},
			{"name": "app", "image": "shell", "entryPoint": ["/bin/sh"], "dependsOn": [{"containerName": "setup", "condition": "SUCCESS"}]}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	if err := runWeb(r, ""); err != nil {
		t.Fatal(err)
	}
	id := path.Base(r.Plane().Tasks(time.Now())[0].TaskARN)
	testkit.Eventually(t, "setup runs", func() bool {
		task := r.launcher.task(id)
		if task == nil {
			return false
		}
		c, _ := task.View().Container("setup")
		return c.KnownStatus == scheduler.StatusRunning
	})
	task := r.launcher.task(id)
	if _, err := r.Plane().StopTask(r.Call(), shapes.StopTaskInput{Task: id}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the task is to stop", func() bool { return task.View().DesiredStatus == scheduler.StatusStopped })
	if c, _ := task.View().Container("setup"); !c.SignalledAt.IsZero() {
		t.Errorf("setup was signalled during the poll, at %s", c.SignalledAt)
	}
	if err := r.Drain(t.Context(), ""); err != nil {
		t.Error(err)
	}
}
