package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/meshtask/consul-ecs/localecs/cluster"
	"github.com/meshtask/consul-ecs/localecs/ecs/controlplane"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
	"github.com/meshtask/consul-ecs/localecs/runtime"
)

// RegionController is the Controller of a region. All fields but Region and OnEnd are optional.
type RegionController struct {
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

// State implements Controller.
func (w *RegionController) State() State {
	s := State{Tasks: []Task{}, Services: []shapes.Service{}}
	var planned []string
	if w.Planned != nil {
		// Before the tasks: one that starts meanwhile is in both, never in neither.
		planned = append([]string{}, w.Planned()...)
	}
	plane := w.Region.Plane()
	for _, t := range plane.Tasks(time.Now()) {
		if t.Report.Name != "" { // else it is being launched
			s.Tasks = append(s.Tasks, task(t))
		}
	}
	s.Tasks = recent(s.Tasks)
	s.Services = append(s.Services, plane.Services(time.Now())...)
	s.Planned = slices.DeleteFunc(planned, func(name string) bool {
		return slices.ContainsFunc(s.Services, func(v shapes.Service) bool { return v.ServiceName == name })
	})
	if w.Consul != nil {
		s.Consul = w.Consul()
	}
	return s
}

func task(t controlplane.ReportedTask) Task {
	shown := Task{Task: t.Task, Name: t.Report.Name}
	shown.Overrides = shapes.Overrides{}
	for i, v := range t.Report.View.Containers {
		c := Container{
			Container: t.Containers[i], Essential: v.Essential, HealthCheck: v.Health != nil,
			StartedAt: v.StartedAt, FinishedAt: v.FinishedAt, Waiting: v.Waiting(),
		}
		if v.RestartCount != nil {
			c.RestartCount = *v.RestartCount
		}
		shown.Containers = append(shown.Containers, c)
	}
	return shown
}

// maxStopped bounds the stopped tasks of a State.
const maxStopped = 200

// recent leaves out the oldest stopped tasks of too many.
func recent(tasks []Task) []Task {
	excess := -maxStopped
	for _, t := range tasks {
		if t.Stopped() {
			excess++
		}
	}
	return slices.DeleteFunc(tasks, func(t Task) bool {
		if t.Stopped() {
			excess--
		}
		return t.Stopped() && excess >= 0
	})
}

// Stop implements Controller.
func (w *RegionController) Stop(taskID string) error {
	t, err := w.State().One(taskID)
	if err != nil {
		return err
	}
	if w.MayEnd != nil {
		w.MayEnd(t.Name)
	}
	_, err = w.Region.Plane().StopTask(w.Region.Call(), shapes.StopTaskInput{Cluster: t.ClusterARN, Task: t.TaskARN})
	return err
}

// End implements Controller.
func (w *RegionController) End() { w.OnEnd() }

// Attach implements Controller.
func (w *RegionController) Attach(ctx context.Context, r Request, s runtime.Session) (code int, err error) {
	t := w.Region.Task(r.TaskID)
	if t == nil {
		return runtime.CodeFailed, fmt.Errorf("task %s is not running", r.TaskID)
	}
	return t.Attach(ctx, r.Container, s)
}

// Visit implements Controller.
func (w *RegionController) Visit(ctx context.Context, r Request, s runtime.Session) (code int, err error) {
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

// environment returns the caller's with the run's own variables, and without those that lead
// elsewhere: to other credentials, or to proxies, which the cluster's network does not reach.
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
