package chaos

import (
	"math/rand/v2"
	"time"
)

// hello returns a topology like examples/hello-mesh.
func hello() Topology {
	task := func(name, family string) Task {
		return Task{
			Name: name, Family: family, Entry: family == "web",
			Fail: "http://127.0.0.1:9090/health/fail", Heal: "http://127.0.0.1:9090/health/ok",
			Containers: []Container{
				{Name: "consul-client", Role: Agent, Program: "consul", Essential: true, Restarts: true},
				{Name: "sidecar-proxy", Role: Proxy, Program: "envoy", Essential: true},
				{Name: "consul-ecs-health-sync", Role: HealthSync, Program: "consul-ecs"},
				{Name: family, Role: Application, Program: "hello", Essential: true},
			},
		}
	}
	return Topology{
		Tasks: []Task{task("api-1", "api"), task("api-2", "api"), task("api-3", "api"), task("web", "web")},
	}
}

func random(seed uint64) Rand { return rand.New(rand.NewPCG(seed, 7)) }

func killed(at time.Duration, task, container, program string) Event {
	return Event{At: at, Fault: &Fault{Kill: &Kill{Task: task, Container: container, Process: program}}}
}

func replaced(e Event, by, instead string) Event {
	e.By, e.Instead = by, instead
	return e
}
