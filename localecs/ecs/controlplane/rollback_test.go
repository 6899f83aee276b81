package controlplane_test

import (
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// failures starts tasks and has them fail, one after the other.
func (w *planFixture) failures(n int) {
	w.t.Helper()
	for range n {
		w.want("due", w.look(), "+1")
		w.fail()
		w.look()
		w.now = w.now.Add(time.Hour) // beyond any back-off
	}
}

// What a deployment had against it is forgotten when a rollback returns to it: one
// more failure does not fail it at once.
func TestRollbackBeginsWithoutFailures(t *testing.T) {
	t.Parallel()
	w := newPlanFixture(t, 1, func(s *controlplane.Service) {
		s.Breaker = shapes.CircuitBreaker{Enable: true, Rollback: true}
	})
	w.steady()
	first := w.Deployments[0]
	w.end("t1")
	w.failures(2)
	if first.FailedTasks != 0 || first.Rollout != controlplane.Completed {
		t.Fatalf("before the update: %+v", first)
	}
	w.update()
	w.failures(2)
	w.want("the third", w.look(), "+1")
	w.fail()
	w.look()
	if w.Deployments[0] != first || first.Rollout != controlplane.InProgress {
		t.Fatalf("rolled back to %+v", w.Deployments[0])
	}
	if first.FailedTasks != 0 {
		t.Fatalf("rolled back to %+v", w.Deployments[0])
	}
	w.now = w.now.Add(time.Hour)
	w.look()
	w.fail()
	w.look()
	if first.Rollout != controlplane.InProgress || first.FailedTasks != 1 {
		t.Errorf("after one failure: %+v", first)
	}
}

// Deployment.failedTasks of the API reference: once a task runs successfully, it is 0 and not
// evaluated any more.
func TestCircuitBreakerIsForDeploymentsOfWhichNoTaskWasHealthy(t *testing.T) {
	t.Parallel()
	w := newPlanFixture(t, 2, func(s *controlplane.Service) {
		s.Breaker = shapes.CircuitBreaker{Enable: true, Rollback: true}
	})
	w.steady()
	w.update()
	w.want("new ones", w.look(), "+2")
	w.tasks[2].Last, w.tasks[2].Started = "RUNNING", w.now
	w.look()
	for range 5 {
		w.fail()
		w.look()
		w.now = w.now.Add(time.Hour) // beyond any back-off
		w.look()
	}
	d := w.Deployments[0]
	testkit.Equal(t, "ID", d.ID, "ecs-svc/2")
	testkit.Equal(t, "Rollout", d.Rollout, controlplane.InProgress)
	testkit.Equal(t, "FailedTasks", d.FailedTasks, 0)
}
