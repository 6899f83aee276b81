package controlplane_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/internal/testkit"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

var planStart = time.Date(2026, 3, 2, 17, 0, 0, 0, time.UTC)

// fixture is a service whose tasks the test drives.
type planFixture struct {
	controlplane.Service
	t      *testing.T
	now    time.Time
	tasks  []controlplane.Task
	events []string
	count  int // tasks so far
}

func newPlanFixture(t *testing.T, desired int, change func(*controlplane.Service)) *planFixture {
	w := &planFixture{
		t: t, now: planStart, Service: controlplane.Service{Name: "web", Desired: desired, MinHealthy: 100, Max: 200},
	}
	if change != nil {
		change(&w.Service)
	}
	w.Began(controlplane.NewDeployment("ecs-svc/1", planStart))
	return w
}

// look reconciles once and executes the actions: "+2" started, "-a1" stopped.
func (w *planFixture) look() string {
	w.t.Helper()
	a := w.Reconcile(w.tasks, w.now)
	var did []string
	for _, s := range a.Stop {
		i := w.find(s.Task)
		w.tasks[i].Wanted, w.tasks[i].StopCode = "STOPPED", "ServiceSchedulerInitiated"
		did = append(did, "-"+s.Task)
	}
	if a.Start > 0 {
		did = append(did, fmt.Sprintf("+%d", a.Start))
	}
	for range a.Start {
		w.count++
		w.tasks = append(w.tasks, controlplane.Task{ID: fmt.Sprintf("t%d", w.count),
			Deployment: w.Deployments[0].ID, Last: "PENDING", Wanted: "RUNNING"})
	}
	w.events = append(w.events, a.Events...)
	return strings.Join(did, " ")
}

func (w *planFixture) find(id string) int {
	w.t.Helper()
	i := slices.IndexFunc(w.tasks, func(t controlplane.Task) bool { return t.ID == id })
	if i < 0 {
		w.t.Fatalf("no task %s", id)
	}
	return i
}

// run makes pending tasks RUNNING.
func (w *planFixture) run() {
	for i := range w.tasks {
		if t := &w.tasks[i]; t.Last == "PENDING" && t.Wanted == "RUNNING" {
			t.Last, t.Started = "RUNNING", w.now
		}
	}
}

// fail ends pending tasks before they ran.
func (w *planFixture) fail() {
	for i := range w.tasks {
		if t := &w.tasks[i]; t.Last == "PENDING" {
			t.Last, t.Wanted, t.StopCode = "STOPPED", "STOPPED", "TaskFailedToStart"
		}
	}
}

// end ends a running task by itself.
func (w *planFixture) end(id string) {
	t := &w.tasks[w.find(id)]
	t.Last, t.Wanted, t.StopCode = "STOPPED", "STOPPED", "EssentialContainerExited"
}

// steady brings the service to its first steady state.
func (w *planFixture) steady() {
	w.t.Helper()
	w.look()
	w.run()
	if did := w.look(); did != "" || w.Deployments[0].Rollout != controlplane.Completed {
		w.t.Fatalf("not steady: %q, %+v", did, w.Deployments[0])
	}
}

func (w *planFixture) want(what, got, want string) {
	w.t.Helper()
	if got != want {
		w.t.Errorf("%s: got %q, want %q; events %q", what, got, want, w.events)
	}
}

func (w *planFixture) update() {
	w.Began(controlplane.NewDeployment(fmt.Sprintf("ecs-svc/%d", len(w.Deployments)+1), w.now))
}

func TestServiceKeepsItsDesiredCount(t *testing.T) {
	t.Parallel()
	w := newPlanFixture(t, 2, nil)
	w.want("first look", w.look(), "+2")
	w.want("while they start", w.look(), "")
	w.run()
	w.want("when they run", w.look(), "")
	w.want("events", strings.Join(w.events, "|"),
		"(service web) (deployment ecs-svc/1) deployment completed.|(service web) has reached a steady state.")
	w.end("t1")
	w.want("one ended", w.look(), "+1")
	w.run()
	w.want("replaced", w.look(), "")
	w.want("last event", w.events[len(w.events)-1], "(service web) has reached a steady state.")
	w.Desired = 1
	w.Steady(false)
	w.want("scale-in", w.look(), "-t2")
	w.Desired = 3
	w.want("scale-out", w.look(), "+2")
}

func TestScaleInSparesProtectedTasksAndPrefersThoseNotRunning(t *testing.T) {
	t.Parallel()
	w := newPlanFixture(t, 2, nil)
	w.steady()
	w.Desired = 3
	w.look()
	w.Desired = 1
	for i := range w.tasks[:2] {
		w.tasks[i].Protected = true
	}
	w.want("scale-in", w.look(), "-t3")
	w.want("event", w.events[len(w.events)-2], "(service web) was unable to scale in due to task protection.")
	before := len(w.events)
	w.want("again", w.look(), "")
	if len(w.events) != before {
		t.Errorf("reported twice: %q", w.events[before:])
	}
	w.tasks[0].Protected = false
	w.want("unprotected", w.look(), "-t1")
}

