package scheduler

import (
	"github.com/meshtask/consul-ecs/internal/testkit"
	"strings"
	"testing"
	"time"
)

// docs/localecs/fidelity.md lists the scenarios that these tests are about.

func TestExitZeroOfAnEssentialContainerStopsTheTask(t *testing.T) {
	t.Parallel()
	w := play(t, 1, `a{exit(0,2)}`)
	w.want("task RUNNING/RUNNING", "a RUNNING/RUNNING 0s..")
	w.to(2).want(
		"task STOPPED/STOPPED EssentialContainerExited ended=2s",
		"a STOPPED/STOPPED 0s..2s exit=0")
	if got := w.task.View().StoppedReason; got != "Essential container in task exited" {
		t.Errorf("reason %q", got)
	}
}

func TestNoEdgesStartTogether(t *testing.T) {
	t.Parallel()
	w := play(t, 1, `
		a{run}
		b{run}`)
	w.wantTrace("0s Start a", "0s Start b")
	w.want("task RUNNING/RUNNING", "a RUNNING/RUNNING 0s..", "b RUNNING/RUNNING 0s..")
}

func TestStartWaitsForRunning(t *testing.T) {
	t.Parallel()
	w := play(t, 2, `
		b{run}
		a{run boot=3}
		b→a:START`)
	w.want("task NONE/RUNNING", "b PULLED/RUNNING", "a PULLED/RUNNING")
	w.to(3).want("task RUNNING/RUNNING", "b RUNNING/RUNNING 3s..", "a RUNNING/RUNNING 3s..")
}

func TestStartAcceptsExited(t *testing.T) {
	t.Parallel()
	w := play(t, 1, `
		b{run boot=1}
		~a{exit(1,0)}
		b→a:START`)
	w.want("task RUNNING/RUNNING", "b RUNNING/RUNNING 1s..", "a STOPPED/RUNNING 0s..0s exit=1")
}

func TestCompleteTakesAnyCode(t *testing.T) {
	t.Parallel()
	w := play(t, 1, `
		b{run}
		~a{exit(3,2)}
		b→a:COMPLETE`)
	w.want("task NONE/RUNNING", "b PULLED/RUNNING", "a RUNNING/RUNNING 0s..")
	w.to(2).want("task RUNNING/RUNNING", "b RUNNING/RUNNING 2s..", "a STOPPED/RUNNING 0s..2s exit=3")
}

func TestSuccessWaitsForZero(t *testing.T) {
	t.Parallel()
	w := play(t, 3, `
		b{run}
		~a{exit(0,2)}
		b→a:SUCCESS`)
	w.want("task RUNNING/RUNNING", "b RUNNING/RUNNING 2s..", "a STOPPED/RUNNING 0s..2s exit=0")
}

func TestSuccessDependencyFails(t *testing.T) {
	t.Parallel()
	w := play(t, 2, `
		b{run}
		~a{exit(1,1)}
		b→a:SUCCESS`)
	w.want("task STOPPED/STOPPED TaskFailedToStart ended=1s",
		"b STOPPED/STOPPED exit=143", "a STOPPED/STOPPED 0s..1s exit=1")
	const want = "CannotStartContainerError: dependency graph: container a did not exit with 0 (SUCCESS)"
	if got := w.view("b").Reason; got != want {
		t.Errorf("reason of b %q, want %q", got, want)
	}
	if got := w.task.View().StoppedReason; got != want {
		t.Errorf("reason of the task %q, want %q", got, want)
	}
}

func TestNonEssentialTargetOfFailureLeavesTask(t *testing.T) {
	t.Parallel()
	w := play(t, 5, `
		~b{run}
		~a{exit(1,1)}
		c{run}
		b→a:SUCCESS`)
	w.want("task RUNNING/RUNNING",
		"b STOPPED/STOPPED exit=143", "a STOPPED/RUNNING 0s..1s exit=1", "c RUNNING/RUNNING 0s..")
}

