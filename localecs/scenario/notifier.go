package scenario

import (
	"context"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/view"
)

func (p *progress) clusterChanged(e cluster.Event) {
	if event, shown := eventOf(e); shown {
		p.emit(event)
	} else {
		p.record.Add(event)
	}
}

// eventOf returns the event for a change of the cluster. That an image was pulled is
// recorded only: it is on this machine.
func eventOf(e cluster.Event) (event Event, shown bool) {
	event = Event{
		Time: e.At, Kind: view.Kind(e.What), Task: e.Task, Container: e.Container,
		Status: e.Value, Detail: e.Detail, Text: e.Value,
	}
	switch event.Kind {
	case view.KindDesired:
		event.Text = "asked to stop"
	case view.KindRestart:
		event.Text = "started again, " + e.Value + " so far"
	}
	if e.Detail != "" {
		event.Text += " (" + brief(e.Detail) + ")"
	}
	return event, !(event.Kind == view.KindStatus && e.Value == scheduler.StatusPulled)
}

// consulView follows what Consul knows of the tasks of a run.
type consulView struct {
	look     ConsulQuery
	token    string // Consul's management token
	watch    *watcher
	tasks    *TaskSet
	progress *progress
	served   map[string]bool // the tasks that Consul sends traffic to
}

// checkChanged reports a check's new status; checks are all checks, with it.
func (v *consulView) checkChanged(at time.Time, c *api.HealthCheck, status string, checks allChecks) {
	if of := v.tasks.Of(c.ServiceID); of.Task != nil {
		v.progress.emit(Event{
			Time: at, Kind: view.KindCheck, Task: of.Name, Service: c.ServiceName, Check: c.Name,
			Status: status, Text: c.Name + " (" + c.ServiceName + "): " + status,
		})
	}
	v.trafficTurned(at, checks)
}

// trafficTurned reports the tasks that Consul starts or stops sending traffic to. A
// check of a node may cause that.
func (v *consulView) trafficTurned(at time.Time, checks allChecks) {
	for _, t := range v.tasks.Started() {
		in := checks.InTraffic(t.ID())
		if in == v.served[t.Name] {
			continue
		}
		v.served[t.Name] = in
		status, word := "out", "out of"
		if in {
			status, word = "in", "in"
		}
		v.progress.emit(Event{Time: at, Kind: view.KindInTraffic, Task: t.Name, Status: status,
			Text: word + " traffic"})
	}
}

// tokenChanged reports that a task has logged in, or that one of its tokens is gone.
func (v *consulView) tokenChanged(at time.Time, token loginToken, gone bool) {
	status := "login"
	if gone {
		status = "logout"
	}
	for _, t := range v.tasks.Started() {
		if token.Of(t.ID()) {
			v.progress.emit(Event{
				Time: at, Kind: view.KindToken, Task: t.Name, Status: status, Method: token.Method,
				Accessor: token.Accessor,
				Text:     status + " by " + token.Method,
			})
		}
	}
}

// passing counts the tasks of a service that Consul sends traffic to.
func (v *consulView) passing(checks allChecks, service string) int {
	n := 0
	for _, t := range v.tasks.Started() {
		if t.Definition.Family == service && checks.InTraffic(t.ID()) {
			n++
		}
	}
	return n
}

// tokens counts the login tokens of a task.
func (v *consulView) tokens(ctx context.Context, task string) (n int, err error) {
	found, err := v.look.left(ctx, v.tasks.clusterTask(task).ID())
	for _, l := range found {
		if l.Token != "" {
			n++
		}
	}
	return n, err
}
