package scheduler

import (
	"fmt"
	"github.com/meshtask/consul-ecs/internal/testkit"
	"strings"
	"testing"
)

func TestEssentialExitStopsTheOthersTogether(t *testing.T) {
	t.Parallel()
	w := play(t, 3, `
		a{exit(0,3)}
		b{run(2,0)}
		~c{run}`)
	w.want("task RUNNING/STOPPED EssentialContainerExited ended=3s",
		"a STOPPED/STOPPED 0s..3s exit=0", "b RUNNING/STOPPED 0s..", "c STOPPED/STOPPED 0s..3s exit=0")
	w.to(10).wantTrace("0s Start a", "0s Start b", "0s Start c", "3s Signal b", "3s Signal c", "5s TaskStopped")
}

func TestDependencyIsSignalledLast(t *testing.T) {
	t.Parallel()
	w := play(t, 1, `
		a{run}
		b{run(3,0)}
		b→a:START`)
	w.stopTask("bye").to(3)
	w.want("task RUNNING/STOPPED UserInitiated",
		"a RUNNING/STOPPED 0s..", "b RUNNING/STOPPED 0s..")
	w.to(10).wantTrace("0s Start a", "0s Start b", "1s StopTask", "1s Signal b", "4s Signal a", "4s TaskStopped")
	if got := w.task.View().StoppedReason; got != "bye" {
		t.Errorf("reason %q", got)
	}
}

func TestChainStopsInReverse(t *testing.T) {
	t.Parallel()
	w := play(t, 1, `
		a{run(2,0)}
		b{run(2,0)}
		c{run(2,0)}
		c→b:START
		b→a:START`)
	w.stopTask("").to(20)
	w.wantTrace("0s Start a", "0s Start b", "0s Start c", "1s StopTask",
		"1s Signal c", "3s Signal b", "5s Signal a", "7s TaskStopped")
}

func TestAllAtOnceSignalsEverything(t *testing.T) {
	t.Parallel()
	w := newFixture(t, Options{AtOnce: true}, `
		a{run(2,0)}
		b{run(2,0)}
		c{run(2,0)}
		c→b:START
		b→a:START`)
	w.to(1).stopTask("").to(20)
	w.wantTrace("0s Start a", "0s Start b", "0s Start c", "1s StopTask",
		"1s Signal a", "1s Signal b", "1s Signal c", "3s TaskStopped")
}

func TestContainerThatIgnoresTERMIsKilledAtStopTimeout(t *testing.T) {
	t.Parallel()
	w := play(t, 1, `a{deaf stop=2}`)
	w.stopTask("")
	w.want("task RUNNING/STOPPED UserInitiated", "a RUNNING/STOPPED 0s..")
	w.to(20).wantTrace("0s Start a", "1s StopTask", "1s Signal a", "3s Kill a", "3s TaskStopped")
	w.want("task STOPPED/STOPPED UserInitiated ended=3s", "a STOPPED/STOPPED 0s..3s exit=137")
}

func TestDefaultStopTimeout(t *testing.T) {
	t.Parallel()
	w := play(t, 1, `a{deaf}`)
	w.stopTask("").to(60).wantTrace("0s Start a", "1s StopTask", "1s Signal a", "31s Kill a", "31s TaskStopped")
}

func TestExitCodeOnStop(t *testing.T) {
	t.Parallel()
	w := play(t, 1, `a{run(1,7)}`)
	w.stopTask("").to(60).want("task STOPPED/STOPPED UserInitiated ended=2s", "a STOPPED/STOPPED 0s..2s exit=7")
}

func TestNonEssentialExitKeepsDesiredRunning(t *testing.T) {
	t.Parallel()
	w := play(t, 10, `
		~a{exit(1,2)}
		b{run}`)
	w.want("task RUNNING/RUNNING", "a STOPPED/RUNNING 0s..2s exit=1", "b RUNNING/RUNNING 0s..")
	w.wantTrace("0s Start a", "0s Start b")
}

func TestStopWhileBlocked(t *testing.T) {
	t.Parallel()
	w := play(t, 10, `
		b{run}
		a{run(3,0) hc[F] interval=5}
		b→a:HEALTHY`)
	w.stopTask("")
	w.want("task RUNNING/STOPPED UserInitiated ended=10s", "b STOPPED/STOPPED", "a RUNNING/STOPPED 0s.. {}")
	w.to(60).wantTrace("0s Start a", "10s StopTask", "10s Signal a", "13s TaskStopped")
}