func TestFailureCascades(t *testing.T) {
	t.Parallel()
	for _, order := range []string{"~c{run}\n~b{run}\n~a{exit(1,1)}", "~a{exit(1,1)}\n~b{run}\n~c{run}"} {
		w := play(t, 5, order+`
			d{run}
			c→b:SUCCESS
			b→a:SUCCESS`)
		w.wantTrace("0s Start a", "0s Start d")
		for _, name := range []string{"b", "c"} {
			c := w.view(name)
			testkit.Equal(t, "KnownStatus", c.KnownStatus, "STOPPED")
			if c.ExitCode == nil {
				t.Fatalf("%s is %+v", name, c)
			}
			testkit.Equal(t, "ExitCode", *c.ExitCode, 143)
			if !c.StartedAt.IsZero() {
				t.Errorf("%s is %+v", name, c)
			}
		}
		if v := w.task.View(); v.DesiredStatus != "RUNNING" || v.KnownStatus != "RUNNING" {
			t.Errorf("task is %s/%s", v.KnownStatus, v.DesiredStatus)
		}
	}
}

// ECS lets START and COMPLETE dependents of a dropped container start or not
// by definition order; here nothing ever starts.
func TestDroppedContainerFailsAllConditions(t *testing.T) {
	t.Parallel()
	for _, condition := range []string{"START", "COMPLETE", "SUCCESS", "HEALTHY"} {
		w := play(t, 5, `
			~c{run}
			~b{run hc[P]}
			~a{exit(1,1)}
			d{run}
			b→a:SUCCESS
			c→b:`+condition)
		c := w.view("c")
		testkit.Equal(t, condition+": KnownStatus", c.KnownStatus, "STOPPED")
		if c.ExitCode == nil {
			t.Fatalf("%s: c is %+v", condition, c)
		}
		testkit.Equal(t, condition+": ExitCode", *c.ExitCode, 143)
	}
}

func TestFailedLaunchFailsAllConditions(t *testing.T) {
	t.Parallel()
	for _, condition := range []string{"START", "COMPLETE", "SUCCESS", "HEALTHY"} {
		w := play(t, 5, `
			~b{run}
			~a{missing hc[P]}
			d{run}
			b→a:`+condition)
		w.want("task RUNNING/RUNNING", "b STOPPED/STOPPED exit=143", "a STOPPED/STOPPED {}", "d RUNNING/RUNNING 0s..")
	}
}

func TestHealthyGate(t *testing.T) {
	t.Parallel()
	script := `
		b{run}
		a{run hc[P] interval=5}
		b→a:HEALTHY`
	w := play(t, 4.9, script)
	w.want("task NONE/RUNNING", "b PULLED/RUNNING", "a RUNNING/RUNNING 0s.. {}")
	w.to(5).want("task RUNNING/RUNNING", "b RUNNING/RUNNING 5s..", "a RUNNING/RUNNING 0s.. HEALTHY@5s(0)")
}

func TestUnhealthyIsNotAFailure(t *testing.T) {
	t.Parallel()
	script := `
		b{run}
		a{run hc[F F F F P] interval=5 retries=2}
		b→a:HEALTHY`
	w := play(t, 24.9, script)
	w.want("task NONE/RUNNING", "b PULLED/RUNNING", "a RUNNING/RUNNING 0s.. UNHEALTHY@10s(1)")
	w.to(25).want("task RUNNING/RUNNING", "b RUNNING/RUNNING 25s..", "a RUNNING/RUNNING 0s.. HEALTHY@25s(1)")
}

func TestStartTimeoutFailsHealthyGate(t *testing.T) {
	t.Parallel()
	script := `
		b{run}
		a{run boot=4 hc[F] interval=5 retries=2 start=10}
		b→a:HEALTHY`
	w := play(t, 13.9, script)
	if got := w.view("b").KnownStatus; got != "PULLED" {
		t.Errorf("b is %s before 10 s after a started", got)
	}
	w.to(14).want("task STOPPED/STOPPED TaskFailedToStart ended=14s",
		"b STOPPED/STOPPED exit=143", "a STOPPED/STOPPED 4s..14s exit=0 {}")
	if got := w.view("b").Reason; !strings.HasSuffix(got,
		"container a was not HEALTHY within its start timeout of 10s") {
		t.Errorf("reason %q", got)
	}
}

