package controlplane_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// version is how the tasks of a deployment behave. Times are from RUNNING.
type version struct {
	neverRuns bool          // the image is missing
	checked   bool          // has a health check
	healthyIn time.Duration // 0 for never
	sickIn    time.Duration // UNHEALTHY, 0 for never
	crashIn   time.Duration // 0 for never
}

// good returns a version that works.
func good(checked bool) version { return version{checked: checked, healthyIn: 10 * time.Second} }

// rollout drives a service, second by second, whose first deployment has good tasks and the
// second those of v.
type rollout struct {
	*planFixture
	versions map[string]version
	started  int           // tasks of the second deployment
	failed   time.Duration // how long FAILED was shown
	least    int           // the fewest healthy tasks, after the update
	seen     map[string]bool
}

func (r *rollout) task(i int) {
	t := &r.tasks[i]
	v := r.versions[t.Deployment]
	age := r.now.Sub(t.Started)
	switch {
	case t.Last == "STOPPED":
	case t.Wanted == "STOPPED":
		t.Last = "STOPPED"
	case t.Last == "PENDING" && v.neverRuns:
		t.Last, t.Wanted, t.StopCode = "STOPPED", "STOPPED", "TaskFailedToStart"
	case t.Last == "PENDING":
		t.Last, t.Started = "RUNNING", r.now
		if v.checked {
			t.Health = "UNKNOWN"
		}
	case v.crashIn > 0 && age >= v.crashIn:
		r.end(t.ID)
	case v.checked && v.sickIn > 0 && age >= v.sickIn:
		t.Health = "UNHEALTHY"
	case v.checked && v.healthyIn > 0 && age >= v.healthyIn:
		t.Health = "HEALTHY"
	}
}

// run passes the time.
func (r *rollout) run(d time.Duration) {
	for end := r.now.Add(d); r.now.Before(end); r.now = r.now.Add(time.Second) {
		// Each task that has stopped was seen so once.
		r.tasks = slices.DeleteFunc(r.tasks, func(t controlplane.Task) bool { return r.seen[t.ID] })
		for _, t := range r.tasks {
			r.seen[t.ID] = t.Last == "STOPPED"
		}
		before := len(r.tasks)
		r.look()
		started := r.tasks[before:]
		for _, t := range started {
			if t.Deployment != "ecs-svc/1" {
				r.started++
			}
		}
		healthy := 0
		for i := range r.tasks {
			r.task(i)
			t := r.tasks[i]
			counts := t.Health == "HEALTHY"
			if !r.versions[t.Deployment].checked {
				counts = r.now.Sub(t.Started) >= r.HealthyAfter
			}
			if t.Running() && counts {
				healthy++
			}
		}
		r.least = min(r.least, healthy)
		if slices.ContainsFunc(r.Deployments, func(d *controlplane.Deployment) bool {
			return d.Rollout == controlplane.Failed
		}) {
			r.failed += time.Second
		}
	}
}

// A version whose tasks do not become healthy is never deployed, whatever the reason, the
// desired count, the percentages and the circuit breaker; one that works always is.
func TestOnlyAVersionThatWorksIsDeployed(t *testing.T) {
	t.Parallel()
	breakers := map[string]shapes.CircuitBreaker{
		"off": {}, "on": {Enable: true}, "rollback": {Enable: true, Rollback: true},
	}
	percentages := [][2]int{{100, 200}, {50, 100}, {0, 100}, {100, 150}}
	versions := map[string]version{
		"works":                     good(false),
		"works, checked":            good(true),
		"missing image":             {neverRuns: true},
		"crashes at once":           {crashIn: time.Second},
		"crashes":                   {crashIn: 30 * time.Second},
		"crashes before its check":  {checked: true, crashIn: 2 * time.Second},
		"unhealthy":                 {checked: true, sickIn: 5 * time.Second},
		"unhealthy, then crashes":   {checked: true, sickIn: 5 * time.Second, crashIn: 60 * time.Second},
		"health check never passes": {checked: true},
	}
	for name, v := range versions {
		for breakerName, breaker := range breakers {
			for _, percent := range percentages {
				for desired := 1; desired <= 3; desired++ {
					for _, checked := range []bool{false, true} {
						name := fmt.Sprintf("%s/%s/%v/%d/%v", name, breakerName, percent, desired, checked)
						t.Run(name, func(t *testing.T) {
							t.Parallel()
							testRollout(t, v, good(checked), breaker, percent, desired)
						})
					}
				}
			}
		}
	}
}

