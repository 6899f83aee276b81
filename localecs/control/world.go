package control

import (
	"slices"
	"time"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// Options are a region, and what its owner knows besides. What is nil is not
// there.
type RegionOptions struct {
	Region *cluster.Region
	// MayEnd is told of a task before it is asked to stop.
	MayEnd func(task string)
	// Planned are tasks and services that may still begin.
	Planned func() []string
	// Consul is the server that tasks are in.
	Consul func() *Consul
	// End stops all and ends the run.
	End func()
}

// World implements control.World.
type RegionWorld struct{ RegionOptions }

// New returns the world of a region.
func New(o RegionOptions) *RegionWorld { return &RegionWorld{o} }

// State implements control.World.
func (w *RegionWorld) State() State {
	s := State{Tasks: []Task{}, Services: []Service{}}
	for _, b := range w.Region.Tasks() {
		s.Tasks = append(s.Tasks, w.task(b))
	}
	for _, v := range w.Region.Services().All(time.Now()) {
		s.Services = append(s.Services, service(v))
	}
	if w.Planned != nil {
		s.Planned = []string{}
		s.Planned = slices.DeleteFunc(append(s.Planned, w.Planned()...), func(name string) bool {
			return slices.ContainsFunc(s.Services, func(v Service) bool { return v.Name == name })
		})
	}
	if w.Consul != nil {
		s.Consul = w.Consul()
	}
	return s
}

// task is a task that has begun.
func (w *RegionWorld) task(b cluster.Begun) Task {
	t := Task{
		Name: b.Name, ID: b.ID, Cluster: b.Cluster, Service: b.Service, Family: b.Definition.Family,
		TaskDefinitionARN: b.Definition.TaskDefinitionARN, Containers: []Container{},
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

func container(c scheduler.ContainerView) Container {
	shown := Container{
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

func service(v shapes.Service) Service {
	shown := Service{
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
func (w *RegionWorld) find(taskID string) (cluster.Begun, error) {
	for _, b := range w.Region.Tasks() {
		if b.ID == taskID {
			return b, nil
		}
	}
	return cluster.Begun{}, NoSuch("task", taskID, nil)
}

// Stop implements control.World.
func (w *RegionWorld) Stop(taskID string) error {
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
func (w *RegionWorld) End() { w.RegionOptions.End() }