func TestNoStartTimeoutWaitsForEver(t *testing.T) {
	t.Parallel()
	w := play(t, 3600, `
		b{run}
		a{run hc[F] interval=5 retries=2}
		b→a:HEALTHY`)
	w.want("task NONE/RUNNING", "b PULLED/RUNNING", "a RUNNING/RUNNING 0s.. UNHEALTHY@10s(1)")
}

func TestLaterUnhealthyChangesNothing(t *testing.T) {
	t.Parallel()
	w := play(t, 60, `
		b{run}
		a{run hc[P F] interval=5 retries=2}
		b→a:HEALTHY`)
	w.want("task RUNNING/RUNNING", "b RUNNING/RUNNING 5s..", "a RUNNING/RUNNING 0s.. UNHEALTHY@15s(1)")
}

func TestStartTimeoutDoesNotCountForStart(t *testing.T) {
	t.Parallel()
	w := play(t, 10, `
		b{run boot=5}
		a{run start=2}
		b→a:START`)
	w.want("task RUNNING/RUNNING", "b RUNNING/RUNNING 5s..", "a RUNNING/RUNNING 0s..")

	w = play(t, 10, `
		b{run}
		a{run start=2}
		~i{exit(0,6)}
		b→a:START
		b→i:SUCCESS`)
	w.want("task RUNNING/RUNNING", "b RUNNING/RUNNING 6s..", "a RUNNING/RUNNING 0s..",
		"i STOPPED/RUNNING 0s..6s exit=0")
}

func TestStartTimeoutFailsComplete(t *testing.T) {
	t.Parallel()
	script := `
		b{run}
		~a{run start=5}
		b→a:COMPLETE`
	w := play(t, 4.9, script)
	w.want("task NONE/RUNNING", "b PULLED/RUNNING", "a RUNNING/RUNNING 0s..")
	w.to(5).want("task STOPPED/STOPPED TaskFailedToStart ended=5s",
		"b STOPPED/STOPPED exit=143", "a STOPPED/STOPPED 0s..5s exit=0")
}

func TestHealthyDependencyExitsBeforeHealthy(t *testing.T) {
	t.Parallel()
	w := play(t, 3600, `
		b{run}
		~a{exit(0,1) hc[P] interval=5 start=10}
		b→a:HEALTHY`)
	w.want("task NONE/RUNNING", "b PULLED/RUNNING", "a STOPPED/RUNNING 0s..1s exit=0 {}")
	w.stopTask("enough").want("task STOPPED/STOPPED UserInitiated ended=1h0m0s",
		"b STOPPED/STOPPED", "a STOPPED/STOPPED 0s..1s exit=0 {}")
}

// Health is what it is now: a dependency that was healthy and has exited is
// not, so a second condition that comes later finds the first one shut.
func TestHealthyDependencyMustStillRun(t *testing.T) {
	t.Parallel()
	w := play(t, 600, `
		c{run}
		~b{exit(0,7) hc[P] interval=5}
		~a{exit(0,9)}
		c→b:HEALTHY
		c→a:SUCCESS`)
	w.want("task NONE/RUNNING", "c PULLED/RUNNING",
		"b STOPPED/RUNNING 0s..7s exit=0 HEALTHY@5s(0)", "a STOPPED/RUNNING 0s..9s exit=0")
}

func TestTwoConditions(t *testing.T) {
	t.Parallel()
	w := play(t, 4.9, `
		c{run}
		b{run hc[P] interval=5}
		~a{exit(0,2)}
		c→a:SUCCESS
		c→b:HEALTHY`)
	w.want("task NONE/RUNNING", "c PULLED/RUNNING", "b RUNNING/RUNNING 0s.. {}", "a STOPPED/RUNNING 0s..2s exit=0")
	w.to(5).wantTrace("0s Start b", "0s Start a", "5s Start c")
}

// A startTimeout also ends the wait when its own condition holds already.
func TestStartTimeoutCountsWhileAnotherConditionBlocks(t *testing.T) {
	t.Parallel()
	w := play(t, 20, `
		c{run}
		b{run hc[P] interval=5 start=10}
		~a{exit(0,30)}
		c→a:SUCCESS
		c→b:HEALTHY`)
	w.wantTrace("0s Start b", "0s Start a", "10s Signal b", "10s Signal a", "10s TaskStopped")
}

