package chaos

import (
	"time"
)

// Observed is what a run under a schedule has shown. All times count from the
// beginning of the schedule, as those of its events.
type Observed struct {
	Requests []Request
	// Tasks are in the order of their start.
	Tasks []TaskLifetime
	// Traffic is when Consul began and ceased to send traffic to a task.
	Traffic []TrafficChange
	// States are those of containers as ECS has them.
	States []State
	Left   []Leftover
	Delays []Delay
	// Healed is when every task that lives was to be in the traffic again, after
	// the last fault; then all are asked to stop. Ended is the end of the record.
	Healed, Ended time.Duration
}

// Request is one of the traffic.
type Request struct {
	Start, End time.Duration
	// Error is empty for one that was answered.
	Error string
}

// TaskLifetime has the start and the end of a task; what has not come is Never.
type TaskLifetime struct {
	Task    string
	Started time.Duration
	// Term is when it was asked to stop, Stopped when it was.
	Term, Stopped time.Duration
}

// Never is a time that has not come.
const Never = forever

// TrafficChange is a change of the traffic to a task.
type TrafficChange struct {
	At   time.Duration
	Task string
	In   bool
}

// State is a change of a container.
type State struct {
	At              time.Duration
	Task, Container string
	// Unable: the container cannot serve from At on, because it is STOPPED or
	// UNHEALTHY, which is in Why.
	Unable bool
	Why    string
}

// Leftover is something of a stopped task that Consul holds.
type Leftover struct {
	Task string
	// What is ServiceToken, ClientToken, Service or AgentFails; Name names it.
	What What
	Name string
	// Gone is when it was gone, Never when it was there at the end.
	Gone time.Duration
}

// Delay is how late the simulator itself ran at a moment: what shares its machine
// is late by as much, at each hop.
type Delay struct{ At, By time.Duration }

// hops is how many processes take turns between an instance's end and the last
// caller that learns of it: ECS, health-sync, agent, server, agent, Envoy.
const hops = 6

// slack returns how much later things may happen between two moments, since the machine was late.
func (o Observed) slack(from, to time.Duration) time.Duration {
	var most time.Duration
	for _, l := range o.Delays {
		if l.At >= from-time.Second && l.At-l.By <= to+time.Second {
			most = max(most, l.By)
		}
	}
	return hops * most
}

// inTraffic returns the times in which Consul sent traffic to a task.
func (o Observed) inTraffic(task string) []interval {
	var spans []interval
	in := false
	for _, t := range o.Traffic {
		switch {
		case t.Task != task || t.In == in:
			continue
		case t.In:
			spans = append(spans, interval{t.At, forever})
		default:
			spans[len(spans)-1].to = t.At
		}
		in = t.In
	}
	return spans
}

// unable returns the times in which a task could not serve, with the reason.
func (o Observed) unable(task string) []inability {
	since := map[string]int{} // by container
	var all []inability
	for _, s := range o.States {
		i, open := since[s.Container]
		switch {
		case s.Task != task:
		case s.Unable && !open:
			since[s.Container] = len(all)
			all = append(all, inability{interval{s.At, forever}, s.Container, s.Container + " " + s.Why})
		case !s.Unable && open:
			all[i].to = s.At
			delete(since, s.Container)
		}
	}
	return all
}

type inability struct {
	interval
	container, why string
}

type interval struct{ from, to time.Duration }
