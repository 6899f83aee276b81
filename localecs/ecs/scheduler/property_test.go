package scheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/taskdef"
)

// TestPropertyInvariants runs random tasks with random programs and checks after
// every event what must hold whatever happens.
func TestPropertyInvariants(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		if !runRandomTask(t, seed) {
			return
		}
	}
}

func runRandomTask(t *testing.T, seed uint64) bool {
	r := rand.New(rand.NewPCG(seed, 1))
	script := randomScript(r)
	opts := Options{AtOnce: r.IntN(2) == 1, GatePeriod: time.Duration(r.IntN(2)) * 5 * time.Second}
	w := newFixture(t, opts, script)
	inv := newInvariants(w, opts)
	w.check = inv.check
	// Noise that must not matter, and one stop request.
	for range r.IntN(30) {
		ev := randomNoise(r, w)
		w.queue = append(w.queue, queued{at: w.zero.Add(time.Duration(r.IntN(120)) * time.Second), event: func() Event {
			return ev
		}})
	}
	slices.SortStableFunc(w.queue, func(a, b queued) int { return a.at.Compare(b.at) })
	stopAt := float64(r.IntN(180))
	w.to(stopAt)
	w.apply(StopRequested{Reason: "end"})
	// Starts under way end within 5 s each and chains add up.
	w.to(stopAt + inv.longestStop().Seconds())
	if v := w.task.View(); v.KnownStatus != StatusStopped || inv.ended != 1 {
		inv.fail("not stopped %s after the stop request, TaskStopped said %d times", inv.longestStop(), inv.ended)
	}
	if inv.failed {
		t.Errorf("seed %d, options %+v, script\n%s\ntrace\n  %s", seed, opts, script, strings.Join(w.trace, "\n  "))
	}
	return !inv.failed
}