func TestBlockedContainerShowsPulled(t *testing.T) {
	t.Parallel()
	w := play(t, 1, `
		b{run}
		~a{exit(0,2)}
		b→a:SUCCESS`)
	b := w.view("b")
	testkit.Equal(t, "KnownStatus", b.KnownStatus, "PULLED")
	if !b.StartedAt.IsZero() || b.ExitCode != nil {
		t.Errorf("blocked container is %+v", b)
	}
	if got := w.task.View().KnownStatus; got != "NONE" {
		t.Errorf("task is %s", got)
	}
	w.to(2)
	if got := w.task.View().KnownStatus; got != "RUNNING" {
		t.Errorf("task is %s once all run", got)
	}
	if b := w.view("b"); b.StartedAt.IsZero() {
		t.Errorf("started %s", b.StartedAt)
	}
}

func TestMissingExecutable(t *testing.T) {
	t.Parallel()
	w := play(t, 3, `
		a{missing boot=1}
		b{run(2,0)}`)
	w.want("task STOPPED/STOPPED TaskFailedToStart ended=1s",
		"a STOPPED/STOPPED", "b STOPPED/STOPPED 0s..3s exit=0")
	if got := w.task.View().StoppedReason; got != "CannotStartContainerError: no such file" {
		t.Errorf("reason %q", got)
	}
}

func TestMissingImageStartsNothing(t *testing.T) {
	t.Parallel()
	w := play(t, 3, `
		b{run}
		~a{noimage}`)
	w.wantTrace("0s TaskStopped")
	w.want("task STOPPED/STOPPED TaskFailedToStart ended=0s", "b STOPPED/STOPPED", "a STOPPED/STOPPED")
	if got := w.task.View().StoppedReason; got != "CannotPullContainerError: not found" {
		t.Errorf("reason %q", got)
	}
}

// Fargate has every image before it starts anything, edges or not.
func TestNoContainerStartsBeforeTheLastPull(t *testing.T) {
	t.Parallel()
	w := newFixture(t, Options{}, `
		a{run}
		b{run}`)
	now := w.zero
	if got := w.task.Apply(Tick{}, now); len(got) != 2 || got[0] != (Pull{Container: "a", Image: "image-a"}) {
		t.Fatalf("first Tick gives %v", got)
	}
	if got := w.task.Apply(PullDone{Container: "a"}, now.Add(time.Second)); len(got) != 0 {
		t.Fatalf("one pull of two gives %v", got)
	}
	w.want("task NONE/RUNNING", "a PULLED/RUNNING", "b NONE/RUNNING")
	got := w.task.Apply(PullDone{Container: "b"}, now.Add(2*time.Second))
	if len(got) != 2 {
		t.Fatalf("last pull gives %v", got)
	}
	if got[0] != (Start{Container: "a"}) || got[1] != (Start{Container: "b"}) {
		t.Fatalf("last pull gives %v", got)
	}
	v := w.task.View()
	if w.since(v.PullStartedAt) != "0s" || w.since(v.PullStoppedAt) != "2s" {
		t.Errorf("pulled from %s to %s", v.PullStartedAt, v.PullStoppedAt)
	}
}

