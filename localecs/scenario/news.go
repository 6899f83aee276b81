package scenario

import (
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/view"
)

// News is that of one run. Several goroutines may call ClusterChanged, one each of
// the other methods.
type News struct {
	tasks  *Roster
	record *Recording
	tell   func(Event)
	served map[string]bool // the tasks that Consul sends traffic to
}

// New makes one that tells of these tasks. What is no news goes to the record only.
func NewNews(tasks *Roster, record *Recording, tell func(Event)) *News {
	return &News{tasks: tasks, record: record, tell: tell, served: map[string]bool{}}
}

// ClusterChanged is the cluster's observer.
func (n *News) ClusterChanged(e cluster.Event) {
	if told, isNews := Told(e); isNews {
		n.tell(told)
	} else {
		n.record.Note(told)
	}
}

// Told is a cluster's event for who follows the run. That an image is there is no
// news: it is on this machine.
func Told(e cluster.Event) (told Event, isNews bool) {
	told = Event{
		Time: e.At, Kind: view.Kind(e.What), Task: e.Task, Container: e.Container,
		Status: e.Value, Detail: e.Detail, Text: e.Value,
	}
	switch told.Kind {
	case view.KindDesired:
		told.Text = "asked to stop"
	case view.KindRestart:
		told.Text = "started again, " + e.Value + " so far"
	}
	if e.Detail != "" {
		told.Text += " (" + Brief(e.Detail) + ")"
	}
	return told, !(told.Kind == view.KindStatus && e.Value == scheduler.StatusPulled)
}

// CheckChanged notes a check's new status; checks are all of them, with it.
func (n *News) CheckChanged(at time.Time, c *api.HealthCheck, status string, checks Checks) {
	if of := n.tasks.Of(c.ServiceID); of.Task != nil {
		n.tell(Event{
			Time: at, Kind: view.KindCheck, Task: of.Name, Service: c.ServiceName, Check: c.Name,
			Status: status, Text: c.Name + " (" + c.ServiceName + "): " + status,
		})
	}
	n.trafficTurned(at, checks)
}

// trafficTurned tells which tasks Consul sends traffic to now, and did not before. A
// check of a node may decide that, which is no task's.
func (n *News) trafficTurned(at time.Time, checks Checks) {
	for _, t := range n.tasks.Begun() {
		in := checks.InTraffic(t.ID())
		if in == n.served[t.Name] {
			continue
		}
		n.served[t.Name] = in
		status, word := "out", "out of"
		if in {
			status, word = "in", "in"
		}
		n.tell(Event{Time: at, Kind: view.KindInTraffic, Task: t.Name, Status: status, Text: word + " traffic"})
	}
}

// TokenChanged tells that a task has logged in, or that one of its tokens is gone.
func (n *News) TokenChanged(at time.Time, token Token, gone bool) {
	status := "login"
	if gone {
		status = "logout"
	}
	for _, t := range n.tasks.Begun() {
		if token.Of(t.ID()) {
			n.tell(Event{
				Time: at, Kind: view.KindToken, Task: t.Name, Status: status, Method: token.Method, Accessor: token.Accessor,
				Text: status + " by " + token.Method,
			})
		}
	}
}
