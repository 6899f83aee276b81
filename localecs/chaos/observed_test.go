package chaos

import (
	"time"
)

const s = time.Second

// helloDefinition returns a topology like examples/hello-mesh.
func helloDefinition() Topology {
	task := func(name, family string) Task {
		return Task{Name: name, Family: family, Entry: family == "web", Containers: []Container{
			{Name: "consul-client", Role: Agent, Program: "consul", Essential: true, Restarts: true},
			{Name: "sidecar-proxy", Role: Proxy, Program: "envoy", Essential: true},
			{Name: "consul-ecs-health-sync", Role: HealthSync, Program: "consul-ecs"},
			{Name: family, Role: Application, Program: "hello", Essential: true},
		}}
	}
	return Topology{Tasks: []Task{task("api-1", "api"), task("api-2", "api"), task("web", "web")}}
}

func schedule(events ...Event) Schedule {
	return Schedule{For: time.Minute, Events: events}
}

func kill(at time.Duration, task, container, program string) Event {
	return Event{At: at, Fault: &Fault{Kill: &Kill{Task: task, Container: container, Process: program}}}
}

func freeze(at, long time.Duration, task, container string) Event {
	return Event{At: at, For: long, Fault: &Fault{Freeze: &Process{Task: task, Container: container}}}
}

func server(at, long time.Duration) Event {
	return Event{At: at, For: long, Fault: &Fault{Server: Down}}
}

func partition(at, long time.Duration, task, from string) Event {
	return Event{At: at, For: long, Fault: &Fault{Partition: &Partition{Task: task, From: from}}}
}

func endpoint(at, long time.Duration, name string) Event {
	return Event{At: at, For: long, Fault: &Fault{Endpoint: &Endpoint{Name: name, Status: 500}}}
}

// well returns what a run without any event shows: all are in traffic until the end.
func well() Observed {
	return Observed{
		Tasks: []TaskLifetime{
			{Task: "api-1", Started: -15 * s, Term: 70 * s, Stopped: 80 * s},
			{Task: "api-2", Started: -15 * s, Term: 70 * s, Stopped: 80 * s},
			{Task: "web", Started: -15 * s, Term: 70 * s, Stopped: 76 * s},
		},
		Traffic: []TrafficChange{
			{-3 * s, "api-1", true}, {-3 * s, "api-2", true}, {-3 * s, "web", true},
			{70 * s, "api-1", false}, {70 * s, "api-2", false}, {70 * s, "web", false},
		},
		States: []State{
			{75 * s, "api-1", "api", true, "is STOPPED"}, {75 * s, "api-2", "api", true, "is STOPPED"},
			{72 * s, "web", "web", true, "is STOPPED"},
		},
		Left:     []Leftover{{"api-1", Service, "service api-1", 80 * s}},
		Requests: []Request{{s, s + s/10, ""}},
		Healed:   69 * s, Ended: 85 * s,
	}
}

// ended returns well with api-1 ending at a time.
func ended(term, stopped, out time.Duration) Observed {
	o := well()
	o.Tasks[0].Term, o.Tasks[0].Stopped = term, stopped
	o.Traffic[3].At = out
	o.States[0].At = term + 5*s
	o.Left = nil
	return o
}

// with changes an observation.
func with(o Observed, change func(*Observed)) Observed {
	change(&o)
	return o
}

func failed(start, end time.Duration) func(*Observed) {
	return func(o *Observed) { o.Requests = append(o.Requests, Request{start, end, "503\n"}) }
}