// While only gates keep containers from starting, the agent polls: what happens meanwhile has its effect after the
// poll, which began when the last start ended.
func TestGatePeriodDelaysWhatHappensAtAGate(t *testing.T) {
	t.Parallel()
	const gate = "\nb{run}\n~a{run boot=1}\nother{run}\nb→a:SUCCESS"
	atOnce := []string{"0s Start a", "0s Start other", "7s StopTask", "7s Signal a",
		"7s Signal other", "7s TaskStopped"}
	for _, test := range []struct {
		name, script string
		period       time.Duration
		stop         StopRequested
		want         []string
	}{
		{"SUCCESS, START at once", "c{run}\nb{run boot=1}\n~a{exit(0,2)}\nb→a:SUCCESS\nc→b:START",
			5 * time.Second, StopRequested{}, []string{"0s Start a", "5s Start b", "6s Start c"}},
		{"START alone", "b{run}\na{run boot=2}\nb→a:START", 5 * time.Second,
			StopRequested{}, []string{"0s Start a", "2s Start b"}},
		{"HEALTHY in a row", `c{run}
			b{run boot=1 hc[P] interval=6}
			a{run boot=1 hc[P] interval=6}
			b→a:HEALTHY
			c→b:HEALTHY`,
			5 * time.Second, StopRequested{}, []string{"0s Start a", "11s Start b", "22s Start c"}},
		{"failed SUCCESS", "b{run}\n~a{exit(3,2) boot=1}\nother{run}\nb→a:SUCCESS", 5 * time.Second,
			StopRequested{}, []string{"0s Start a", "0s Start other", "6s Signal other", "6s TaskStopped"}},
		{"start timeout", "b{run}\n~a{run boot=1 start=7}\nb→a:SUCCESS", 5 * time.Second,
			StopRequested{}, []string{"0s Start a", "11s Signal a", "11s TaskStopped"}},
		{"essential exit", "b{run}\n~a{run}\nother{exit(0,7)}\nb→a:SUCCESS", 5 * time.Second,
			StopRequested{}, []string{"0s Start a", "0s Start other", "10s Signal a", "10s TaskStopped"}},
		{"StopTask", gate, 5 * time.Second, StopRequested{Reason: "StopTask"}, []string{"0s Start a", "0s Start other",
			"7s StopTask", "11s Signal a", "11s Signal other", "11s TaskStopped"}},
		{"StopTask, period 3 s", gate, 3 * time.Second, StopRequested{Reason: "StopTask"}, atOnce},
		{"StopTask, no period", gate, 0, StopRequested{Reason: "StopTask"}, atOnce},
		{"prompt stop", gate, 5 * time.Second, StopRequested{Prompt: true},
			[]string{"0s Start a", "0s Start other", "7s Signal a", "7s Signal other", "7s TaskStopped"}},
		{"StopTask during a start", "b{run}\n~a{run boot=9}\nb→a:SUCCESS", 5 * time.Second,
			StopRequested{Reason: "StopTask"}, []string{"0s Start a", "7s StopTask", "9s Signal a", "9s TaskStopped"}},
		{"death of the machine", gate, 5 * time.Second, StopRequested{Kill: true},
			[]string{"0s Start a", "0s Start other", "7s Kill a", "7s Kill other", "7s TaskStopped"}},
		{"restart at a gate", "b{run}\n~a{run}\n~r{exit(1,61) restart=60}\nb→a:SUCCESS", 5 * time.Second,
			StopRequested{}, []string{"0s Start a", "0s Start r", "1m1s Start r"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, Options{GatePeriod: test.period}, test.script)
			w.to(7)
			switch stop := test.stop; {
			case stop.Reason != "":
				w.stopTask("")
			case stop != StopRequested{}:
				w.apply(stop)
			}
			w.to(90).wantTrace(test.want...)
		})
	}
}

// A view shows at once what a stop at a gate asks for, and that the dependency is met.
func TestGatePeriodShowsDesiredAtOnce(t *testing.T) {
	t.Parallel()
	w := newFixture(t, Options{GatePeriod: 5 * time.Second}, "b{run}\n~a{exit(0,2)}\nother{exit(1,3)}\nb→a:SUCCESS")
	w.to(2)
	if got := w.view("b").WaitsFor; len(got) != 0 {
		t.Errorf("b waits for %v although its gate is met", got)
	}
	w.to(3).want("task NONE/STOPPED EssentialContainerExited ended=3s", "b PULLED/STOPPED",
		"a STOPPED/STOPPED 0s..2s exit=0", "other STOPPED/STOPPED 0s..3s exit=1")
}

func TestTimeScaleDividesDurations(t *testing.T) {
	t.Parallel()
	w := newFixture(t, Options{TimeScale: 10}, `
		b{deaf stop=20}
		a{run hc[P] interval=5}
		b→a:HEALTHY`)
	w.to(1).stopTask("").to(10)
	w.wantTrace("0s Start a", "500ms Start b", "1s StopTask", "1s Signal b", "3s Kill b", "3s Signal a",
		"3s TaskStopped")
}