func TestSecondStopKeepsTheFirst(t *testing.T) {
	t.Parallel()
	w := play(t, 1, `a{run(5,0)}`)
	w.stopTask("first").to(3).stopTask("second").to(60)
	w.wantTrace("0s Start a", "1s StopTask", "1s Signal a", "3s StopTask", "6s TaskStopped")
	v := w.task.View()
	testkit.Equal(t, "StoppedReason", v.StoppedReason, "first")
	testkit.Equal(t, "StopCode", v.StopCode, "UserInitiated")
	testkit.Equal(t, "since(v.StoppingAt)", w.since(v.StoppingAt), "1s")
	if got := w.task.Apply(StopRequested{Reason: "third"}, w.now); len(got) != 0 {
		t.Errorf("a stop after the end gives %v", got)
	}
}

const meshTask = `
	~init{exit(0,3)}
	~dataplane{run hc[P] interval=5}
	~sync{run(1,0)}
	api{run(4,0) hc[P] interval=30}
	dataplane→init:SUCCESS
	sync→init:SUCCESS
	api→dataplane:HEALTHY`

func TestMeshTaskStopsAppFirst(t *testing.T) {
	t.Parallel()
	w := play(t, 50, meshTask)
	w.want("task RUNNING/RUNNING",
		"init STOPPED/RUNNING 0s..3s exit=0",
		"dataplane RUNNING/RUNNING 3s.. HEALTHY@8s(0)",
		"sync RUNNING/RUNNING 3s..",
		"api RUNNING/RUNNING 8s.. HEALTHY@38s(0)")
	w.stopTask("").to(53)
	w.want("task RUNNING/STOPPED UserInitiated",
		"init STOPPED/STOPPED 0s..3s exit=0",
		"dataplane RUNNING/STOPPED 3s.. HEALTHY@8s(0)",
		"sync STOPPED/STOPPED 3s..51s exit=0",
		"api RUNNING/STOPPED 8s.. HEALTHY@38s(0)")
	w.to(60).wantTrace("0s Start init", "3s Start dataplane", "3s Start sync", "8s Start api",
		"50s StopTask", "50s Signal sync", "50s Signal api", "54s Signal dataplane", "54s TaskStopped")
}

func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	w := play(t, 5, `a{run}`)
	w.apply(Exited{Container: "a", Code: 137, OOM: true, At: w.now})
	w.want("task STOPPED/STOPPED EssentialContainerExited ended=5s", "a STOPPED/STOPPED 0s..5s exit=137")
	if got := w.view("a").Reason; got != "OutOfMemoryError: Container killed due to memory usage" {
		t.Errorf("reason %q", got)
	}
}

func TestExecutionStoppedAtIsTheFirst(t *testing.T) {
	t.Parallel()
	w := play(t, 60, `
		a{exit(0,3)}
		b{run(1,0)}`)
	w.want("task STOPPED/STOPPED EssentialContainerExited ended=3s",
		"a STOPPED/STOPPED 0s..3s exit=0", "b STOPPED/STOPPED 0s..4s exit=0")
}

func TestRestartAfterThePeriod(t *testing.T) {
	t.Parallel()
	w := play(t, 69.9, `a{exit(1,70) boot=1 restart=60}`)
	w.want("task RUNNING/RUNNING", "a RUNNING/RUNNING 1s.. restarts=0")
	w.to(71).want("task RUNNING/RUNNING", "a RUNNING/RUNNING 1s..1m11s restarts=1")
	w.to(100).want("task RUNNING/RUNNING", "a RUNNING/RUNNING 1s..1m11s restarts=1")
	w.to(150).wantTrace("0s Start a", "1m11s Start a", "2m22s Start a")
}

func TestExitBeforePeriodIsFinal(t *testing.T) {
	t.Parallel()
	w := play(t, 60, `a{exit(1,5) restart=60}`)
	w.want("task STOPPED/STOPPED EssentialContainerExited ended=5s", "a STOPPED/STOPPED 0s..5s exit=1 restarts=0")
}

func TestIgnoredExitCodeIsFinal(t *testing.T) {
	t.Parallel()
	w := play(t, 100, `a{exit(0,70) restart=60 ignore=0}`)
	w.want("task STOPPED/STOPPED EssentialContainerExited ended=1m10s", "a STOPPED/STOPPED 0s..1m10s exit=0 restarts=0")
}

func TestStopTaskNeverRestarts(t *testing.T) {
	t.Parallel()
	w := play(t, 100, `a{run restart=60}`)
	w.stopTask("").to(200).wantTrace("0s Start a", "1m40s StopTask", "1m40s Signal a", "1m40s TaskStopped")
}

