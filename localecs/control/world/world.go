// Package world is what a control socket shows of a region and does in it.
//
// Owns: the words of the ECS API for what the simulator knows.
// Never does: speak with a client.
// Start reading at: New.
package world

import (
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/localecs/control"
	"github.com/meshtask/consul-ecs/localecs/controlplane/ecs"
	"github.com/meshtask/consul-ecs/localecs/region"
	"github.com/meshtask/consul-ecs/localecs/scheduler"
)

// Options are a region, and what its owner knows besides. What is nil is not
// there.
type Options struct {
	Region *region.Region
	// MayEnd is told of a task before it is asked to stop.
	MayEnd func(task string)
	// Planned are tasks and services that may still begin.
	Planned func() []string
	// Consul is the server that tasks are in.
	Consul func() *control.Consul
	// End stops all and ends the run.
	End func()
}

// World implements control.World.
type World struct{ Options }

// New returns the world of a region.
func New(o Options) *World { return &World{o} }

// State implements control.World.
func (w *World) State() control.State {
	s := control.State{Tasks: []control.Task{}, Services: []control.Service{}}
	for _, b := range w.Region.Tasks() {
		s.Tasks = append(s.Tasks, w.task(b))
	}
	for _, v := range w.Region.Services().All(time.Now()) {
		s.Services = append(s.Services, service(v))
	}
	if w.Planned != nil {
		s.Planned = []string{}
		s.Planned = slices.DeleteFunc(append(s.Planned, w.Planned()...), func(name string) bool {
			return slices.ContainsFunc(s.Services, func(v control.Service) bool { return v.Name == name })
		})
	}
	if w.Consul != nil {
		s.Consul = w.Consul()
	}
	return s
}

// task is a task that has begun.
func (w *World) task(b region.Begun) control.Task {
	t := control.Task{
		Name: b.Name, ID: b.ID, Cluster: b.Cluster, Service: b.Service, Family: b.Definition.Family,
		TaskDefinitionARN: b.Definition.TaskDefinitionARN, Containers: []control.Container{},
	}
	if b.Task == nil {
		t.LastStatus, t.DesiredStatus, t.HealthStatus = scheduler.StatusStopped, scheduler.StatusStopped, scheduler.HealthUnknown
		t.StopCode, t.StoppedReason, t.StoppedAt = scheduler.StopTaskFailedToStart, b.Err.Error(), b.At
		return t
	}
	v := b.Task.View()
	t.TaskARN, t.Address = b.Task.Facts().TaskARN, b.Task.IP()
	t.LastStatus, t.DesiredStatus, t.HealthStatus = v.LastStatus(), v.DesiredStatus, v.HealthStatus()
	t.StartedAt, t.StoppedAt, t.StopCode, t.StoppedReason = v.StartedAt, v.StoppedAt, v.StopCode, v.StoppedReason
	for _, c := range v.Containers {
		t.Containers = append(t.Containers, container(c))
	}
	return t
}

func container(c scheduler.ContainerView) control.Container {
	shown := control.Container{
		Name: c.Name, Image: c.Image, Essential: c.Essential, LastStatus: c.LastStatus(),
		StartedAt: c.StartedAt, FinishedAt: c.FinishedAt, ExitCode: c.ExitCode, Reason: c.Reason,
	}
	if c.Health != nil {
		shown.HealthStatus = c.HealthStatus()
	}
	if c.RestartCount != nil {
		shown.RestartCount = *c.RestartCount
	}
	return shown
}

func service(v ecs.Service) control.Service {
	shown := control.Service{
		Name: v.ServiceName, Cluster: v.ClusterARN, DesiredCount: v.DesiredCount, RunningCount: v.RunningCount, PendingCount: v.PendingCount,
	}
	steady, err := v.Steady()
	shown.Steady = steady
	if err != nil {
		shown.Failed = err.Error()
	}
	return shown
}

// find is a task that has begun.
func (w *World) find(taskID string) (region.Begun, error) {
	for _, b := range w.Region.Tasks() {
		if b.ID == taskID {
			return b, nil
		}
	}
	return region.Begun{}, control.NoSuch("task", taskID, nil)
}

// Stop implements control.World.
func (w *World) Stop(taskID string) error {
	b, err := w.find(taskID)
	if err != nil {
		return err
	}
	if w.MayEnd != nil {
		w.MayEnd(b.Name)
	}
	return w.Region.Stop(b, "")
}

// End implements control.World.
func (w *World) End() { w.Options.End() }