// randomScript writes a task that Validate would accept but for its figures.
func randomScript(r *rand.Rand) string {
	var lines []string
	n := 1 + r.IntN(6)
	essential := make([]bool, n)
	checked := make([]bool, n)
	essential[r.IntN(n)] = true
	for i := range n {
		essential[i] = essential[i] || r.IntN(3) == 0
		behaviour := []string{"run(0,0)", "run(1,0)", "run(7,3)", "deaf(0,0)", "exit(0,1)", "exit(0,9)", "exit(2,3)",
			"exit(1,70)", "missing(0,0)", "noimage(0,0)"}[min(r.IntN(12)%11, 9)]
		if rare := behaviour == "missing(0,0)" || behaviour == "noimage(0,0)"; rare && r.IntN(3) > 0 {
			behaviour = "run(0,0)"
		}
		line := fmt.Sprintf("c%d{%s stop=%d boot=%d", i, behaviour, 2+r.IntN(8), r.IntN(5))
		if checked[i] = r.IntN(2) == 0; checked[i] {
			line += fmt.Sprintf(" hc[%s] interval=%d retries=%d period=%d",
				[]string{"P", "F", "F F P", "P F F P F", "T", "P/6 F/7"}[r.IntN(6)], 5+r.IntN(6), 1+r.IntN(3),
				r.IntN(20))
		}
		if r.IntN(3) == 0 {
			line += fmt.Sprintf(" start=%d", 2+r.IntN(20))
		}
		if r.IntN(4) == 0 {
			line += " restart=60"
		}
		if !essential[i] {
			line = "~" + line
		}
		lines = append(lines, line+"}")
	}
	for i := range n {
		for j := range i {
			conditions := []string{"START"}
			if !essential[j] {
				conditions = append(conditions, "COMPLETE", "SUCCESS")
			}
			if checked[j] {
				conditions = append(conditions, "HEALTHY")
			}
			if r.IntN(3) == 0 {
				lines = append(lines, fmt.Sprintf("c%d→c%d:%s", i, j, conditions[r.IntN(len(conditions))]))
			}
		}
	}
	// Definition order must not matter for what holds.
	r.Shuffle(n, func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	return strings.Join(lines, "\n")
}

// randomNoise returns an event that is out of place: without a request, or about an unknown container.
func randomNoise(r *rand.Rand, w *fixture) Event {
	names := []string{"nobody"}
	for name, s := range w.containers {
		if s.behaviour == "noimage" {
			continue // its duplicate would be the truth
		}
		names = append(names, name)
	}
	slices.Sort(names)
	name := names[r.IntN(len(names))]
	return []Event{
		Tick{}, PullDone{Container: "nobody"}, Started{Container: "nobody"}, StartFailed{Container: "nobody"},
		Exited{Container: "nobody"}, PullDone{Container: name}, ProbeDone{Container: name, Code: 1},
	}[r.IntN(7)]
}

// invariants checks a fixture from outside: from Views and actions only.
type invariants struct {
	w      *fixture
	opts   Options
	def    map[string]taskdef.Container
	before View
	failed bool

	signalled, killed map[string]time.Time
	probing, started  map[string]bool
	ended             int
}

func newInvariants(w *fixture, opts Options) *invariants {
	inv := &invariants{w: w, opts: opts, def: map[string]taskdef.Container{}, before: w.task.View(),
		signalled: map[string]time.Time{}, killed: map[string]time.Time{}, probing: map[string]bool{},
		started: map[string]bool{}}
	// The definition is read back from the task's own edges: names suffice.
	for _, c := range w.task.containers {
		def := taskdef.Container{Name: c.name}
		for _, d := range c.dependencies {
			def.DependsOn = append(def.DependsOn, taskdef.Dependency{ContainerName: d.on.name, Condition: d.condition})
		}
		inv.def[c.name] = def
	}
	return inv
}

func (inv *invariants) fail(format string, args ...any) {
	inv.failed = true
	inv.w.t.Errorf("at %s: "+format, append([]any{inv.w.clock()}, args...)...)
}

// longestStop bounds the time to the end: every container one after the
// other, its start under way and its stop timeout.
func (inv *invariants) longestStop() time.Duration {
	sum := inv.opts.GatePeriod // of a poll that the stop falls into
	for _, c := range inv.w.task.containers {
		sum += c.stopTimeout + inv.w.containers[c.name].boot
	}
	return sum
}

func (inv *invariants) check(ev Event, actions []Action) {
	now := inv.w.task.View()
	if p, ok := ev.(ProbeDone); ok {
		inv.probing[p.Container] = false
	}
	inv.checkTask(now, actions)
	for i, c := range now.Containers {
		inv.checkContainer(now, inv.before.Containers[i], c)
	}
	for _, a := range actions {
		inv.checkAction(now, a)
	}
	inv.before = now
}

func rank(status string) int {
	return slices.Index([]string{StatusNone, StatusPulled, StatusRunning, StatusStopped}, status)
}

func (inv *invariants) checkTask(now View, actions []Action) {
	was := inv.before
	if rank(now.KnownStatus) < rank(was.KnownStatus) || rank(now.DesiredStatus) < rank(was.DesiredStatus) {
		inv.fail("task went from %s/%s to %s/%s", was.KnownStatus, was.DesiredStatus, now.KnownStatus,
			now.DesiredStatus)
	}
	stopped := [...]string{was.StopCode, was.StoppedReason}
	if was.StopCode != "" && stopped != [...]string{now.StopCode, now.StoppedReason} {
		inv.fail("stop code changed to %s", now.StopCode)
	}
	if !was.ExecutionStoppedAt.IsZero() && !was.ExecutionStoppedAt.Equal(now.ExecutionStoppedAt) {
		inv.fail("ExecutionStoppedAt changed")
	}
	if last := len(actions) - 1; slices.Contains(actions, Action(TaskStopped{})) && actions[last] != (TaskStopped{}) {
		inv.fail("TaskStopped is not the last of %v", actions)
	}
	if was.KnownStatus == StatusStopped && len(actions) > 0 {
		inv.fail("actions after the end: %v", actions)
	}
}

func (inv *invariants) checkContainer(task View, was, is ContainerView) {
	if rank(is.KnownStatus) < rank(was.KnownStatus) || rank(is.DesiredStatus) < rank(was.DesiredStatus) {
		inv.fail("%s went from %s/%s to %s/%s", is.Name, was.KnownStatus, was.DesiredStatus, is.KnownStatus,
			is.DesiredStatus)
	}
	if task.DesiredStatus == StatusStopped && is.DesiredStatus != StatusStopped {
		inv.fail("%s is desired RUNNING in a stopping task", is.Name)
	}
	if ended := is.Essential && is.KnownStatus == StatusStopped; ended && task.DesiredStatus != StatusStopped {
		inv.fail("essential %s is STOPPED and the task is not", is.Name)
	}
	if (is.KnownStatus == StatusRunning) && is.StartedAt.IsZero() {
		inv.fail("%s runs without StartedAt", is.Name)
	}
	if !was.StartedAt.IsZero() && !was.StartedAt.Equal(is.StartedAt) {
		inv.fail("StartedAt of %s changed", is.Name)
	}
	if is.KnownStatus != StatusStopped && is.ExitCode != nil {
		inv.fail("%s has an exit code while %s", is.Name, is.KnownStatus)
	}
	checked := is.Health != nil && was.Health != nil && is.Health.Status == was.Health.Status
	if checked && *is.Health != *was.Health {
		inv.fail("health of %s changed without its status", is.Name)
	}
}

func (inv *invariants) checkAction(now View, a Action) {
	switch a := a.(type) {
	case Start:
		inv.checkStart(now, a)
		inv.probing[a.Container] = false
	case Signal:
		if _, again := inv.signalled[a.Container]; again || now.DesiredStatus != StatusStopped {
			inv.fail("%s is signalled again or without need", a.Container)
		}
		inv.signalled[a.Container] = inv.w.now
		inv.checkSignal(now, a.Container)
	case Kill:
		at, signalled := inv.signalled[a.Container]
		_, again := inv.killed[a.Container]
		if early := !signalled || inv.w.now.Sub(at) < 2*time.Second; again || early {
			inv.fail("%s is killed again or early", a.Container)
		}
		inv.killed[a.Container] = inv.w.now
	case Probe:
		if c, _ := now.Container(a.Container); inv.probing[a.Container] || c.KnownStatus != StatusRunning {
			inv.fail("%s is probed twice at a time or while %s", a.Container, c.KnownStatus)
		}
		inv.probing[a.Container] = true
	case TaskStopped:
		inv.ended++
	}
}

func (inv *invariants) checkStart(now View, a Start) {
	if now.DesiredStatus == StatusStopped {
		inv.fail("%s is started in a stopping task", a.Container)
	}
	for _, c := range now.Containers {
		if c.KnownStatus == StatusNone {
			inv.fail("%s is started before %s is pulled", a.Container, c.Name)
		}
	}
	if inv.started[a.Container] { // a restart
		return
	}
	inv.started[a.Container] = true
	for _, d := range inv.def[a.Container].DependsOn {
		on, _ := now.Container(d.ContainerName)
		exited := on.KnownStatus == StatusStopped && on.ExitCode != nil && !on.StartedAt.IsZero()
		ok := false
		switch d.Condition {
		case "START":
			ok = on.KnownStatus == StatusRunning || exited
		case "COMPLETE":
			ok = exited
		case "SUCCESS":
			ok = exited && *on.ExitCode == 0
		case "HEALTHY":
			ok = on.KnownStatus == StatusRunning && on.Health.Status == HealthHealthy
		}
		if !ok {
			inv.fail("%s is started while %s is not %s", a.Container, on.Name, d.Condition)
		}
	}
}

func (inv *invariants) checkSignal(now View, name string) {
	if inv.opts.AtOnce {
		return
	}
	for dependent, def := range inv.def {
		for _, d := range def.DependsOn {
			if c, _ := now.Container(dependent); d.ContainerName == name && c.KnownStatus != StatusStopped {
				inv.fail("%s is signalled while its dependent %s is %s", name, dependent, c.KnownStatus)
			}
		}
	}
}
