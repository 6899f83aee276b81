package simulated_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/simulated"
	"github.com/meshtask/consul-ecs/taskdef"
)

var begin = time.Date(2026, 3, 2, 17, 0, 0, 0, time.UTC)

// slowLife returns a Timing with distinguishable steps.
func slowLife() simulated.Timing {
	return simulated.Timing{
		Attach: 1 * time.Second, Pull: 2 * time.Second, Start: 4 * time.Second, Stop: 8 * time.Second,
		Detach: 16 * time.Second,
	}
}

// task begins a task whose containers are JSON.
func task(t *testing.T, timing simulated.Timing, containers string) *simulated.Task {
	t.Helper()
	doc, err := taskdef.Parse([]byte(`{"family": "web", "containerDefinitions": [` + containers + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	task, err := simulated.New(doc.Definition, simulated.LifeOptions{Timing: timing}, begin)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// words describes snapshots, those that look alike once: seconds since begin, the task's status,
// health and stop code, and its containers' exit codes.
func words(snapshots ...simulated.Snapshot) string {
	var out []string
	last := ""
	for _, m := range snapshots {
		status := m.View.KnownStatus + "/" + m.View.DesiredStatus
		switch {
		case m.Gone:
			status = "gone"
		case !m.Attached:
			status = "unattached " + status
		}
		if h := m.View.HealthStatus(); h != scheduler.HealthUnknown {
			status += " " + h
		}
		if m.View.StopCode != "" {
			status += " " + m.View.StopCode
		}
		for _, c := range m.View.Containers {
			if c.ExitCode != nil {
				status += fmt.Sprintf(" %s=%d", c.Name, *c.ExitCode)
			}
		}
		if status != last {
			out = append(out, fmt.Sprintf("%g %s", m.At.Sub(begin).Seconds(), status))
		}
		last = status
	}
	return strings.Join(out, ", ")
}

func at(seconds float64) time.Time {
	return begin.Add(time.Duration(seconds * float64(time.Second)))
}

const app = `{"name": "app", "image": "app"}`

// simulate returns the container app with a Variable.
func simulate(value string, more string) string {
	return `{"name": "app", "image": "app", "environment": [{"name": "LOCALECS_SIMULATE", "value": "` + value + `"}]` +
		more + `}`
}

func TestSimulatedContainerRuns(t *testing.T) {
	t.Parallel()
	const sick = `, "healthCheck": {"command": ["CMD", "x"], "interval": 5, "retries": 2}`
	for name, c := range map[string]struct {
		containers string
		until      float64
		want       string
	}{
		"runs": {app, 1e6, "1 NONE/RUNNING, 7 RUNNING/RUNNING"},
		"exits": {simulate("exit=3,after=10s", ""), 1e6,
			"1 NONE/RUNNING, 7 RUNNING/RUNNING, 17 STOPPED/STOPPED EssentialContainerExited app=3, 33 gone " +
				"EssentialContainerExited app=3"},
		"a side container exits": {app +
			`, {"name": "side", "image": "s", "essential": false, "environment": [{"name": "LOCALECS_SIMULATE", ` +
			`"value": "exit=2,after=1s"}]}`, 1e6,
			"1 NONE/RUNNING, 7 RUNNING/RUNNING, 8 RUNNING/RUNNING side=2"},
		"does not start": {simulate("start=no such file", ""), 1e6,
			"1 NONE/RUNNING, 7 STOPPED/STOPPED TaskFailedToStart, 23 gone TaskFailedToStart"},
		"is healthy": {simulate("", sick), 60, "1 NONE/RUNNING, 7 RUNNING/RUNNING, 12 RUNNING/RUNNING HEALTHY"},
		"gets ill": {simulate("unhealthy=9s", sick), 60,
			"1 NONE/RUNNING, 7 RUNNING/RUNNING, 12 RUNNING/RUNNING HEALTHY, 22 RUNNING/RUNNING UNHEALTHY"},
		"waits for success": {`{"name": "init", "image": "i", "essential": false}, {"name": "app", "image": "a", ` +
			`"dependsOn": [{"containerName": "init", "condition": "SUCCESS"}]}`, 1e6,
			"1 NONE/RUNNING, 7 NONE/RUNNING init=0, 11 RUNNING/RUNNING init=0"},
		"waits for health": {`{"name": "proxy", "image": "p"` + sick +
			`}, {"name": "app", "image": "a", "dependsOn": [{"containerName": "proxy", "condition": "HEALTHY"}]}`, 1000,
			"1 NONE/RUNNING, 16 RUNNING/RUNNING"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(c.containers, `"value": ""`) {
				c.containers = `{"name": "app", "image": "app"` + sick + `}`
			}
			if got := words(task(t, slowLife(), c.containers).Advance(at(c.until))...); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestStops(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		containers string
		at         float64
		want       string
	}{
		"running": {app, 100,
			"100 RUNNING/STOPPED UserInitiated, 108 STOPPED/STOPPED UserInitiated app=0, 124 gone UserInitiated app=0"},
		"deaf": {simulate("stop=never", `, "stopTimeout": 20`), 100,
			"100 RUNNING/STOPPED UserInitiated, 120 STOPPED/STOPPED UserInitiated app=137, 136 gone UserInitiated " +
				"app=137"},
		"slow": {simulate("stop=3s", ""), 100,
			"100 RUNNING/STOPPED UserInitiated, 103 STOPPED/STOPPED UserInitiated app=0, 119 gone UserInitiated app=0"},
		"unattached":    {app, 0.5, "0.5 unattached STOPPED/STOPPED UserInitiated, 16.5 gone UserInitiated"},
		"while pulling": {app, 2, "1 NONE/RUNNING, 2 STOPPED/STOPPED UserInitiated, 18 gone UserInitiated"},
		"stopped":       {simulate("exit=0", ""), 1000, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := task(t, slowLife(), c.containers)
			var snapshots []simulated.Snapshot
			if c.at >= 100 {
				task.Advance(at(c.at))
			}
			snapshots = append(snapshots, task.Stop(scheduler.StopUserInitiated, "enough", at(c.at))...)
			snapshots = append(snapshots, task.Stop("Other", "second", at(c.at))...)
			if got := words(append(snapshots, task.Advance(at(1e6))...)...); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if due, waits := task.Next(); waits {
				t.Errorf("something is left, at %s", due)
			}
		})
	}
}

func TestWithoutTimeAllHappensAtOnceAndInOrder(t *testing.T) {
	t.Parallel()
	task := task(t, simulated.Timing{}, app)
	snapshots := append(task.Advance(begin), task.Stop("Code", "reason", begin)...)
	want := "0 NONE/RUNNING, 0 RUNNING/RUNNING, 0 RUNNING/STOPPED Code, 0 STOPPED/STOPPED Code app=0, 0 gone Code app=0"
	if got := words(snapshots...); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestARestartedContainerExitsAgain(t *testing.T) {
	t.Parallel()
	task := task(t, simulated.Timing{},
		simulate("exit=1,after=60s", `, "restartPolicy": {"enabled": true, "restartAttemptPeriod": 60}`))
	snapshots := task.Advance(at(150))
	restarts := snapshots[len(snapshots)-1].View.Containers[0].RestartCount
	if *restarts != 2 {
		t.Errorf("%d restarts", *restarts)
	}
}

func TestParseBehaviour(t *testing.T) {
	t.Parallel()
	usual := simulated.Behaviour{ExitAfter: -1, UnhealthyAfter: -1, StopAfter: time.Second}
	for text, want := range map[string]string{
		"exit=3,after=10s":     "{ 10s 3 -1ns 1s}",
		"exit=0":               "{ 0s 0 -1ns 1s}",
		"start=no such file":   "{no such file -1ns 0 -1ns 1s}",
		"unhealthy=1m, stop=0": "{ -1ns 0 1m0s 0s}",
		"stop=never":           "{ -1ns 0 -1ns -1ns}",
		"": `LOCALECS_SIMULATE: "": want start=TEXT, exit=N, after=D, unhealthy=D, stop=D or ` +
			`stop=never`,
		"exit=256":         `LOCALECS_SIMULATE: "exit=256": want an exit code, 0 to 255`,
		"exit=1,after=-1s": `LOCALECS_SIMULATE: "after=-1s": want a duration such as 10s`,
		"after=1s":         `LOCALECS_SIMULATE: "after=1s": after=D requires exit=N`,
		"stop=soon":        `LOCALECS_SIMULATE: "stop=soon": want a duration such as 10s`,
	} {
		b, err := simulated.ParseBehaviour(text, usual)
		got := fmt.Sprint(b)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func FuzzParseBehaviour(f *testing.F) {
	for _, seed := range []string{"exit=3,after=10s", "start=a=b", "stop=never", "unhealthy=1h", ",", "exit"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := simulated.ParseBehaviour(text, simulated.Behaviour{ExitAfter: -1, UnhealthyAfter: -1})
		if err == nil && b.ExitCode != int(uint8(b.ExitCode)) {
			t.Errorf("%q: exit code %d", text, b.ExitCode)
		}
		if least := min(b.ExitAfter, b.UnhealthyAfter, b.StopAfter); err == nil && least < -1 {
			t.Errorf("%q: a time of %d", text, least)
		}
	})
}
