package scenario_test

import (
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/scenario"
)

func TestSteadyAndSoFar(t *testing.T) {
	t.Parallel()
	rollout := func(states ...string) (all []shapes.Deployment) {
		for _, s := range states {
			all = append(all, shapes.Deployment{ID: "d", RolloutState: s, RolloutStateReason: "because " + s})
		}
		return all
	}
	for name, tt := range map[string]struct {
		service        shapes.Service
		steady         bool
		problem, soFar string
	}{
		"new": {shapes.Service{Status: "ACTIVE", DesiredCount: 2, PendingCount: 1,
			Deployments: rollout("IN_PROGRESS")}, false, "", "0 of 2 running, 1 pending"},
		"complete": {shapes.Service{Status: "ACTIVE", DesiredCount: 2, RunningCount: 2,
			Deployments: rollout("COMPLETED")}, true, "", "2 of 2 running"},
		"of nothing": {shapes.Service{Status: "ACTIVE", Deployments: rollout("COMPLETED")}, true, "",
			"0 of 0 running"},
		"not scaled in": {shapes.Service{Status: "ACTIVE", DesiredCount: 1, RunningCount: 2,
			Deployments: rollout("COMPLETED")}, false, "", "2 of 1 running"},
		"rolling over": {shapes.Service{Status: "ACTIVE", DesiredCount: 2, RunningCount: 2,
			Deployments: rollout("COMPLETED", "COMPLETED")}, false, "", "2 of 2 running, 2 deployments"},
		"failed": {shapes.Service{Status: "ACTIVE", DesiredCount: 2, Deployments: rollout("FAILED")}, false,
			"deployment d: because FAILED", "0 of 2 running"},
		"rolled back": {shapes.Service{Status: "ACTIVE", DesiredCount: 1, RunningCount: 1,
			Deployments: rollout("IN_PROGRESS", "FAILED")}, false, "deployment d: because FAILED",
			"1 of 1 running, 2 deployments"},
		"failed before": {shapes.Service{Status: "ACTIVE", DesiredCount: 1, RunningCount: 1,
			Deployments: []shapes.Deployment{
				{ID: "new", RolloutState: "IN_PROGRESS", CreatedAt: shapes.At(time.Unix(2, 0))},
				{ID: "old", RolloutState: "FAILED", CreatedAt: shapes.At(time.Unix(1, 0))},
			}}, false, "", "1 of 1 running, 2 deployments"},
		"deleted": {shapes.Service{Status: "DRAINING", RunningCount: 1, Deployments: rollout("COMPLETED")}, false, "",
			"1 of 0 running"},
		"gone": {shapes.Service{Status: "INACTIVE"}, true, "", "0 of 0 running"},
	} {
		steady, err := tt.service.Steady()
		problem := ""
		if err != nil {
			problem = err.Error()
		}
		soFar := scenario.SoFar(tt.service)
		testkit.Equal(t, name+": steady", steady, tt.steady)
		testkit.Equal(t, name+": problem", problem, tt.problem)
		testkit.Equal(t, name+": soFar", soFar, tt.soFar)
	}
}