func testRollout(t *testing.T, v, old version, breaker shapes.CircuitBreaker, percent [2]int, desired int) {
	r := &rollout{
		planFixture: newPlanFixture(t, desired, func(s *controlplane.Service) {
			s.MinHealthy, s.Max, s.Breaker = percent[0], percent[1], breaker
			s.HealthyAfter = controlplane.HealthyAfter
		}),
		versions: map[string]version{"ecs-svc/1": old, "ecs-svc/2": v}, least: desired, seen: map[string]bool{},
	}
	r.run(2 * time.Minute)
	first := r.Deployments[0]
	testkit.Equal(t, "first rollout", first.Rollout, controlplane.Completed)
	r.update()
	r.least = desired
	r.run(20 * time.Minute)

	lower, upper := (desired*percent[0]+99)/100, desired*percent[1]/100
	if r.least < min(lower, desired) {
		t.Errorf("healthy tasks: got %d, want at least %d", r.least, lower)
	}
	works := v.healthyIn > 0
	blocked := lower >= desired && upper <= desired
	fails := !works && !blocked && v != version{checked: true} // which fails by no event
	wantID, wantState := "ecs-svc/2", controlplane.InProgress
	switch {
	case works && !blocked:
		wantState = controlplane.Completed
	case fails && breaker.Rollback:
		wantID, wantState = "ecs-svc/1", controlplane.Completed
	case fails && breaker.Enable:
		wantState = controlplane.Failed
	}
	primary := r.Deployments[0]
	testkit.Equal(t, "primary deployment", primary.ID, wantID)
	testkit.Equal(t, "rollout state", primary.Rollout, wantState)
	if wantState == controlplane.Completed {
		testkit.Equal(t, "deployments", len(r.Deployments), 1)
	}
	if opens := fails && breaker.Enable; opens && r.failed < 15*time.Second {
		t.Errorf("FAILED was shown for %v, want 15 s for clients that look so rarely", r.failed)
	}
	// Each failure of a task that did not run or crashed makes the next pause longer.
	loops := v.sickIn == 0 && (v.neverRuns || v.crashIn > 0)
	if loops && r.started > 12*desired {
		t.Errorf("started %d tasks, want at most %d", r.started, 12*desired)
	}
}

// Tasks that do not count as healthy yet are not stopped while too few do.
func TestUpdateOfANewServiceKeepsItsTasks(t *testing.T) {
	t.Parallel()
	w := newPlanFixture(t, 2, func(s *controlplane.Service) { s.HealthyAfter = controlplane.HealthyAfter })
	w.look()
	w.run()
	w.now = w.now.Add(10 * time.Second)
	w.update()
	w.want("new tasks", w.look(), "+2")
	w.run()
	w.want("none counts yet", w.look(), "")
	w.now = w.now.Add(30 * time.Second)
	w.want("the old ones count", w.look(), "")
	w.now = w.now.Add(10 * time.Second)
	w.want("all count", w.look(), "-t1 -t2")
}

// With resetOnHealthyTask false, failures count also after a task was healthy.
func TestCircuitBreakerThatDoesNotReset(t *testing.T) {
	t.Parallel()
	for _, reset := range []bool{true, false} {
		w := newPlanFixture(t, 2, func(s *controlplane.Service) {
			s.Breaker = shapes.CircuitBreaker{Enable: true, Reset: &reset}
		})
		w.steady()
		w.update()
		w.look()
		w.tasks[2].Last, w.tasks[2].Started = "RUNNING", w.now // healthy; t4 fails, and each that replaces it
		for range 3 {
			w.look()
			w.fail()
			w.look()
			w.now = w.now.Add(time.Hour) // beyond any back-off
			w.look()
		}
		want := controlplane.InProgress
		if !reset {
			want = controlplane.Failed
		}
		testkit.Equal(t, fmt.Sprintf("rollout with reset %v", reset), w.Deployments[0].Rollout, want)
	}
}
