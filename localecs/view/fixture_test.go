package view_test

import (
	"fmt"
	"time"

	"github.com/meshtask/consul-ecs/localecs/view"
)

// small returns a run of two tasks with some of everything: one stops in order, one is killed after
// its restart policy has started a container again.
func small() view.RecordedRun {
	last := 31.4
	run := view.RecordedRun{
		Scenario: "small", StopOrder: "reverse", Seed: 7, Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Seconds: 40,
		Outcome: view.Failed, Failures: []string{"orderly: 3 of 300 requests failed; 0 may"},
		Tasks: []view.RecordedTask{meshed("api-1", 1, 31), {
			Name: "batch-1", ID: "b1", Address: "10.0.0.9",
			Containers: []view.RecordedContainer{{Name: "batch", Essential: true}, {Name: "log-router"}},
			Events: []view.RecordedEvent{
				{At: 2, Kind: view.KindStatus, Container: "batch", Status: "RUNNING"},
				{At: 2, Kind: view.KindStatus, Status: "RUNNING"},
				{At: 12, Kind: view.KindRestart, Container: "batch", Status: "1"},
				{At: 18, Kind: view.KindKill, Container: "batch", Detail: "SIGKILL"},
				{At: 18.1, Kind: view.KindStatus, Container: "batch", Status: "STOPPED", Detail: "exit code 137"},
				{At: 18.1, Kind: view.KindDesired, Status: "STOPPED", Detail: "Essential container in task exited"},
				{At: 18.2, Kind: view.KindStatus, Container: "log-router", Status: "STOPPED",
					Detail: "CannotStartContainerError: no"},
				{At: 18.2, Kind: view.KindStatus, Status: "STOPPED",
					Detail: "EssentialContainerExited: Essential container in task exited"},
			},
		}},
		Steps: []view.RecordedStep{
			{Text: "start api-1", From: 1, To: 1.1}, {Text: "await 1 passing instance of api", From: 1.1, To: 13},
			{Text: "kill in batch-1", From: 18, To: 18.2, Error: "no such process"},
			{Text: "stop api-1", From: 31, To: 36.5},
		},
		Faults: []view.RecordedStep{
			{Text: "sts answers 429", From: 2, To: 9}, {Text: "freeze consul", Task: "api-1", From: 8, To: 15},
		},
		Phases:   []view.RecordedStep{{Text: "orderly", Task: "web", From: 13, To: 32}},
		Requests: view.RecordedRequests{BucketSeconds: 0.1},
		Events: []view.RecordedEvent{
			{At: 0.9, Kind: "consul", Detail: "leader elected"}, {At: 20, Kind: "request_failed", Detail: "EOF"},
		},
	}
	for i := range 320 {
		answered, lost := 0, 0
		if i >= 130 {
			answered = 1 + i%2
		}
		if i >= 200 && i < 203 {
			lost = 1
		}
		run.Requests.Answered, run.Requests.Lost = append(run.Requests.Answered, answered),
			append(run.Requests.Lost, lost)
		run.Requests.SlowestMS = append(run.Requests.SlowestMS, i%9)
	}
	run.Tasks[0].LastServed = &last
	return run
}

// meshed returns a task with seven containers that starts at one time and is asked to stop at another.
func meshed(name string, start, stop float64) view.RecordedTask {
	t := view.RecordedTask{Name: name, ID: "0123456789abcdef0123456789abcdef", Address: "10.0.0.4"}
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
	add := func(at float64, e view.RecordedEvent) { e.At = at; t.Events = append(t.Events, e) }
	for _, c := range containers {
		t.Containers = append(t.Containers, view.RecordedContainer{Name: c.name, HealthCheck: c.checked})
		add(start-0.05, view.RecordedEvent{Kind: view.KindStatus, Container: c.name, Status: "PULLED"})
		add(start+c.run, view.RecordedEvent{Kind: view.KindStatus, Container: c.name, Status: "RUNNING"})
		if c.ended {
			add(start+c.end, view.RecordedEvent{Kind: view.KindStatus, Container: c.name, Status: "STOPPED",
				Detail: "exit code 0"})
			continue
		}
		if c.checked {
			add(start+c.up, view.RecordedEvent{Kind: view.KindHealth, Container: c.name, Status: "HEALTHY"})
		}
		add(stop+c.term, view.RecordedEvent{Kind: view.KindSignal, Container: c.name, Status: "TERM"})
		add(stop+c.end, view.RecordedEvent{Kind: view.KindStatus, Container: c.name, Status: "STOPPED",
			Detail: "exit code 0"})
	}
	for i, method := range []string{"iam-ecs-client-token", "iam-ecs-service-token"} {
		token := view.RecordedEvent{
			Kind: view.KindToken, Method: method, Accessor: fmt.Sprintf("accessor-%d", i), Status: "login",
		}
		add(start+0.2+float64(i)/5, token)
		token.Status = "logout"
		add(stop+5.3-3*float64(i), token)
	}
	for _, check := range []string{"consul ecs synced", "Destination Alias"} {
		e := view.RecordedEvent{Kind: view.KindCheck, Service: "api", Check: check, Status: "critical"}
		add(start+0.7, e)
		e.Status = "passing"
		add(start+11.05, e)
		e.Status = "critical"
		add(stop+0.01, e)
		e.Status = "gone"
		add(stop+5, e)
	}
	add(start+11.1, view.RecordedEvent{Kind: view.KindInTraffic, Status: "in"})
	add(stop, view.RecordedEvent{Kind: view.KindDesired, Status: "STOPPED", Detail: "Task stopped by user"})
	add(stop+0.01, view.RecordedEvent{Kind: view.KindInTraffic, Status: "out"})
	add(stop+5.2, view.RecordedEvent{Kind: view.KindStatus, Status: "STOPPED",
		Detail: "UserInitiated: Task stopped by user"})
	add(stop+5.5, view.RecordedEvent{Kind: view.KindCleared, Detail: "nothing left of the task"})
	sortEvents(t.Events)
	return t
}

// tiny returns a run that is over before anything could happen.
func tiny() view.RecordedRun {
	return view.RecordedRun{
		Scenario: "tiny", Started: time.Unix(1_800_000_000, 0).UTC(), Seconds: 0.2, Outcome: view.Interrupted,
		Failures: []string{"interrupted"}, Tasks: []view.RecordedTask{{Name: "web"}},
	}
}
