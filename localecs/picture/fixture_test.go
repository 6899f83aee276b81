package picture_test

import (
	"fmt"
	"time"

	"github.com/meshtask/consul-ecs/localecs/picture/history"
)

// small is a run of two tasks with some of everything: one stops in order, one is
// killed after its restart policy has started a container again.
func small() history.Run {
	last := 31.4
	served := make([]int, 320)
	run := history.Run{
		Scenario: "small", StopOrder: "reverse", Seed: 7, Begun: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Seconds: 40,
		Outcome: history.Failed, Failures: []string{"orderly: 3 of 300 requests failed; 0 may"},
		Tasks: []history.Task{meshed("api-1", 1, 31), {
			Name: "batch-1", ID: "b1", Address: "10.0.0.9", Application: "batch",
			Containers: []history.Container{{Name: "batch", Essential: true}, {Name: "log-router"}},
			Events: []history.Event{
				{At: 2, Kind: history.Status, Container: "batch", Status: "RUNNING"},
				{At: 2, Kind: history.Status, Status: "RUNNING"},
				{At: 12, Kind: history.Restart, Container: "batch", Status: "1"},
				{At: 18, Kind: history.Kill, Container: "batch", Detail: "SIGKILL"},
				{At: 18.1, Kind: history.Status, Container: "batch", Status: "STOPPED", Detail: "exit code 137"},
				{At: 18.1, Kind: history.Desired, Status: "STOPPED", Detail: "Essential container in task exited"},
				{At: 18.2, Kind: history.Status, Container: "log-router", Status: "STOPPED", Detail: "CannotStartContainerError: no"},
				{At: 18.2, Kind: history.Status, Status: "STOPPED", Detail: "EssentialContainerExited: Essential container in task exited"},
			},
		}},
		Steps: []history.Step{
			{Text: "start api-1", From: 1, To: 1.1}, {Text: "await 1 passing instance of api", From: 1.1, To: 13},
			{Text: "kill in batch-1", From: 18, To: 18.2, Error: "no such process"}, {Text: "stop api-1", From: 31, To: 36.5},
		},
		Faults:   []history.Step{{Text: "sts answers 429", From: 2, To: 9}, {Text: "freeze consul", Task: "api-1", From: 8, To: 15}},
		Phases:   []history.Step{{Text: "orderly", Task: "web", From: 13, To: 32}},
		Requests: history.Requests{BucketSeconds: 0.1},
		Events:   []history.Event{{At: 0.9, Kind: "consul", Detail: "leader elected"}, {At: 20, Kind: "request_failed", Detail: "EOF"}},
	}
	for i := range served {
		answered, lost := 0, 0
		if i >= 130 {
			answered = 1 + i%2
		}
		if i >= 200 && i < 203 {
			lost = 1
		}
		run.Requests.Answered, run.Requests.Lost = append(run.Requests.Answered, answered), append(run.Requests.Lost, lost)
		run.Requests.SlowestMS = append(run.Requests.SlowestMS, i%9)
		if i < 315 {
			served[i] = answered
		}
	}
	run.Tasks[0].Served, run.Tasks[0].LastServed = served, &last
	return run
}

// meshed is a task with seven containers that starts at one time and is asked to stop
// at another.
func meshed(name string, start, stop float64) history.Task {
	t := history.Task{Name: name, ID: "0123456789abcdef0123456789abcdef", Address: "10.0.0.4", Application: "api"}
	containers := []struct {
		name           string
		run, up        float64 // after the start; up is when it is healthy
		term, end      float64 // after the stop
		ended, checked bool
	}{
		{"consul-ecs-install", 0, 0, 0, 0.1, true, false},
		{"consul-client", 0.1, 0, 2.1, 5.2, false, false},
		{"consul-ecs-mesh-init", 0.15, 0, 0, 0.8, true, false},
		{"sidecar-proxy", 0.9, 5.9, 2, 2.1, false, true},
		{"consul-ecs-health-sync", 0.9, 0, 0, 2.05, false, false},
		{"api", 6, 11, 0, 2, false, true},
		{"log-router-with-a-very-long-name-indeed", 0, 0, 0, 0.3, false, false},
	}
	add := func(at float64, e history.Event) { e.At = at; t.Events = append(t.Events, e) }
	for _, c := range containers {
		t.Containers = append(t.Containers, history.Container{Name: c.name, HealthCheck: c.checked})
		add(start-0.05, history.Event{Kind: history.Status, Container: c.name, Status: "PULLED"})
		add(start+c.run, history.Event{Kind: history.Status, Container: c.name, Status: "RUNNING"})
		if c.ended {
			add(start+c.end, history.Event{Kind: history.Status, Container: c.name, Status: "STOPPED", Detail: "exit code 0"})
			continue
		}
		if c.checked {
			add(start+c.up, history.Event{Kind: history.Health, Container: c.name, Status: "HEALTHY"})
		}
		add(stop+c.term, history.Event{Kind: history.Signal, Container: c.name, Status: "TERM"})
		add(stop+c.end, history.Event{Kind: history.Status, Container: c.name, Status: "STOPPED", Detail: "exit code 0"})
	}
	for i, method := range []string{"iam-ecs-client-token", "iam-ecs-service-token"} {
		token := history.Event{Kind: history.Token, Method: method, Accessor: fmt.Sprintf("accessor-%d", i), Status: "login"}
		add(start+0.2+float64(i)/5, token)
		token.Status = "logout"
		add(stop+5.3-3*float64(i), token)
	}
	for _, check := range []string{"consul ecs synced", "Destination Alias"} {
		e := history.Event{Kind: history.Check, Service: "api", Check: check, Status: "critical"}
		add(start+0.7, e)
		e.Status = "passing"
		add(start+11.05, e)
		e.Status = "critical"
		add(stop+0.01, e)
		e.Status = "gone"
		add(stop+5, e)
	}
	add(start+11.1, history.Event{Kind: history.InTraffic, Status: "in"})
	add(stop, history.Event{Kind: history.Desired, Status: "STOPPED", Detail: "Task stopped by user"})
	add(stop+0.01, history.Event{Kind: history.InTraffic, Status: "out"})
	add(stop+5.2, history.Event{Kind: history.Status, Status: "STOPPED", Detail: "UserInitiated: Task stopped by user"})
	add(stop+5.5, history.Event{Kind: history.Cleared, Detail: "nothing left of the task"})
	sortEvents(t.Events)
	return t
}

// many is a run of ten tasks that takes ten minutes.
func many() history.Run {
	run := history.Run{Scenario: "many", Begun: time.Unix(1_800_000_000, 0).UTC(), Seconds: 620, Outcome: history.Passed}
	for i := range 10 {
		run.Tasks = append(run.Tasks, meshed(fmt.Sprintf("api-%d", i+1), 5+float64(i)*0.3, 590+float64(i)))
		run.Steps = append(run.Steps, history.Step{Text: fmt.Sprintf("start api-%d", i+1), From: 5 + float64(i)*0.3, To: 5.1 + float64(i)*0.3})
		run.Faults = append(run.Faults, history.Step{Text: "a fault with a long name that has no room", Task: "api-1", From: 300 + float64(i), To: 330})
	}
	return run
}

// tiny is over before anything could happen.
func tiny() history.Run {
	return history.Run{Scenario: "tiny", Begun: time.Unix(1_800_000_000, 0).UTC(), Seconds: 0.2, Outcome: history.Interrupted, Failures: []string{"interrupted"}, Tasks: []history.Task{{Name: "web"}}}
}