func TestRollingDeploymentKeepsItsPercentages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		min, max, desired int
		want              string // looks, with all pending tasks running in between
	}{
		{100, 200, 2, "+2 / -t1 -t2 / done"},
		{50, 100, 2, "-t1 / +1 / -t2 / +1 / done"},
		{100, 150, 2, "+1 / -t1 / +1 / -t2 / done"},
		{0, 100, 2, "-t1 -t2 / +2 / done"},
		{50, 200, 3, "-t1 +3 / -t2 -t3 / done"},
		{100, 100, 1, "stuck"},
	} {
		w := newPlanFixture(t, c.desired, func(s *controlplane.Service) { s.MinHealthy, s.Max = c.min, c.max })
		w.steady()
		w.update()
		var looks []string
		for range 9 {
			did := w.look()
			switch {
			case did != "":
				looks = append(looks, did)
				w.run()
				continue
			case w.Deployments[0].Rollout == controlplane.Completed && len(w.Deployments) == 1:
				looks = append(looks, "done")
			default:
				looks = append(looks, "stuck")
			}
			break
		}
		if got := strings.Join(looks, " / "); got != c.want {
			t.Errorf("%d/%d of %d: got %s, want %s", c.min, c.max, c.desired, got, c.want)
		}
	}
}

func TestCircuitBreaker(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		breaker  shapes.CircuitBreaker
		rollout  string // of the primary deployment
		id, last string
	}{
		{"off", shapes.CircuitBreaker{}, controlplane.InProgress, "ecs-svc/2",
			"(service web) is unable to consistently start tasks successfully. For more information, see the " +
				"Troubleshooting section of the Amazon ECS Developer Guide."},
		{"without rollback", shapes.CircuitBreaker{Enable: true}, controlplane.Failed, "ecs-svc/2",
			"(service web) (deployment ecs-svc/2) deployment failed: tasks failed to start."},
		{"with rollback", shapes.CircuitBreaker{Enable: true, Rollback: true}, controlplane.Completed, "ecs-svc/1",
			"(service web) has reached a steady state."},
	} {
		w := newPlanFixture(t, 1, func(s *controlplane.Service) { s.Breaker = c.breaker })
		w.steady()
		w.update()
		for range 3 {
			w.want(c.name, w.look(), "+1")
			w.fail()
			w.look()                     // the breaker opens at the third
			w.now = w.now.Add(time.Hour) // beyond any back-off
		}
		if !slices.Contains(w.events, c.last) {
			w.want(c.name, w.events[len(w.events)-1], c.last)
		}
		d := w.Deployments[0]
		if d.ID != c.id || d.Rollout != c.rollout {
			t.Errorf("%s: got %s %s: %s", c.name, d.ID, d.Rollout, d.Reason)
		}
		if !w.tasks[0].Running() {
			t.Errorf("%s: the old task was stopped", c.name)
		}
	}
}

func TestRollbackThatFailsIsTheEnd(t *testing.T) {
	t.Parallel()
	w := newPlanFixture(t, 1, func(s *controlplane.Service) {
		s.MinHealthy, s.Breaker = 0, shapes.CircuitBreaker{Enable: true, Rollback: true}
	})
	w.steady()
	w.update()
	w.want("the old task goes first", w.look(), "-t1 +1")
	w.fail()
	w.look()
	w.now = w.now.Add(time.Hour)
	for range 2 {
		w.look()
		w.fail()
		w.look()
		w.now = w.now.Add(time.Hour)
	}
	if d := w.Deployments[0]; d.ID != "ecs-svc/1" ||
		d.Reason != "ECS deployment circuit breaker: rolling back to deploymentId ecs-svc/1." {
		t.Fatalf("not rolled back: %+v", d)
	}
	w.fail() // the first one of the rollback, started when the breaker opened
	w.look()
	for range 3 {
		w.now = w.now.Add(time.Hour)
		w.look()
		w.fail()
	}
	w.look()
	if d := w.Deployments[0]; d.ID != "ecs-svc/1" || d.Rollout != controlplane.Failed {
		t.Errorf("got %+v", d)
	}
	w.want("afterwards", w.look(), "")
}

func TestDeploymentWaitsForProtectedTasks(t *testing.T) {
	t.Parallel()
	w := newPlanFixture(t, 2, nil)
	w.steady()
	w.tasks[0].Protected = true
	w.update()
	w.want("new ones", w.look(), "+2")
	w.run()
	w.want("old ones", w.look(), "-t2")
	w.want("wait", w.look(), "")
	if d := w.Deployments; len(d) != 2 || d[0].Rollout != controlplane.InProgress {
		t.Errorf("got %+v", d)
	}
	w.tasks[0].Protected = false
	w.want("unprotected", w.look(), "-t1")
	w.look()
	if d := w.Deployments; len(d) != 1 || d[0].Rollout != controlplane.Completed {
		t.Errorf("got %+v", d)
	}
}

