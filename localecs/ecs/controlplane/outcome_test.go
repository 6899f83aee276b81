package controlplane_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

func TestServiceDeploymentsEnd(t *testing.T) {
	t.Parallel()
	const (
		failed   = "STOPPED Service deployment failed because the circuit breaker threshold was exceeded."
		reason   = " Service deployment rolled back because the circuit breaker threshold was exceeded."
		replaced = "STOPPED A newer service deployment replaced this one."
		alone    = "ROLLBACK_FAILED No rollback candidate was found to run the rollback."
	)
	good := (*planFixture).steady
	bad := func(w *planFixture) {
		for range 3 {
			w.look()
			w.fail()
			w.look()
			w.now = w.now.Add(time.Hour) // beyond any back-off
		}
	}
	for name, c := range map[string]struct {
		breaker shapes.CircuitBreaker
		run     []func(*planFixture) // after the start of each deployment
		want    []string             // newest first
	}{
		"begun":    {run: []func(*planFixture){func(*planFixture) {}}, want: []string{"IN_PROGRESS"}},
		"good":     {run: []func(*planFixture){good}, want: []string{"SUCCESSFUL"}},
		"replaced": {run: []func(*planFixture){bad, good}, want: []string{"SUCCESSFUL", replaced}},
		"no breaker": {
			run: []func(*planFixture){good, bad}, want: []string{"IN_PROGRESS", "SUCCESSFUL"},
		},
		"no rollback": {
			breaker: shapes.CircuitBreaker{Enable: true},
			run:     []func(*planFixture){good, bad}, want: []string{failed, "SUCCESSFUL"},
		},
		"no candidate": {
			breaker: shapes.CircuitBreaker{Enable: true, Rollback: true},
			run:     []func(*planFixture){bad}, want: []string{alone},
		},
		"rolled back": {
			breaker: shapes.CircuitBreaker{Enable: true, Rollback: true},
			run:     []func(*planFixture){good, bad}, want: []string{"ROLLBACK_SUCCESSFUL" + reason, "SUCCESSFUL"},
		},
		"rolling back": {
			breaker: shapes.CircuitBreaker{Enable: true, Rollback: true},
			run: []func(*planFixture){good, func(w *planFixture) {
				w.end("t1")
				bad(w)
			}},
			want: []string{"ROLLBACK_IN_PROGRESS" + reason, "SUCCESSFUL"},
		},
		"failed twice": {
			breaker: shapes.CircuitBreaker{Enable: true, Rollback: true},
			run: []func(*planFixture){good, func(w *planFixture) {
				w.end("t1")
				bad(w)
				bad(w)
			}},
			want: []string{"ROLLBACK_FAILED" + reason, "SUCCESSFUL"},
		},
		"replaced while it rolls back": {
			breaker: shapes.CircuitBreaker{Enable: true, Rollback: true},
			run: []func(*planFixture){good, func(w *planFixture) {
				w.end("t1")
				bad(w)
			}, good},
			want: []string{"SUCCESSFUL", "ROLLBACK_FAILED" + reason, "SUCCESSFUL"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPlanFixture(t, 1, func(s *controlplane.Service) { s.Breaker = c.breaker })
			for i, run := range c.run {
				if i > 0 {
					w.Began(controlplane.NewDeployment(fmt.Sprintf("ecs-svc/%d", i+1), w.now))
				}
				run(w)
			}
			if d := cmp.Diff(c.want, w.Outcomes()); d != "" {
				t.Errorf("service deployments (-want +got):\n%s", d)
			}
		})
	}
}

func TestServiceRemembersItsLastDeployments(t *testing.T) {
	t.Parallel()
	w := newPlanFixture(t, 1, nil)
	for i := range 120 {
		w.Began(controlplane.NewDeployment(fmt.Sprintf("ecs-svc/%d", i+2), w.now))
	}
	if got := len(w.Outcomes()); got != 100 {
		t.Errorf("it remembers %d, want 100", got)
	}
}
