package view

import (
	"cmp"
	"slices"

	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/workload"
)

// Moment is a moment of a task's start or stop.
type Moment struct {
	Text string
	// Since is how many seconds it is after the first container runs, or the task is asked to stop.
	At, Since float64
}

// task is a task with its lanes.
type task struct {
	RecordedTask
	lanes []Lane
}

// container returns the lane of a container; an empty one has never run.
func (t task) container(name string) Lane {
	for _, l := range t.lanes {
		if l.Kind == LaneContainer && l.Name == name {
			return l
		}
	}
	return Lane{Began: never, Ended: never}
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
	of := task{t, lanes}
	return append(of.start(), of.stop()...)
}

func (t task) start() []Moment {
	began := never
	for _, l := range t.lanes {
		if l.Kind == LaneContainer && l.Began >= 0 && (began < 0 || l.Began < began) {
			began = l.Began
		}
	}
	if began < 0 {
		return nil
	}
	app := t.container(t.Application)
	all := []Moment{
		{"the first container runs", began, 0},
		{"login", t.when(0, KindToken, "", "login"), 0},
		{"mesh-init is done", t.container(workload.ContainerMeshInit).Ended, 0},
		{"the proxy is healthy", t.when(0, KindHealth, workload.ContainerSidecarProxy, scheduler.HealthHealthy), 0},
		{"the application is healthy", t.when(0, KindHealth, t.Application, scheduler.HealthHealthy), 0},
		{"in traffic", t.when(0, KindInTraffic, "", "in"), 0},
	}
	if app.Began > began {
		all = append(all, Moment{"the application starts", app.Began, 0})
	}
	return since(began, all)
}

// stop returns the moments of a task that was asked to stop.
func (t task) stop() []Moment {
	term := t.when(0, KindDesired, "", "")
	if term < 0 {
		return nil
	}
	begins := term // or when a container ended by itself a moment before
	for _, e := range t.Events {
		if e.Kind == KindStatus && e.Status == scheduler.StatusStopped && e.Container != "" && e.At > term-0.5 {
			begins = min(begins, e.At)
		}
	}
	last := never
	if t.LastServed != nil && *t.LastServed > term {
		last = *t.LastServed
	}
	return since(term, []Moment{
		{"the task is asked to stop", term, 0},
		{"critical in Consul", t.critical(begins), 0},
		{"its last answer", last, 0},
		{"the application is gone", t.container(t.Application).Ended, 0},
		{"the proxy is gone", t.container(workload.ContainerSidecarProxy).Ended, 0},
		{"the agent is gone", t.container(workload.ContainerConsulClient).Ended, 0},
		{"the task is STOPPED", t.when(begins, KindStatus, "", scheduler.StatusStopped), 0},
		{"nothing is left of it in Consul", t.when(begins, KindCleared, "", ""), 0},
	})
}

// since returns the moments that have come, in the order of time.
func since(zero float64, all []Moment) []Moment {
	all = slices.DeleteFunc(all, func(m Moment) bool { return m.At < 0 })
	for i := range all {
		all[i].Since = all[i].At - zero
	}
	slices.SortStableFunc(all, func(a, b Moment) int { return cmp.Compare(a.At, b.At) })
	return all
}

// critical returns since when Consul sends the task nothing, if that came with its stop.
func (t task) critical(begins float64) float64 {
	served := false
	for _, e := range t.Events {
		switch {
		case e.Kind == KindInTraffic && e.At < begins:
			served = e.Status == "in"
		case !served || e.At < begins:
		case e.Kind == KindInTraffic && e.Status == "out" || e.Kind == KindCheck && e.Status != "passing":
			return e.At
		}
	}
	return never
}
