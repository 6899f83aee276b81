package scenario

import (
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/view"
)

// clusterChanged is the cluster's observer.
func (r *runner) clusterChanged(e cluster.Event) {
	if event, shown := eventOf(e); shown {
		r.emit(event)
	} else {
		r.record.Note(event)
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

// checkChanged reports a check's new status; checks are all checks, with it.
func (r *runner) checkChanged(at time.Time, c *api.HealthCheck, status string, checks allChecks) {
	if of := r.tasks.Of(c.ServiceID); of.Task != nil {
		r.emit(Event{
			Time: at, Kind: view.KindCheck, Task: of.Name, Service: c.ServiceName, Check: c.Name,
			Status: status, Text: c.Name + " (" + c.ServiceName + "): " + status,
		})
	}
	r.trafficTurned(at, checks)
}

// trafficTurned reports the tasks that Consul starts or stops sending traffic to. A
// check of a node may cause that.
func (r *runner) trafficTurned(at time.Time, checks allChecks) {
	for _, t := range r.tasks.Started() {
		in := checks.InTraffic(t.ID())
		if in == r.served[t.Name] {
			continue
		}
		r.served[t.Name] = in
		status, word := "out", "out of"
		if in {
			status, word = "in", "in"
		}
		r.emit(Event{Time: at, Kind: view.KindInTraffic, Task: t.Name, Status: status, Text: word + " traffic"})
	}
}

// tokenChanged reports that a task has logged in, or that one of its tokens is gone.
func (r *runner) tokenChanged(at time.Time, token loginToken, gone bool) {
	status := "login"
	if gone {
		status = "logout"
	}
	for _, t := range r.tasks.Started() {
		if token.Of(t.ID()) {
			r.emit(Event{
				Time: at, Kind: view.KindToken, Task: t.Name, Status: status, Method: token.Method, Accessor: token.Accessor,
				Text: status + " by " + token.Method,
			})
		}
	}
}