// A stop that comes while a container is being started waits for the start:
// there is no process to signal yet.
func TestStopDuringStartWaitsForIt(t *testing.T) {
	t.Parallel()
	w := play(t, 1, `
		a{run}
		b{run boot=3}
		b→a:START`)
	w.stopTask("")
	w.want("task NONE/STOPPED UserInitiated", "a RUNNING/STOPPED 0s..", "b PULLED/STOPPED")
	w.to(10).wantTrace("0s Start a", "0s Start b", "1s StopTask", "3s Signal b", "3s Signal a", "3s TaskStopped")
}

func TestStopDuringRestartWaitsForIt(t *testing.T) {
	t.Parallel()
	w := play(t, 71, `a{exit(1,70) boot=1 restart=60}`)
	w.stopTask("").to(80).wantTrace("0s Start a", "1m11s Start a", "1m11s StopTask", "1m12s Signal a",
		"1m12s TaskStopped")
}

// A restart that cannot start is an exit, with the code of the last run.
func TestFailedRestartStopsContainer(t *testing.T) {
	t.Parallel()
	w := play(t, 70, `a{exit(4,70) boot=1 restart=60}`)
	w.to(71)
	w.task.Apply(StartFailed{Container: "a", Reason: "CannotStartContainerError: gone"}, w.now)
	w.want("task STOPPED/STOPPED EssentialContainerExited ended=1m11s", "a STOPPED/STOPPED 1s..1m11s exit=4 restarts=1")
	if got := w.view("a").Reason; got != "CannotStartContainerError: gone" {
		t.Errorf("reason %q", got)
	}
}

func TestStopBeforeAnythingBegan(t *testing.T) {
	t.Parallel()
	w := newFixture(t, Options{}, `a{run}`)
	w.apply(StopRequested{Code: StopTaskFailedToStart, Reason: "ResourceInitializationError: no secret"})
	w.to(10).wantTrace("0s TaskStopped")
	w.want("task STOPPED/STOPPED TaskFailedToStart ended=0s", "a STOPPED/STOPPED")
	if next, ok := w.task.Next(); ok {
		t.Errorf("a stopped task wants a Tick at %s", next)
	}
}

// The runtime may see the end of a very short process before its start.
func TestExitBeforeStartedCountsAsBoth(t *testing.T) {
	t.Parallel()
	w := newFixture(t, Options{}, `a{run boot=5}`)
	w.to(1)
	w.task.Apply(Exited{Container: "a", Code: 3}, w.now)
	w.want("task STOPPED/STOPPED EssentialContainerExited ended=1s", "a STOPPED/STOPPED 1s..1s exit=3")
}

// A killed task gets no stop signal, and nothing in it starts or restarts any more.
func TestKilledTaskStartsAndSignalsNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		at     float64
		script string
		want   string
	}{
		"restart policy":       {100, "a{run restart=60}\nb{run}", "kill a, kill b"},
		"dependent":            {1, "~a{run}\nb{run}\nc{run}\nc→a:COMPLETE", "kill a, kill b"},
		"being started":        {1, "a{run boot=5}\nb{run}\nb→a:START", "kill a"},
		"start fails":          {1, "a{missing boot=5}", ""},
		"nothing has started":  {0, "a{run}", ""},
		"stopping":             {1, "a{deaf}", "kill a"},
		"between its restarts": {61, "a{exit(1,61) restart=60 boot=1}\nb{run}", "kill a, kill b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, Options{}, test.script)
			if test.at > 0 {
				w.to(test.at)
			}
			if name == "stopping" {
				w.apply(StopRequested{})
			}
			var got []string
			w.check = func(_ Event, actions []Action) {
				for _, a := range actions {
					switch a := a.(type) {
					case Kill:
						got = append(got, "kill "+a.Container)
					case Start, Signal:
						got = append(got, fmt.Sprintf("%T%v", a, a))
					}
				}
			}
			w.apply(StopRequested{Code: StopInfrastructureHealth, Reason: "killed", Kill: true})
			w.to(test.at + 20)
			v := w.task.View()
			if v.KnownStatus != StatusStopped || strings.Join(got, ", ") != test.want {
				t.Errorf("task %s after %s; want STOPPED after %s", v.KnownStatus, got, test.want)
			}
			for _, c := range v.Containers {
				if !c.KilledAt.IsZero() || c.Reason != "" {
					t.Errorf("container %s was killed for its stop timeout, or failed: %s", c.Name, c.Reason)
				}
			}
		})
	}
}
