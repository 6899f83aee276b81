package view

import (
	"cmp"
	"slices"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
)

// Moment is a moment of a task's start or stop.
type Moment struct {
	Text string
	// Since is how many seconds it is after the first container runs, or the task is asked to stop.
	At, Since float64
}

// task is a task with the lanes of its containers.
type task struct {
	RecordedTask
	containers []Lane
}

// when returns the time of the first event of a kind, no earlier than from, about a container or, with an
// empty name, about the task. An empty status is any.
func (t task) when(from float64, kind Kind, container, status string) float64 {
	for _, e := range t.Events {
		if e.At >= from && e.Kind == kind && e.Container == container && (status == "" || e.Status == status) {
			return e.At
		}
	}
	return never
}

// Moments returns how a task started and stopped: what has come of each, in the order of time.
func Moments(t RecordedTask, lanes []Lane) []Moment {
	of := task{t, slices.DeleteFunc(slices.Clone(lanes), func(l Lane) bool { return l.Kind != LaneContainer })}
	term := of.when(0, KindDesired, "", "")
	stops := term // or when a container ended by itself a moment before
	for _, l := range of.containers {
		if term >= 0 && l.Ended > term-0.5 {
			stops = min(stops, l.Ended)
		}
	}
	start, stop := of.start(), of.stop(term, stops)
	for _, l := range of.containers {
		if ended := (Moment{l.Name + " is STOPPED", l.Ended, 0}); term >= 0 && l.Ended >= stops {
			stop = append(stop, ended)
		} else {
			start = append(start, ended)
		}
	}
	return append(since(of.began(), start), since(term, stop)...)
}

// began returns when the first container ran.
func (t task) began() float64 {
	began := never
	for _, l := range t.containers {
		if l.Began >= 0 && (began < 0 || l.Began < began) {
			began = l.Began
		}
	}
	return began
}

func (t task) start() []Moment {
	all := []Moment{
		{"the first login to Consul", t.when(0, KindToken, "", "login"), 0},
		{"in traffic", t.when(0, KindInTraffic, "", "in"), 0},
	}
	for _, l := range t.containers {
		all = append(all, Moment{l.Name + " runs", l.Began, 0},
			Moment{l.Name + " is HEALTHY", t.when(0, KindHealth, l.Name, scheduler.HealthHealthy), 0})
	}
	return all
}

// stop returns the moments of a task that was asked to stop at term, and whose stop began no later.
func (t task) stop(term, begins float64) []Moment {
	last := never
	if t.LastServed != nil && *t.LastServed > term {
		last = *t.LastServed
	}
	return []Moment{
		{"the task is asked to stop", term, 0},
		{"out of traffic", t.when(begins, KindInTraffic, "", "out"), 0},
		{"its last answer", last, 0},
		{"the task is STOPPED", t.when(begins, KindStatus, "", scheduler.StatusStopped), 0},
		{"nothing is left of it in Consul", t.when(begins, KindCleared, "", ""), 0},
	}
}

// since returns the moments that have come, in the order of time; none if zero never came.
func since(zero float64, all []Moment) []Moment {
	if zero < 0 {
		return nil
	}
	all = slices.DeleteFunc(all, func(m Moment) bool { return m.At < 0 })
	for i := range all {
		all[i].Since = all[i].At - zero
	}
	slices.SortStableFunc(all, func(a, b Moment) int { return cmp.Compare(a.At, b.At) })
	return all
}
