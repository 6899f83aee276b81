package chaos

import (
	"slices"
	"strconv"
	"time"
)

// Rand draws random values, such as *rand.Rand, the same for the same seed.
type Rand interface {
	IntN(n int) int
	Int64N(n int64) int64
	ExpFloat64() float64
}

// The shape of schedules.
const (
	// meanGap is the mean time between the beginnings of two events.
	meanGap = 3 * time.Second
	// attempts is how many events of a kind are drawn for a beginning until one is
	// possible.
	attempts = 12
	// readiness is how long a replacement is not counted on after its start.
	readiness = 20 * time.Second
	// recovery is how long a task is not counted on after a fault that has ended.
	recovery = 8 * time.Second
	// spacing is the judged share that an event has to leave: more than LeastJudged, because a machine
	// that is late has wider windows, and so have updates about tasks that stop.
	spacing = 0.7
)

// Generate draws a schedule, always the same for the same random source and topology. Of each
// called service at least one instance is undisturbed at any time, since without one
// no answer can be expected, and most of the time no fault explains a lost request.
func Generate(random Rand, length time.Duration, w Topology) Schedule {
	kinds := kinds()
	g := &generator{rand: random, topology: w, made: Schedule{For: length}}
	for at := g.gap(); at < length; at += g.gap() {
		kind := kinds[g.rand.IntN(len(kinds))]
		for range attempts {
			e, possible := g.draw(at, kind)
			if !possible {
				continue
			}
			next := g.made
			next.Events = append(slices.Clone(next.Events), e)
			if next.sound(w) && next.Judged(w) >= spacing {
				g.made = next
				break
			}
		}
	}
	return g.made
}

type generator struct {
	rand     Rand
	topology Topology
	made     Schedule
}

// gap returns a time to the next beginning: in steps of 10 ms, exponential, at most four times the
// mean.
func (g *generator) gap() time.Duration {
	d := time.Duration(g.rand.ExpFloat64() * float64(meanGap))
	return min(d, 4*meanGap).Truncate(10*time.Millisecond) + 10*time.Millisecond
}

// length returns a random one, in steps of 100 ms.
func (g *generator) length(from, to time.Duration) time.Duration {
	return from + time.Duration(g.rand.Int64N(int64(to-from)/int64(100*time.Millisecond)+1))*100*time.Millisecond
}

// kinds returns those that are drawn, the frequent ones more than once.
func kinds() []string {
	return []string{
		"kill", "kill", "kill", "kill", "stop", "stop", "stop", "unhealthy", "freeze", "freeze", "slow", "oom", "oom",
		"spot",
		"server", "partition", "partition", "link", "endpoint", "endpoint",
	}
}

// draw draws an event of a kind that begins then. It is not possible when there is
// nothing that it could hit.
func (g *generator) draw(at time.Duration, kind string) (e Event, possible bool) {
	alive := g.alive(at)
	task := alive[g.rand.IntN(len(alive))]
	e.At = at
	possible = g.fill(&e, kind, task, alive)
	if e.For > 0 {
		e.For = min(e.For, g.made.For-at).Truncate(100 * time.Millisecond)
		possible = possible && e.For > 0
	}
	if possible && e.removesTask(g.topology, g.made, g.made.age(g.topology, task.Name, at)) && !task.Entry {
		e.By, e.Instead = g.spare(task), task.Name
	}
	return e, possible
}

func (g *generator) fill(e *Event, kind string, task Task, alive []Task) bool {
	switch kind {
	case "stop":
		e.Stop = task.Name
	case "unhealthy":
		e.Unhealthy, e.For = task.Name, g.length(time.Second, 12*time.Second)
		return task.Fail != ""
	case "spot":
		e.Fault = &Fault{Spot: &SpotInterruption{Task: task.Name}}
	case "server":
		states := []string{Down, Frozen, Slowed}
		e.Fault, e.For = &Fault{Server: states[g.rand.IntN(len(states))]}, g.length(time.Second, 15*time.Second)
	case "link":
		kbits := []int{256, 1000, 4000}
		e.Fault = &Fault{Link: &Link{Task: task.Name, KBits: kbits[g.rand.IntN(len(kbits))]}}
		e.For = g.length(2*time.Second, 15*time.Second)
	case "partition":
		from := []string{Server, Server, All, alive[g.rand.IntN(len(alive))].Name}
		p := &Partition{Task: task.Name, From: from[g.rand.IntN(len(from))]}
		e.Fault, e.For = &Fault{Partition: p}, g.length(time.Second, 15*time.Second)
		return p.From != p.Task
	case "endpoint":
		g.endpoint(e, task)
	default:
		g.process(e, kind, task)
	}
	return true
}

func (g *generator) process(e *Event, kind string, task Task) {
	c := task.Containers[g.rand.IntN(len(task.Containers))]
	p := &Process{Task: task.Name, Container: c.Name}
	// Below a supervisor there are two to kill.
	if g.rand.IntN(3) > 0 && kind != "oom" {
		p.Process = c.Program
	}
	switch kind {
	case "kill":
		e.Fault = &Fault{Kill: &Kill{Task: p.Task, Container: p.Container, Process: p.Process}}
	case "oom":
		e.Fault = &Fault{OOM: p}
	case "freeze":
		e.Fault, e.For = &Fault{Freeze: p}, g.length(500*time.Millisecond, 12*time.Second)
	case "slow":
		e.Fault, e.For = &Fault{Slow: p}, g.length(2*time.Second, 15*time.Second)
	default:
		panic("no fault of the kind " + kind)
	}
}

func (g *generator) endpoint(e *Event, task Task) {
	p := &Endpoint{}
	e.Fault, e.For = &Fault{Endpoint: p}, g.length(time.Second, 15*time.Second)
	names := endpoints()
	p.Name = names[g.rand.IntN(len(names))]
	if p.Name == Metadata && g.rand.IntN(2) == 0 {
		p.Task = task.Name
	}
	if g.rand.IntN(3) == 0 {
		p.Share = 0.5
	}
	ways := []string{"slow", "hang", "status", "cut", "wrong"}
	switch p.Name {
	case STS, IAM, ECS: // which check the times of signatures
		ways = append(ways, "skew")
	}
	g.misbehave(p, ways[g.rand.IntN(len(ways))])
}

func (g *generator) misbehave(p *Endpoint, way string) {
	statuses, wrong := []int{429, 500, 503}, []string{Empty, Truncated, Page, Error}
	skews := []time.Duration{-time.Hour, -time.Minute, time.Minute, time.Hour} // AWS takes 15 minutes
	switch way {
	case "slow":
		p.Slow = g.length(100*time.Millisecond, 4*time.Second)
	case "hang":
		p.Hang = true
	case "status":
		p.Status = statuses[g.rand.IntN(len(statuses))]
	case "cut":
		p.Cut = true
	case "wrong":
		p.Wrong = wrong[g.rand.IntN(len(wrong))]
	case "skew":
		p.Skew = skews[g.rand.IntN(len(skews))]
	}
}

// alive returns the tasks that can be hit then, in a lasting order.
func (g *generator) alive(at time.Duration) []Task {
	var alive []Task
	for _, i := range instances(g.made, g.topology) {
		if i.ready <= at && i.gone > at {
			alive = append(alive, i.task)
		}
	}
	return alive
}

func (g *generator) spare(t Task) string {
	names := 1
	for _, e := range g.made.Events {
		if e.By != "" {
			names++
		}
	}
	return t.Family + "-r" + strconv.Itoa(names)
}
