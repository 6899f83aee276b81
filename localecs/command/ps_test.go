package command

import (
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/control"
)

func TestTable(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 17, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	code := 137
	s := control.State{
		Tasks: []control.Task{
			{Name: "web", LastStatus: "RUNNING", DesiredStatus: "RUNNING", HealthStatus: "HEALTHY", Address: "10.42.0.4", StartedAt: ago(90 * time.Second), Containers: []control.Container{
				{Name: "web", LastStatus: "RUNNING", HealthStatus: "HEALTHY", StartedAt: ago(95 * time.Second)},
				{Name: "sidecar-proxy", LastStatus: "RUNNING", StartedAt: ago(3*time.Hour + 1200*time.Millisecond), RestartCount: 2},
			}},
			{Name: "job", LastStatus: "PENDING", DesiredStatus: "RUNNING", HealthStatus: "UNKNOWN", Address: "10.42.0.5", Containers: []control.Container{{Name: "job", LastStatus: "PENDING"}}},
			{Name: "api-1", LastStatus: "RUNNING", DesiredStatus: "STOPPED", HealthStatus: "UNKNOWN", Address: "10.42.0.6", StartedAt: ago(time.Minute), StopCode: "UserInitiated", StoppedReason: "Task stopped by user", Containers: []control.Container{
				{Name: "api", LastStatus: "STOPPED", StartedAt: ago(time.Minute), FinishedAt: ago(time.Second), ExitCode: &code, Reason: "OutOfMemoryError: Container killed due to memory usage"},
			}},
			{Name: "none", LastStatus: "STOPPED", DesiredStatus: "STOPPED", HealthStatus: "UNKNOWN", StoppedAt: ago(time.Hour), StoppedReason: "no address"},
		},
		Services: []control.Service{
			{Name: "api", DesiredCount: 2, RunningCount: 1, PendingCount: 1},
			{Name: "shop", DesiredCount: 1, RunningCount: 1, Steady: true},
			{Name: "bad", DesiredCount: 1, Failed: "tasks failed to start"},
		},
	}
	testkit.Golden(t, "ps.txt", table(s, now))
	testkit.Golden(t, "ps-nothing.txt", table(control.State{}, now))
}