func TestTaskStoppedOnRequestHasNotFailed(t *testing.T) {
	t.Parallel()
	w := newPlanFixture(t, 1, nil)
	w.look()
	w.tasks[0].Last, w.tasks[0].Wanted, w.tasks[0].StopCode = "STOPPED", "STOPPED", "UserInitiated"
	w.want("at once", w.look(), "+1")
	if got := w.Deployments[0].FailedTasks; got != 0 {
		t.Errorf("failedTasks: got %d", got)
	}
}

func TestFailuresThatOpenTheCircuitBreaker(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		threshold     *shapes.FailureThreshold
		desired, want int
	}{
		{nil, 0, 3}, {nil, 1, 3}, {nil, 6, 3}, {nil, 7, 4}, {nil, 25, 13}, {nil, 400, 200}, {nil, 1000, 200},
		{&shapes.FailureThreshold{Type: shapes.Count, Value: 1}, 100, 1},
		{&shapes.FailureThreshold{Value: 100}, 2, 3},
		{&shapes.FailureThreshold{Type: shapes.BoundedPercent, Value: 100}, 10, 10},
		{&shapes.FailureThreshold{Type: shapes.UnboundedPercent, Value: 50}, 2, 1},
		{&shapes.FailureThreshold{Type: shapes.UnboundedPercent, Value: 50}, 1000, 500},
	} {
		testkit.Equal(t, fmt.Sprintf("%+v of %d", c.threshold, c.desired),
			shapes.CircuitBreaker{Threshold: c.threshold}.Failures(c.desired), c.want)
	}
}

func TestTasksThatFailToStartAreStartedLaterAndLater(t *testing.T) {
	t.Parallel()
	w := newPlanFixture(t, 1, nil)
	w.want("first", w.look(), "+1")
	var pauses []time.Duration
	for range 14 {
		w.fail()
		failed := w.now
		for w.look() == "" {
			w.now = w.now.Add(time.Second)
		}
		pauses = append(pauses, w.now.Sub(failed))
	}
	testkit.Equal(t, "pauses[0]", pauses[0], time.Second)
	testkit.Equal(t, "pauses[3]", pauses[3], 8*time.Second)
	testkit.Equal(t, "pauses[13]", pauses[13], 27*time.Minute)
	w.run()
	w.look()
	w.end("t15")
	w.want("after a healthy one", w.look(), "+1")
}

func TestFailuresDuringAPauseDoNotProlongIt(t *testing.T) {
	t.Parallel()
	w := newPlanFixture(t, 2, nil)
	w.look()
	for i := range w.tasks {
		w.tasks[i].Last, w.tasks[i].Wanted, w.tasks[i].StopCode = "STOPPED", "STOPPED", "TaskFailedToStart"
		w.want("pause", w.look(), "")
		w.now = w.now.Add(time.Second / 2)
	}
	w.want("after the first pause", w.look(), "+2")
	if got := w.Deployments[0].FailedTasks; got != 2 {
		t.Errorf("failedTasks: got %d", got)
	}
}

func TestUnhealthyTasksAreReplaced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		max  int
		want string
	}{
		{200, "+1 / -t1"},
		{100, "-t1 / +1"},
	} {
		w := newPlanFixture(t, 1, func(s *controlplane.Service) { s.Max, s.Grace = c.max, 30*time.Second })
		w.look()
		w.run()
		w.tasks[0].Health = "UNHEALTHY"
		w.want("within the grace period", w.look(), "")
		w.now = w.now.Add(30 * time.Second)
		first := w.look()
		w.run()
		w.want("replacement", first+" / "+w.look(), c.want)
		w.want("event", w.events[0], "(service web) (task t1) failed container health checks.")
		if d := w.Deployments[0]; c.max == 100 && d.FailedTasks != 1 {
			t.Errorf("failedTasks: got %d", d.FailedTasks)
		}
	}
}

func TestUnhealthyTaskDelaysTheDeployment(t *testing.T) {
	t.Parallel()
	w := newPlanFixture(t, 1, nil)
	w.steady()
	w.update()
	w.look()
	w.run()
	w.tasks[1].Health = "UNKNOWN"
	w.want("unknown", w.look(), "")
	w.tasks[1].Health = "HEALTHY"
	w.want("healthy", w.look(), "-t1")
}

func TestDeletedServiceStopsAll(t *testing.T) {
	t.Parallel()
	w := newPlanFixture(t, 2, nil)
	w.steady()
	w.tasks[0].Protected = true
	w.Draining, w.Desired = true, 0
	w.want("drain", w.look(), "-t1 -t2")
	w.want("event", w.events[len(w.events)-1], "(service web) has stopped 2 running tasks: (task t1) (task t2).")
}
