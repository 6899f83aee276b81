package control

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

func TestTaskIsThatOfTheAPIWithNameAndContainerFacts(t *testing.T) {
	t.Parallel()
	started := time.Date(2026, 3, 2, 17, 0, 0, 0, time.UTC)
	app, side := shapes.Container{Name: "app", HealthStatus: "HEALTHY"}, shapes.Container{
		Name: "side", HealthStatus: "UNKNOWN",
	}
	shape := shapes.Task{TaskARN: "arn", LastStatus: "RUNNING", Containers: []shapes.Container{app, side}}
	stored := shape
	stored.Overrides.CPU = "256"
	got := task(controlplane.ReportedTask{Task: stored,
		Report: controlplane.Report{Name: "web", View: scheduler.View{Containers: []scheduler.ContainerView{
			{Name: "app", KnownStatus: "RUNNING", Essential: true, Health: &scheduler.HealthView{Status: "UNHEALTHY"},
				StartedAt: started, RestartCount: new(2)},
			{Name: "side", KnownStatus: "STOPPED", StartedAt: started,
				FinishedAt: started.Add(time.Second + time.Nanosecond)},
		}}}})
	want := Task{Task: shape, Name: "web", Containers: []Container{
		{Container: app, Essential: true, HealthCheck: true, StartedAt: started, RestartCount: 2,
			Waiting: "is UNHEALTHY"},
		{Container: side, StartedAt: started, FinishedAt: started.Add(time.Second + time.Nanosecond)},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStateHasTheLastStoppedTasks(t *testing.T) {
	t.Parallel()
	tasks := []Task{{Name: "first", Task: shapes.Task{LastStatus: "RUNNING"}}}
	for i := range maxStopped + 3 {
		tasks = append(tasks, Task{Name: fmt.Sprint(i), Task: shapes.Task{LastStatus: "STOPPED"}})
	}
	if got := recent(tasks[:maxStopped]); len(got) != maxStopped || got[1].Name != "0" {
		t.Errorf("of few %d are left, the second is %s", len(got), got[1].Name)
	}
	got := recent(tasks)
	if len(got) != maxStopped+1 {
		t.Fatalf("of too many %d are left, the first are %s and %s", len(got), got[0].Name, got[1].Name)
	}
	testkit.Equal(t, "got[0].Name", got[0].Name, "first")
	testkit.Equal(t, "got[1].Name", got[1].Name, "3")
}

func TestEnvironmentLeadsToTheRun(t *testing.T) {
	t.Parallel()
	theirs := []string{
		"PATH=/bin", "AWS_PROFILE=prod", "AWS_SESSION_TOKEN=x", "AWS_REGION=eu-west-1", "https_proxy=http://proxy",
		"HTTP_PROXY=p",
		"CONSUL_HTTP_ADDR=http://127.0.0.1:8500", "CONSUL_HTTP_SSL=true", "AWS_CA_BUNDLE=/ca", "EMPTY=",
	}
	own := []string{"AWS_REGION=us-east-1", "CONSUL_HTTP_ADDR=http://10.42.0.254:8500"}
	want := []string{
		"PATH=/bin", "AWS_CA_BUNDLE=/ca", "EMPTY=", "AWS_REGION=us-east-1", "CONSUL_HTTP_ADDR=http://10.42.0.254:8500",
	}
	if diff := cmp.Diff(want, environment(theirs, own)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(theirs) != 10 || theirs[1] != "AWS_PROFILE=prod" {
		t.Errorf("the caller's is changed: %q", theirs)
	}
}
