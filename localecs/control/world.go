package control

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/ecs/scheduler"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// RegionWorld is the World of a region. All fields but Region and OnEnd are optional.
type RegionWorld struct {
	Region *cluster.Region
	// MayEnd is called with a task's name before it is asked to stop.
	MayEnd func(task string)
	// Planned returns tasks and services that may still start.
	Planned func() []string
	// Consul returns the server that tasks register with, nil before there is one.
	Consul func() *Consul
	// OnEnd implements End.
	OnEnd func()
}

// State implements World.
func (w *RegionWorld) State() State {
	s := State{Tasks: []Task{}, Services: []Service{}}
	var planned []string
	if w.Planned != nil {
		// Before the tasks: one that starts meanwhile is in both, never in neither.
		planned = append([]string{}, w.Planned()...)
	}
	for _, b := range w.Region.Tasks() {
		s.Tasks = append(s.Tasks, task(b))
	}
	for _, v := range w.Region.Plane().Services(time.Now()) {
		s.Services = append(s.Services, service(v))
	}
	s.Planned = slices.DeleteFunc(planned, func(name string) bool {
		return slices.ContainsFunc(s.Services, func(v Service) bool { return v.Name == name })
	})
	if w.Consul != nil {
		s.Consul = w.Consul()
	}
	return s
}

func task(b cluster.TaskStart) Task {
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
		t.Containers = append(t.Containers, shown)
	}
	return t
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

// find returns a task by its ID.
func (w *RegionWorld) find(taskID string) (cluster.TaskStart, error) {
	for _, b := range w.Region.Tasks() {
		if b.ID == taskID {
			return b, nil
		}
	}
	return cluster.TaskStart{}, NoSuch("task", taskID, nil)
}

// Stop implements World.
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

// End implements World.
func (w *RegionWorld) End() { w.OnEnd() }

// Attach implements World.
func (w *RegionWorld) Attach(ctx context.Context, r Request, s runtime.Session) (code int, err error) {
	b, err := w.find(r.TaskID)
	if err == nil && b.Task == nil {
		err = b.Err
	}
	if err != nil {
		return runtime.CodeFailed, err
	}
	return b.Task.Attach(ctx, r.Container, s)
}

// Visit implements World.
func (w *RegionWorld) Visit(ctx context.Context, r Request, s runtime.Session) (code int, err error) {
	own := w.Region.Environment()
	if w.Consul != nil {
		if c := w.Consul(); c != nil {
			own = append(own, "CONSUL_HTTP_ADDR="+c.Address, "CONSUL_HTTP_TOKEN="+c.Token)
		}
	}
	return w.Region.Cluster().Visit(ctx, cluster.Visitor{
		Session: s, Path: r.Path, Dir: r.Directory, Env: environment(r.Env, own), Umask: r.Umask,
	})
}

// environment is the caller's with the run's own variables, and without those that lead elsewhere:
// to other credentials, or to proxies, which the cluster's network does not reach.
func environment(callers, own []string) []string {
	removed := []string{
		"AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_ENDPOINT_URL",
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "CONSUL_HTTP_SSL", "CONSUL_NAMESPACE", "CONSUL_PARTITION",
	}
	name := func(variable string) string {
		name, _, _ := strings.Cut(variable, "=")
		return name
	}
	for _, v := range own {
		removed = append(removed, name(v))
	}
	return append(slices.DeleteFunc(slices.Clone(callers), func(v string) bool {
		return slices.Contains(removed, strings.ToUpper(name(v)))
	}), own...)
}
