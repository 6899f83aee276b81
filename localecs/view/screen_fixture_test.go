package view

import (
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
)

// begun is when every scenario of these tests began.
var begun = time.Unix(1_800_000_000, 0)

func after(d time.Duration) time.Time { return begun.Add(d) }

// seen is a container as a test writes it down: "running api", "exited(0)
// mesh-init".
func seen(name, state string) scheduler.ContainerView {
	c := scheduler.ContainerView{Name: name, KnownStatus: "RUNNING", DesiredStatus: "RUNNING", StartedAt: begun}
	health := func(status string) *scheduler.HealthView { return &scheduler.HealthView{Status: status} }
	exit := func(code int) { c.KnownStatus, c.ExitCode = "STOPPED", &code }
	switch state {
	case "waiting":
		c.KnownStatus, c.StartedAt = "PULLED", time.Time{}
	case "starting":
		c.Health = health("")
	case "healthy":
		c.Health = health("HEALTHY")
	case "unhealthy":
		c.Health = health("UNHEALTHY")
	case "stopping":
		c.DesiredStatus, c.Health = "STOPPED", health("HEALTHY")
	case "never ran":
		exit(143)
		c.StartedAt = time.Time{}
	case "exited(0)":
		exit(0)
	case "exited(1)":
		exit(1)
	case "exited(137)":
		exit(137)
	}
	return c
}

// mesh is a task of the mesh whose containers are in these states.
func mesh(name, address string, states ...string) Task {
	t := Task{Name: name, Address: address}
	t.View.PullStartedAt = after(2 * time.Second)
	t.View.KnownStatus, t.View.DesiredStatus = "RUNNING", "RUNNING"
	for i, container := range []string{"consul-client", "consul-ecs-mesh-init", "sidecar-proxy", "consul-ecs-health-sync", "api"} {
		t.View.Containers = append(t.View.Containers, seen(container, states[i]))
	}
	return t
}

func (t Task) is(known, desired string) Task {
	t.View.KnownStatus, t.View.DesiredStatus = known, desired
	return t
}

func (t Task) has(passing, critical int) Task {
	t.Checks = Checks{Passing: passing, Critical: critical}
	return t
}

// ended is the task STOPPED after so many seconds.
func (t Task) ended(after time.Duration, code, reason string) Task {
	t.View.StoppedAt = t.View.PullStartedAt.Add(after)
	t.View.StopCode, t.View.StoppedReason = code, reason
	return t.is("STOPPED", "STOPPED")
}

// hello is hello-mesh while api-1 is replaced.
func hello() State {
	return State{
		Scenario: "hello-mesh", Begun: begun,
		Step: Step{Number: 2, Count: 14, Text: "await 2 passing instances of api", SoFar: "1 of 2", Begun: after(2100 * time.Millisecond), Within: 90 * time.Second},
		Tasks: []Task{
			mesh("web", "10.42.0.4", "running", "exited(0)", "starting", "running", "waiting").is("NONE", "RUNNING"),
			mesh("api-1", "10.42.0.5", "stopping", "exited(0)", "stopping", "exited(0)", "exited(0)").is("RUNNING", "STOPPED").has(1, 2),
			mesh("api-2", "10.42.0.6", "running", "exited(0)", "healthy", "running", "unhealthy").has(3, 0),
		},
		Traffic: &Traffic{URL: "http://10.42.0.4:8080/", Rate: 20, Answered: 412, Failed: 0, Slowest: 21600 * time.Microsecond},
	}
}
