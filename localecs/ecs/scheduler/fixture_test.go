package scheduler

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/taskdef"
)

// fixture is a virtual machine that answers actions with events, in virtual
// time. Its containers are written in the notation of the conformance
// checklist, one per line:
//
//	a{run}                    exits 0 at once on TERM
//	~b{run(2,7) stop=2}       not essential; on TERM waits 2 s, exits 7
//	c{deaf}                   dies by KILL only, with 137
//	d{exit(3,2) hc[F P]}      exits 3 after 2 s; probe results in order
//	e{missing} f{noimage}     cannot be started, cannot be pulled
//	b→a:HEALTHY               b dependsOn a
//
// Probe results: P passes, F exits 1, T times out, a number is an exit code,
// P/3 takes 3 s. Settings: interval= timeout= retries= period= start= stop=
// restart= (period in seconds) ignore= (exit code) boot= (seconds to start).
type fixture struct {
	t          testing.TB
	task       *Task
	zero, now  time.Time
	containers map[string]*simulated
	queue      []queued
	trace      []string
	// check, if set, sees every Apply.
	check func(ev Event, actions []Action)
}

type queued struct {
	at time.Time
	// run is the run of the container that the event belongs to; 0 is any.
	run   int
	name  string
	event func() Event
}

type simulated struct {
	behaviour string
	args      []int
	boot      time.Duration
	probes    []string
	run       int // counts starts; odd jobs of earlier runs are dropped
	alive     bool
}

var (
	containerLine = regexp.MustCompile(`^(~?)(\w+)\{(\w+)(?:\((\d+),(\d+)\))?(.*)\}$`)
	edgeLine      = regexp.MustCompile(`^(\w+)→(\w+):(\w+)$`)
	probeList     = regexp.MustCompile(`hc\[([^\]]*)\]`)
)

// newFixture parses a script and begins its task at second 0.
func newFixture(t testing.TB, opts Options, script string) *fixture {
	t.Helper()
	w := &fixture{t: t, zero: time.Date(2026, 3, 2, 17, 0, 0, 0, time.UTC), containers: map[string]*simulated{}}
	w.now = w.zero
	def := w.parse(script)
	w.task = New(def, opts, w.zero)
	return w
}

// play runs newFixture with the default options for the given seconds.
func play(t testing.TB, seconds float64, script string) *fixture {
	t.Helper()
	w := newFixture(t, Options{}, script)
	w.to(seconds)
	return w
}

func (w *fixture) parse(script string) *taskdef.TaskDefinition {
	w.t.Helper()
	def := &taskdef.TaskDefinition{}
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if m := containerLine.FindStringSubmatch(line); m != nil {
			def.ContainerDefinitions = append(def.ContainerDefinitions, w.container(m))
		} else if m := edgeLine.FindStringSubmatch(line); m != nil {
			c := def.Container(m[1])
			c.DependsOn = append(c.DependsOn, taskdef.Dependency{ContainerName: m[2], Condition: m[3]})
		} else if line != "" {
			w.t.Fatalf("bad script line %q", line)
		}
	}
	return def
}

func (w *fixture) container(m []string) taskdef.Container {
	essential := m[1] == ""
	c := taskdef.Container{Name: m[2], Image: "image-" + m[2], Essential: &essential}
	s := &simulated{behaviour: m[3]}
	for _, arg := range m[4:6] {
		n, _ := strconv.Atoi(arg)
		s.args = append(s.args, n)
	}
	w.containers[c.Name] = s
	if p := probeList.FindStringSubmatch(m[6]); p != nil {
		s.probes = strings.Fields(p[1])
		c.HealthCheck = &taskdef.HealthCheck{Command: []string{"CMD", "check"}}
	}
	for _, word := range strings.Fields(probeList.ReplaceAllString(m[6], "")) {
		key, value, _ := strings.Cut(word, "=")
		n, err := strconv.Atoi(value)
		if err != nil {
			w.t.Fatalf("bad setting %q", word)
		}
		switch key {
		case "interval":
			c.HealthCheck.Interval = &n
		case "timeout":
			c.HealthCheck.Timeout = &n
		case "retries":
			c.HealthCheck.Retries = &n
		case "period":
			c.HealthCheck.StartPeriod = &n
		case "start":
			c.StartTimeout = &n
		case "stop":
			c.StopTimeout = &n
		case "restart":
			c.RestartPolicy = &taskdef.RestartPolicy{Enabled: true, RestartAttemptPeriod: &n}
		case "ignore":
			c.RestartPolicy.IgnoredExitCodes = []int{n}
		case "boot":
			s.boot = time.Duration(n) * time.Second
		default:
			w.t.Fatalf("bad setting %q", word)
		}
	}
	return c
}

