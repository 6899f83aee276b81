package command

import (
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/control"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

func TestTable(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 17, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) shapes.Time { return shapes.At(now.Add(-d)) }
	code := 137
	at := func(address string) []shapes.NetworkInterface { return []shapes.NetworkInterface{{IPv4: address}} }
	rollout := func(state, reason string) []shapes.Deployment {
		return []shapes.Deployment{{RolloutState: state, RolloutStateReason: reason}}
	}
	s := control.State{
		Tasks: []control.Task{
			{Name: "web", Task: shapes.Task{LastStatus: "RUNNING", DesiredStatus: "RUNNING", HealthStatus: "HEALTHY", StartedAt: ago(90 * time.Second)}, Containers: []control.Container{
				{Container: shapes.Container{Name: "web", LastStatus: "RUNNING", HealthStatus: "HEALTHY", NetworkInterfaces: at("10.42.0.4")}, HealthCheck: true, StartedAt: ago(95 * time.Second).Time},
				{Container: shapes.Container{Name: "sidecar-proxy", LastStatus: "RUNNING", HealthStatus: "UNKNOWN"}, StartedAt: ago(3*time.Hour + 1200*time.Millisecond).Time, RestartCount: 2},
			}},
			{Name: "job", Task: shapes.Task{LastStatus: "PENDING", DesiredStatus: "RUNNING", HealthStatus: "UNKNOWN"}, Containers: []control.Container{
				{Container: shapes.Container{Name: "job", LastStatus: "PENDING", HealthStatus: "UNKNOWN", NetworkInterfaces: at("10.42.0.5")}, Waiting: "waits for db HEALTHY"},
			}},
			{Name: "api-1", Task: shapes.Task{LastStatus: "RUNNING", DesiredStatus: "STOPPED", HealthStatus: "UNKNOWN", StartedAt: ago(time.Minute), StopCode: "UserInitiated", StoppedReason: "Task stopped by user"}, Containers: []control.Container{
				{
					Container: shapes.Container{Name: "api", LastStatus: "STOPPED", HealthStatus: "UNKNOWN", ExitCode: &code, Reason: "OutOfMemoryError: Container killed due to memory usage", NetworkInterfaces: at("10.42.0.6")},
					StartedAt: ago(time.Minute).Time, FinishedAt: ago(time.Second).Time,
				},
			}},
			{Name: "none", Task: shapes.Task{LastStatus: "STOPPED", DesiredStatus: "STOPPED", HealthStatus: "UNKNOWN", StoppedAt: ago(time.Hour), StoppedReason: "no address"}},
		},
		Services: []shapes.Service{
			{ServiceName: "api", Status: "ACTIVE", DesiredCount: 2, RunningCount: 1, PendingCount: 1, Deployments: rollout("IN_PROGRESS", "")},
			{ServiceName: "shop", Status: "ACTIVE", DesiredCount: 1, RunningCount: 1, Deployments: rollout("COMPLETED", "")},
			{ServiceName: "bad", Status: "ACTIVE", DesiredCount: 1, Deployments: rollout("FAILED", "tasks failed to start")},
		},
	}
	testkit.Golden(t, "ps.txt", table(s, now))
	testkit.Golden(t, "ps-nothing.txt", table(control.State{}, now))
}
