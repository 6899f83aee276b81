package cluster

import (
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/host"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// Drain stops a task that RunTask has accepted and of which nothing exists yet.
func TestDrainStopsTasksThatAreBeingMade(t *testing.T) {
	t.Parallel()
	making, release, stopping := make(chan struct{}), make(chan struct{}), make(chan struct{})
	r, err := OpenRegion(RegionOptions{
		Cluster: Options{
			Name: "default", Region: "us-east-1", Account: "123456789012", Subnet: "10.42.0.0/24", Dir: t.TempDir(), Log: hclog.NewNullLogger(),
			Images: map[string]runtime.Image{"shell": {Name: "shell", Programs: map[string]string{"/bin/sh": "/bin/sh"}}},
		},
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
		Log: hclog.NewNullLogger(),
	})
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
	ran := make(chan error, 1)
	go func() {
		_, err := r.Plane().RunTask(r.Call(), shapes.RunTaskInput{TaskDefinition: "web", NetworkConfiguration: &shapes.NetworkConfiguration{AWSVPC: &shapes.VPCConfiguration{Subnets: []string{"subnet-1"}}}})
		ran <- err
	}()
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
	tasks := r.Tasks()
	if len(tasks) != 1 || tasks[0].Task == nil || !tasks[0].over() {
		t.Fatalf("tasks after Drain: %+v", tasks)
	}
	if v := tasks[0].Task.View(); v.StopCode != "UserInitiated" || v.StoppedReason != "draining" {
		t.Errorf("stopped by %s: %s", v.StopCode, v.StoppedReason)
	}
}
