package scenario

import (
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/view"
)

// Notifier turns changes of the cluster and of Consul into events of a run. Several goroutines may call ClusterChanged, one each of
// the other methods.
type Notifier struct {
	tasks  *TaskSet
	record *Recording
	emit   func(Event)
	served map[string]bool // the tasks that Consul sends traffic to
}

// NewNotifier returns a notifier for these tasks.
func NewNotifier(tasks *TaskSet, record *Recording, emit func(Event)) *Notifier {
	return &Notifier{tasks: tasks, record: record, emit: emit, served: map[string]bool{}}
}

// ClusterChanged is the cluster's observer.
func (n *Notifier) ClusterChanged(e cluster.Event) {
	if event, shown := eventOf(e); shown {
		n.emit(event)
	} else {
		n.record.Note(event)
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
		event.Text += " (" + Brief(e.Detail) + ")"
	}
	return event, !(event.Kind == view.KindStatus && e.Value == scheduler.StatusPulled)
}

// CheckChanged reports a check's new status; checks are all checks, with it.
func (n *Notifier) CheckChanged(at time.Time, c *api.HealthCheck, status string, checks Checks) {
	if of := n.tasks.Of(c.ServiceID); of.Task != nil {
		n.emit(Event{
			Time: at, Kind: view.KindCheck, Task: of.Name, Service: c.ServiceName, Check: c.Name,
			Status: status, Text: c.Name + " (" + c.ServiceName + "): " + status,
		})
	}
	n.trafficTurned(at, checks)
}

// trafficTurned reports the tasks that Consul starts or stops sending traffic to. A
// check of a node may cause that.
func (n *Notifier) trafficTurned(at time.Time, checks Checks) {
	for _, t := range n.tasks.Started() {
		in := checks.InTraffic(t.ID())
		if in == n.served[t.Name] {
			continue
		}
		n.served[t.Name] = in
		status, word := "out", "out of"
		if in {
			status, word = "in", "in"
		}
		n.emit(Event{Time: at, Kind: view.KindInTraffic, Task: t.Name, Status: status, Text: word + " traffic"})
	}
}

// TokenChanged reports that a task has logged in, or that one of its tokens is gone.
func (n *Notifier) TokenChanged(at time.Time, token Token, gone bool) {
	status := "login"
	if gone {
		status = "logout"
	}
	for _, t := range n.tasks.Started() {
		if token.Of(t.ID()) {
			n.emit(Event{
				Time: at, Kind: view.KindToken, Task: t.Name, Status: status, Method: token.Method, Accessor: token.Accessor,
				Text: status + " by " + token.Method,
			})
		}
	}
}
