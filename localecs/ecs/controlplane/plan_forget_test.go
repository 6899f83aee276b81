package controlplane

import (
	"fmt"
	"testing"
	"time"
)

// A deployment that lasts for long has had many tasks.
func TestUnlistedTasksAreRemoved(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 17, 0, 0, 0, time.UTC)
	s := Service{Name: "web", Desired: 1, MinHealthy: 100, Max: 200}
	s.Began(NewDeployment("ecs-svc/1", now))
	d := s.Deployments[0]
	for i := range 1000 {
		s.Reconcile([]Task{
			{ID: fmt.Sprint("new", i), Deployment: d.ID, Last: "RUNNING", Wanted: "RUNNING", Started: now},
			{ID: fmt.Sprint("failed", i), Deployment: d.ID, Last: "STOPPED", Wanted: "STOPPED",
				StopCode: "TaskFailedToStart"},
		}, now)
	}
	if n := len(d.counted) + len(d.healthy); n > 110 {
		t.Errorf("of 2000 tasks %d are held", n)
	}
	failed := d.FailedTasks
	s.Reconcile([]Task{{ID: "failed999", Deployment: d.ID, Last: "STOPPED", Wanted: "STOPPED",
		StopCode: "TaskFailedToStart"}}, now)
	if d.FailedTasks != failed {
		t.Error("a task that is still shown was counted again")
	}
}