// to runs the fixture up to and including the given second.
func (w *fixture) to(seconds float64) *fixture {
	w.t.Helper()
	end := w.zero.Add(time.Duration(seconds * float64(time.Second)))
	for steps := 0; ; steps++ {
		if steps > 100000 {
			w.t.Fatalf("no end of steps at %s", w.clock())
		}
		tick, wants := w.task.Next()
		switch {
		case len(w.queue) > 0 && !w.queue[0].at.After(end) && (!wants || !w.queue[0].at.After(tick)):
			q := w.queue[0]
			w.queue = w.queue[1:]
			w.now = later(w.now, q.at)
			s := w.containers[q.name]
			if present := s == nil || q.run == s.run; present || q.run == 0 {
				w.apply(q.event())
			}
		case wants && !tick.After(end):
			w.now = later(w.now, tick)
			w.apply(Tick{})
			if next, ok := w.task.Next(); ok && !next.After(w.now) {
				w.t.Fatalf("after a Tick at %s Next is %s", w.clock(), next.Sub(w.zero))
			}
		default:
			w.now = end
			return w
		}
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// stopTask calls StopTask of the ECS API, now.
func (w *fixture) stopTask(reason string) *fixture {
	w.t.Helper()
	w.trace = append(w.trace, w.clock()+" StopTask")
	w.apply(StopRequested{Reason: reason})
	return w
}

func (w *fixture) apply(ev Event) {
	w.t.Helper()
	actions := w.task.Apply(ev, w.now)
	if w.check != nil {
		w.check(ev, actions)
	}
	for _, a := range actions {
		w.act(a)
	}
}

// act answers one action.
func (w *fixture) act(a Action) {
	switch a := a.(type) {
	case Pull:
		if w.containers[a.Container].behaviour == "noimage" {
			w.after(0, a.Container, PullFailed{Container: a.Container, Reason: "not found"})
			return
		}
		w.after(0, a.Container, PullDone{Container: a.Container})
	case Start:
		w.note("Start", a.Container)
		w.start(a.Container)
	case Signal:
		w.note("Signal", a.Container)
		s := w.containers[a.Container]
		switch s.behaviour {
		case "deaf":
		case "run":
			w.exit(a.Container, time.Duration(s.args[0])*time.Second, s.args[1])
		default:
			w.exit(a.Container, 0, 0)
		}
	case Kill:
		w.note("Kill", a.Container)
		w.exit(a.Container, 0, 137)
	case Probe:
		w.note("Probe", a.Container)
		w.probe(a)
	case TaskStopped:
		w.note("TaskStopped", "")
	}
}

func (w *fixture) start(name string) {
	s := w.containers[name]
	s.run++
	if s.behaviour == "missing" {
		w.after(s.boot, name, StartFailed{Container: name, Reason: "no such file"})
		return
	}
	w.later(s.boot, name, func() Event {
		s.alive = true
		if s.behaviour == "exit" {
			w.exit(name, time.Duration(s.args[1])*time.Second, s.args[0])
		}
		return Started{Container: name, At: w.now}
	})
}

// exit ends the present run of a container, unless it ended before.
func (w *fixture) exit(name string, after time.Duration, code int) {
	s := w.containers[name]
	w.later(after, name, func() Event {
		if !s.alive {
			return Tick{}
		}
		s.alive = false
		return Exited{Container: name, Code: code, At: w.now}
	})
}

func (w *fixture) probe(a Probe) {
	s := w.containers[a.Container]
	began := w.now
	word, tail := s.probes[0], s.probes[1:]
	if len(tail) > 0 {
		s.probes = tail
	}
	result, duration, _ := strings.Cut(word, "/")
	seconds, _ := strconv.Atoi(duration)
	took := time.Duration(seconds) * time.Second
	done := ProbeDone{Container: a.Container, StartedAt: began, Output: "output " + w.clock()}
	switch result {
	case "P":
	case "F":
		done.Code = 1
	case "T":
		took, done.TimedOut = a.Timeout, true
	default:
		done.Code, _ = strconv.Atoi(result)
	}
	w.later(took, a.Container, func() Event {
		done.At = w.now
		return done
	})
}

func (w *fixture) after(d time.Duration, name string, ev Event) {
	w.later(d, name, func() Event { return ev })
}

// later queues an event of the container's present run.
func (w *fixture) later(d time.Duration, name string, event func() Event) {
	q := queued{at: w.now.Add(d), run: w.containers[name].run, name: name, event: event}
	i, _ := slices.BinarySearchFunc(w.queue, q, func(x, y queued) int {
		if x.at.After(y.at) {
			return 1
		}
		return -1
	})
	w.queue = slices.Insert(w.queue, i, q)
}

func (w *fixture) note(what, name string) {
	w.trace = append(w.trace, strings.TrimSpace(w.clock()+" "+what+" "+name))
}

// clock returns the virtual time as "12s".
func (w *fixture) clock() string { return w.now.Sub(w.zero).String() }

// wantTrace compares all that was asked of the fixture, probes left out.
func (w *fixture) wantTrace(want ...string) {
	w.t.Helper()
	got := slices.DeleteFunc(slices.Clone(w.trace), func(s string) bool { return strings.Contains(s, " Probe ") })
	if !slices.Equal(got, want) {
		w.t.Errorf("trace is\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// wantProbes compares the times of a container's probes.
func (w *fixture) wantProbes(name string, want ...string) {
	w.t.Helper()
	var got []string
	for _, s := range w.trace {
		if at, ok := strings.CutSuffix(s, " Probe "+name); ok {
			got = append(got, at)
		}
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("probes of %s at %q, want %q", name, got, want)
	}
}

// want compares the present state: one string for the task, one per container,
// as state prints them.
func (w *fixture) want(want ...string) {
	w.t.Helper()
	if got := w.state(); !slices.Equal(got, want) {
		w.t.Errorf("state at %s is\n  %s\nwant\n  %s", w.clock(), strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// state prints "task K/D code execution-stopped" and for each container
// "name K/D [started..finished] exit=N health".
func (w *fixture) state() []string {
	v := w.task.View()
	line := fmt.Sprintf("task %s/%s", v.KnownStatus, v.DesiredStatus)
	if v.StopCode != "" {
		line += " " + v.StopCode
	}
	if !v.ExecutionStoppedAt.IsZero() {
		line += " ended=" + w.since(v.ExecutionStoppedAt)
	}
	lines := []string{line}
	for _, c := range v.Containers {
		line := fmt.Sprintf("%s %s/%s", c.Name, c.KnownStatus, c.DesiredStatus)
		if !c.StartedAt.IsZero() {
			line += " " + w.since(c.StartedAt) + ".."
		}
		if !c.FinishedAt.IsZero() {
			line += w.since(c.FinishedAt)
		}
		if c.ExitCode != nil {
			line += fmt.Sprintf(" exit=%d", *c.ExitCode)
		}
		if c.Health != nil {
			line += " " + w.health(*c.Health)
		}
		if c.RestartCount != nil {
			line += fmt.Sprintf(" restarts=%d", *c.RestartCount)
		}
		lines = append(lines, line)
	}
	return lines
}

// health prints "{}" or "HEALTHY@5s(code)".
func (w *fixture) health(h HealthView) string {
	if h.Status == HealthStarting {
		return "{}"
	}
	return fmt.Sprintf("%s@%s(%d)", h.Status, w.since(h.Since), h.ExitCode)
}

func (w *fixture) since(at time.Time) string { return at.Sub(w.zero).String() }

// view returns one container.
func (w *fixture) view(name string) ContainerView {
	w.t.Helper()
	c, ok := w.task.View().Container(name)
	if !ok {
		w.t.Fatalf("no container %s", name)
	}
	return c
}
