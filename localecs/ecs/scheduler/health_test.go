package scheduler

import (
	"strings"
	"testing"
)

func TestFirstProbeAfterOneInterval(t *testing.T) {
	t.Parallel()
	w := play(t, 4.9, `a{run hc[P] interval=5}`)
	w.wantProbes("a")
	w.want("task RUNNING/RUNNING", "a RUNNING/RUNNING 0s.. {}")
	w.to(5).wantProbes("a", "5s")
	w.want("task RUNNING/RUNNING", "a RUNNING/RUNNING 0s.. HEALTHY@5s(0)")
}

func TestIntervalCountsFromProbeEnd(t *testing.T) {
	t.Parallel()
	w := play(t, 21, `a{run hc[P/3] interval=5}`)
	w.wantProbes("a", "5s", "13s", "21s")
}

func TestUnhealthyAfterRetries(t *testing.T) {
	t.Parallel()
	w := play(t, 14.9, `a{run hc[2] interval=5 retries=3}`)
	w.want("task RUNNING/RUNNING", "a RUNNING/RUNNING 0s.. {}")
	w.to(15).want("task RUNNING/RUNNING", "a RUNNING/RUNNING 0s.. UNHEALTHY@15s(2)")
	if got := w.view("a").Health.Output; got != "output 15s" {
		t.Errorf("output %q is not the deciding probe's", got)
	}
}

func TestSuccessResetsStreak(t *testing.T) {
	t.Parallel()
	w := play(t, 34.9, `a{run hc[P F F P F F F] interval=5 retries=3}`)
	w.want("task RUNNING/RUNNING", "a RUNNING/RUNNING 0s.. HEALTHY@5s(0)")
	w.to(60).want("task RUNNING/RUNNING", "a RUNNING/RUNNING 0s.. UNHEALTHY@35s(1)")
}

func TestStartPeriodForgivesFailures(t *testing.T) {
	t.Parallel()
	w := play(t, 19.9, `a{run hc[F] interval=5 retries=2 period=12}`)
	w.want("task RUNNING/RUNNING", "a RUNNING/RUNNING 0s.. {}")
	w.to(20).want("task RUNNING/RUNNING", "a RUNNING/RUNNING 0s.. UNHEALTHY@20s(1)")
}

// Only the beginning of a probe decides whether it falls into the start period.
func TestStartPeriodLooksAtProbeStart(t *testing.T) {
	t.Parallel()
	w := play(t, 60, `a{run hc[F/4] interval=5 retries=1 period=7}`)
	w.want("task RUNNING/RUNNING", "a RUNNING/RUNNING 0s.. UNHEALTHY@18s(1)")
}

// Once healthy, failures count also inside the start period.
func TestStartPeriodForgivesOnlyWhileStarting(t *testing.T) {
	t.Parallel()
	w := play(t, 60, `a{run hc[P F] interval=5 retries=2 period=60}`)
	w.want("task RUNNING/RUNNING", "a RUNNING/RUNNING 0s.. UNHEALTHY@15s(1)")
}

func TestPassInsideStartPeriod(t *testing.T) {
	t.Parallel()
	w := play(t, 120, `a{run hc[P] interval=20 period=60}`)
	w.want("task RUNNING/RUNNING", "a RUNNING/RUNNING 0s.. HEALTHY@20s(0)")
}

func TestTimeoutIsAFailure(t *testing.T) {
	t.Parallel()
	w := play(t, 7, `a{run hc[T] interval=5 timeout=2 retries=1}`)
	w.want("task RUNNING/RUNNING", "a RUNNING/RUNNING 0s.. UNHEALTHY@7s(-1)")
	if got := w.view("a").Health.Output; got != "Health check exceeded timeout (2s)" {
		t.Errorf("output %q", got)
	}
	w.to(19).wantProbes("a", "5s", "12s", "19s")
}

func TestRecoveryKeepsExitCode(t *testing.T) {
	t.Parallel()
	w := play(t, 10, `a{run hc[F F P] interval=5 retries=2}`)
	w.want("task RUNNING/RUNNING", "a RUNNING/RUNNING 0s.. UNHEALTHY@10s(1)")
	w.to(15).want("task RUNNING/RUNNING", "a RUNNING/RUNNING 0s.. HEALTHY@15s(1)")
}

func TestStatusSinceIsConstant(t *testing.T) {
	t.Parallel()
	w := play(t, 50, `a{run hc[P] interval=5}`)
	w.want("task RUNNING/RUNNING", "a RUNNING/RUNNING 0s.. HEALTHY@5s(0)")
	if got := w.view("a").Health.Output; got != "output 5s" {
		t.Errorf("output %q changed with a status that did not", got)
	}
}

