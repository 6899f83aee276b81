package chaos

import (
	"slices"
	"time"
)

// instance is a task in the course of a schedule.
type instance struct {
	task Task
	// The instance serves from ready until gone, except in the disrupted times.
	ready, gone time.Duration
	disrupted   []interval
}

// instances follows the tasks, replacements among them.
func instances(s Schedule, w Topology) []instance {
	var all []instance
	for _, t := range w.Tasks {
		all = append(all, instance{task: t, gone: forever})
	}
	for _, e := range s.Events {
		if t, ok := w.of(e.By, s); ok && e.By != "" {
			t.Name, t.Entry = e.By, false
			all = append(all, instance{task: t, ready: readyBy(s, e.At), gone: forever})
		}
	}
	for i := range all {
		all[i].follow(s, w)
	}
	return all
}

// readyBy returns when a task that is started at a time serves.
func readyBy(s Schedule, at time.Duration) time.Duration {
	ready := at + readiness
	for _, e := range s.Events {
		if e.starting() && e.At < ready && e.End() > at {
			ready += e.For
		}
	}
	return ready
}

// follow records what the schedule does to the instance.
func (i *instance) follow(s Schedule, w Topology) {
	name := i.task.Name
	for _, e := range s.Events {
		if !slices.Contains(e.tasks(), name) {
			continue
		}
		switch {
		case e.removesTask(w, s, s.age(w, name, e.At)):
			i.gone = min(i.gone, e.At)
		case e.Kind() != "endpoint" && (e.Kind() != "partition" || e.Fault.Partition.Task == name):
			i.disrupted = append(i.disrupted, interval{e.At, e.End() + recovery})
		}
	}
}

// age returns how long the agent of a task has run at the least when something begins: since the
// task's start or its own last one.
func (s Schedule) age(w Topology, task string, at time.Duration) time.Duration {
	var born time.Duration
	for _, e := range s.Events {
		_, on := e.target(w, s)
		if e.At < at && (e.By == task || e.kills() && isAgent(on) && slices.Contains(e.tasks(), task)) {
			born = max(born, e.At)
		}
	}
	return at - born
}

// serves reports whether the instance can be counted on all the time between.
func (i instance) serves(at time.Duration) bool {
	return at >= i.ready && at < i.gone && !slices.ContainsFunc(i.disrupted, func(t interval) bool {
		return at >= t.from && at < t.to
	})
}

// sound reports whether the schedule leaves an instance of each service alone at any
// time, hits only what is there, and lets the entry live.
func (s Schedule) sound(w Topology) bool {
	all := instances(s, w)
	moments := []time.Duration{0}
	for _, e := range s.Events {
		for _, name := range e.tasks() {
			if !there(all, name, e) {
				return false
			}
		}
		if e.Unhealthy != "" && !s.switchable(e) || s.twice(e) {
			return false
		}
		moments = append(moments, e.At)
	}
	for _, i := range all {
		if i.task.Entry && i.gone != forever {
			return false
		}
	}
	for _, family := range families(w) {
		for _, at := range moments {
			if !slices.ContainsFunc(all, func(i instance) bool { return i.task.Family == family && i.serves(at) }) {
				return false
			}
		}
	}
	return true
}

// there reports whether a task can be hit when the event begins.
func there(all []instance, name string, e Event) bool {
	return slices.ContainsFunc(all, func(i instance) bool {
		return i.task.Name == name && i.ready <= e.At && i.gone >= e.At
	})
}

// families returns the services that are called.
func families(w Topology) []string {
	var names []string
	for _, t := range w.Tasks {
		if !t.Entry && !slices.Contains(names, t.Family) {
			names = append(names, t.Family)
		}
	}
	return names
}

// twice reports whether something is done to the same thing at the same time.
func (s Schedule) twice(e Event) bool {
	return slices.ContainsFunc(s.Events, func(o Event) bool {
		same := e.object() != "" && e.object() == o.object()
		return same && o.String() != e.String() && o.At <= e.End()+time.Second && o.End() >= e.At-time.Second
	})
}

// object returns what a lasting fault must not share with another.
func (e Event) object() string {
	f := e.Fault
	switch p := e.process(); e.Kind() {
	case "freeze", "slow":
		return p.Task + "/" + p.Container
	case "server":
		return "server"
	case "link":
		return "link of " + f.Link.Task
	case "partition":
		return "way of " + f.Partition.Task
	case "endpoint":
		return f.Endpoint.Name
	}
	return ""
}

// switchable reports whether an application can be made unhealthy, and healthy again:
// nothing else happens to its processes at the time.
func (s Schedule) switchable(change Event) bool {
	return !slices.ContainsFunc(s.Events, func(e Event) bool {
		other := e.process() != nil || e.Kind() == "stop" || e.Kind() == "spot" ||
			e.Unhealthy != "" && e.At != change.At
		return other && slices.Contains(e.tasks(), change.Unhealthy) && e.At <= change.End()+time.Second &&
			e.End() >= change.At-time.Second
	})
}

// Survivors returns the tasks that the schedule leaves for sure, in the order of their start.
func (s Schedule) Survivors(w Topology) []string {
	var names []string
	for _, i := range instances(s, w) {
		if i.gone == forever {
			names = append(names, i.task.Name)
		}
	}
	return names
}

// Task returns the task of that name: of the world, or one that the schedule starts.
func (s Schedule) Task(w Topology, name string) Task {
	t, _ := w.of(name, s)
	return t
}

// removesTask reports whether an event ends its task, or takes it out of traffic
// permanently; age is how long the task has run by then, at least.
func (e Event) removesTask(w Topology, s Schedule, age time.Duration) bool {
	task, on := e.target(w, s)
	switch {
	case e.Stop != "" || e.Kind() == "spot":
		return true
	case !e.kills():
		return false
	case Role(on) == HealthSync:
		return true
	case isAgent(on):
		agent, _ := task.container(Agent)
		return agent.Essential && (!agent.Restarts || age < restartAge)
	}
	return task.named(e.process().Container).Essential
}

// starting reports whether the event keeps tasks from starting.
func (e Event) starting() bool {
	if e.Fault == nil {
		return false
	}
	if p := e.Fault.Endpoint; p != nil {
		return p.Name != Protection && p.Name != ECS
	}
	return e.Fault.Server != ""
}