func TestNoCheckNoHealth(t *testing.T) {
	t.Parallel()
	w := newFixture(t, Options{}, `a{run}`)
	if h := w.view("a").Health; h != nil {
		t.Errorf("health %+v without a check", h)
	}
	def := w.parse(`a{run hc[P]}`)
	def.ContainerDefinitions[0].HealthCheck.Command = []string{"NONE"}
	if h := New(def, Options{}, w.zero).View().Containers[0].Health; h != nil {
		t.Errorf("health %+v with NONE", h)
	}
}

func TestMissingProbeBinary(t *testing.T) {
	t.Parallel()
	w := play(t, 5, `a{run hc[255] interval=5 retries=1}`)
	w.want("task RUNNING/RUNNING", "a RUNNING/RUNNING 0s.. UNHEALTHY@5s(255)")
}

func TestTaskHealthStatus(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ script, before, after, checked string }{
		{"~a{run hc[F] interval=5 retries=1}\nb{run hc[P] interval=5}", "UNKNOWN", "HEALTHY", "HEALTHY"},
		{"a{run hc[F] interval=5 retries=1}\nb{run}", "UNKNOWN", "UNHEALTHY", "UNHEALTHY"},
		{"a{run hc[P] interval=5}\nb{run}", "UNKNOWN", "UNKNOWN", "HEALTHY"},
		{"a{run hc[P] interval=5}\n~b{run}", "UNKNOWN", "HEALTHY", "HEALTHY"},
		{"~a{run hc[P] interval=5}\nb{run}", "UNKNOWN", "UNKNOWN", ""},
	} {
		w := play(t, 1, tt.script)
		if got := w.task.View().HealthStatus(); got != tt.before {
			t.Errorf("%s: at 1 s %s, want %s", tt.script, got, tt.before)
		}
		w.to(5)
		if got := w.task.View().HealthStatus(); got != tt.after {
			t.Errorf("%s: at 5 s %s, want %s", tt.script, got, tt.after)
		}
		if got := w.task.View().CheckedHealth(); got != tt.checked {
			t.Errorf("%s: by containers with checks %s, want %s", tt.script, got, tt.checked)
		}
		if v := w.task.View(); v.KnownStatus != "RUNNING" || v.DesiredStatus != "RUNNING" {
			t.Errorf("%s: an unhealthy task is %s/%s", tt.script, v.KnownStatus, v.DesiredStatus)
		}
	}
}

func TestProbesContinueDuringStop(t *testing.T) {
	t.Parallel()
	w := play(t, 6, `a{deaf stop=12 hc[P F] interval=5 retries=2}`)
	w.stopTask("").to(60)
	w.wantProbes("a", "5s", "10s", "15s")
	w.want("task STOPPED/STOPPED UserInitiated ended=18s", "a STOPPED/STOPPED 0s..18s exit=137 UNHEALTHY@15s(1)")
}

func TestHealthOutputIsCut(t *testing.T) {
	t.Parallel()
	w := newFixture(t, Options{}, `a{run hc[P] interval=5}`)
	w.to(4.9)
	at := w.zero.Add(5e9)
	w.task.Apply(Tick{}, at)
	// 1023 bytes and a two-byte letter across the limit.
	w.task.Apply(ProbeDone{Container: "a", StartedAt: at, Output: strings.Repeat("x", 1023) + "éé"}, at)
	if got := w.view("a").Health.Output; got != strings.Repeat("x", 1023) {
		t.Errorf("output has %d bytes", len(got))
	}
}

// An answer without a request, or of a probe that began before a restart,
// says nothing about the container that runs now.
func TestStaleProbeResultsAreDropped(t *testing.T) {
	t.Parallel()
	w := newFixture(t, Options{}, `a{exit(1,62) hc[P P/100 F] interval=5 retries=1 restart=60}`)
	w.to(3)
	w.task.Apply(ProbeDone{Container: "a", StartedAt: w.now, Code: 1, At: w.now}, w.now)
	w.want("task RUNNING/RUNNING", "a RUNNING/RUNNING 0s.. {} restarts=0")
	w.to(66)
	w.want("task RUNNING/RUNNING", "a RUNNING/RUNNING 0s..1m2s {} restarts=1")
	before := w.zero.Add(61e9)
	w.task.Apply(Tick{}, w.zero.Add(67e9))
	w.task.Apply(ProbeDone{Container: "a", StartedAt: before, At: w.zero.Add(67e9)}, w.zero.Add(67e9))
	w.want("task RUNNING/RUNNING", "a RUNNING/RUNNING 0s..1m2s {} restarts=1")
}
